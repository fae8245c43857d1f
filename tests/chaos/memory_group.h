// A limit of the kernel on the memory of some processes (cgroup v2 or v1), page cache and socket
// buffers included: a process that goes beyond it is killed.
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
  // FailedPrecondition if this user may make none; gives the kernel's error.
  static absl::StatusOr<std::unique_ptr<MemoryGroup>> Create(int64_t bytes);
  // REQUIRES: its processes have ended.
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  // The memory that `process` takes from now on counts.
  absl::Status Add(pid_t process);

 private:
  explicit MemoryGroup(std::string folder) : folder_(std::move(folder)) {}

  const std::string folder_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CHAOS_MEMORY_GROUP_H_
