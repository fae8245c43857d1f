// The damaged records that feeds met, and the number of masked examples.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_DATASET_DAMAGE_LOG_H_
#define SYSTOLE_CORE_DATASET_DAMAGE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"
#include "core/dataset/damage_cause.h"

namespace systole {

class DamageLog {
 public:
  struct Entry {
    std::string shard;  // Base name, or "rose/1.jpg" if the record is a file.
    int64_t record = 0;
    int64_t offset = 0;  // Where the record begins in the shard's file.
    std::string cause;
    DamageCause kind = DamageCause::kRecord;
  };
  // The most entries that are kept. A badly damaged dataset must not fill the memory.
  static constexpr size_t kMaxEntries = 100;
  // The most bytes of a cause that are kept; the rest is cut off.
  static constexpr size_t kMaxCauseBytes = 512;

  // Called once for each entry that is kept, on the thread that met the damage, without a lock.
  using Observer = std::function<void(const Entry&)>;

  // Counts one masked example. Keeps the entry if its record is new and there is room.
  void Add(Entry entry) ABSL_LOCKS_EXCLUDED(mu_);
  // From now on `observer` is called for new entries. Do not call Observe() while feeds run.
  void Observe(Observer observer) { observer_ = std::move(observer); }
  int64_t masked_examples() const ABSL_LOCKS_EXCLUDED(mu_);
  MaskedByCause masked_by_cause() const ABSL_LOCKS_EXCLUDED(mu_);
  // In the order in which feeds met the records.
  std::vector<Entry> entries() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Observer observer_;
  mutable Mutex mu_;
  MaskedByCause masked_ ABSL_GUARDED_BY(mu_) = {};
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);
  std::set<int64_t> records_ ABSL_GUARDED_BY(mu_);  // The records of entries_.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_DAMAGE_LOG_H_
