// A kernel limit on the memory of some processes (cgroup v2 or v1). Page cache and socket buffers
// count. A process that goes beyond the limit is killed.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CHAOS_MEMORY_GROUP_H_
#define SYSTOLE_TESTS_CHAOS_MEMORY_GROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace systole {

class MemoryGroup {
 public:
  // Returns FailedPrecondition with the kernel's error if this user may not make a cgroup.
  static absl::StatusOr<std::unique_ptr<MemoryGroup>> Create(int64_t bytes);
  // REQUIRES: the group's processes have ended.
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // Counts the memory that `process` takes from now on.
  absl::Status Add(pid_t process);

 private:
  explicit MemoryGroup(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_MEMORY_GROUP_H_
