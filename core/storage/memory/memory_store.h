// Objects in the memory of this process, by names such as "mem://x/a". They are for tests, and for
// data that a program makes and feeds without a disk.
#ifndef SYSTOLE_CORE_STORAGE_MEMORY_MEMORY_STORE_H_
#define SYSTOLE_CORE_STORAGE_MEMORY_MEMORY_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/concurrency/mutex.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "core/storage/object_names.h"
#include "core/storage/store.h"

namespace systole {

// Thread-safe. Holds an object until it is removed or replaced. If a source still has the object
// open, the object lives until the source is destroyed.
class MemoryStore final : public Store {
 public:
  // The store of this process.
  static MemoryStore& OfProcess();

  MemoryStore() = default;

  // Puts `bytes` under `name`, and replaces an earlier object. This makes a new state, even if the
  // bytes are equal.
  //   InvalidArgument  `name` is not "mem://" followed by parts between '/', or a part is empty.
  absl::Status Put(const std::string& name, std::string bytes) ABSL_LOCKS_EXCLUDED(mu_);

  absl::StatusOr<std::vector<std::string>> List(const std::string& pattern,
                                                NameFilter wanted) const override;
  bool Takes(const std::string& pattern, const std::string& name) const override;
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) const override;
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& name) const override;
  absl::StatusOr<StoredState> Stat(const std::string& name) const override;
  absl::StatusOr<std::unique_ptr<ByteSink>> Create(const std::string& name) const override;
  absl::Status Remove(const std::string& name) const override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Object;
  class Source;
  class Sink;

  // NotFound, with the object's name.
  absl::StatusOr<std::shared_ptr<const Object>> Find(const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mu_);
  ObjectNames Names() const ABSL_LOCKS_EXCLUDED(mu_);
  void Replace(const std::string& name, std::string bytes) const ABSL_LOCKS_EXCLUDED(mu_);

  mutable Mutex mu_;
  // Mutable, because the functions of Store that write, such as Create(), are const.
  mutable std::map<std::string, std::shared_ptr<const Object>> objects_ ABSL_GUARDED_BY(mu_);
  mutable uint64_t puts_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_MEMORY_MEMORY_STORE_H_
