// The lists of records by condition that feeds use now. Feeds with the same condition share a list.
// A list takes a bit for each record, and lives as long as a feed uses it. Their number is limited,
// because peers decide which conditions there are.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_DATASET_RECORD_LISTS_H_
#define SYSTOLE_CORE_DATASET_RECORD_LISTS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/order/record_list.h"

namespace systole {

class RecordLists {
 public:
  // The most lists in use at once.
  static constexpr size_t kMost = 64;

  // The list of `key`. If no feed uses it, `make` makes it. One list is made at a time, so making
  // takes the memory and the threads of one. Nobody waits for another list, because the threads
  // that answer all requests would wait.
  //   Unavailable        another list is being made; may be asked again soon.
  //   ResourceExhausted  kMost lists are in use.
  // Also the errors of `make`.
  absl::StatusOr<std::shared_ptr<const RecordList>> Find(
      const std::string& key, absl::FunctionRef<absl::StatusOr<RecordList>()> make)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Lists in use.
  size_t size() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::shared_ptr<const RecordList> Known(const std::string& key) const ABSL_LOCKS_EXCLUDED(mu_);

  mutable Mutex mu_;
  bool making_ ABSL_GUARDED_BY(mu_) = false;
  std::map<std::string, std::weak_ptr<const RecordList>> lists_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_RECORD_LISTS_H_
