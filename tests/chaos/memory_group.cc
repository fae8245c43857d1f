#include "tests/chaos/memory_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/descriptor/owned_fd.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr char kRoot[] = "/sys/fs/cgroup";

// Returns the folder in which the new cgroup is made, and the name of the file that sets a group's
// memory limit. The folder is the cgroup of this process in the hierarchy for memory. Under cgroup
// v2 it is the root instead, because a group that has processes may have no groups below it.
std::pair<std::string, std::string> Hierarchy() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() == 3 && parts[1] == "memory") {
      return {absl::StrCat(kRoot, "/memory", parts[2]), "memory.limit_in_bytes"};
    }
  }
  return {kRoot, "memory.max"};
}

absl::Status Write(const std::string& path, const std::string& text) {
  const OwnedFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.ok() || ::write(file.get(), text.data(), text.size()) < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot write ", text, " to ", path, ": ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryGroup>> MemoryGroup::Create(int64_t bytes) {
  const auto [above, limit] = Hierarchy();
  const std::string folder = absl::StrCat(above, "/systole-chaos-", ::getpid());
  if (::mkdir(folder.c_str(), 0755) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make the memory cgroup ", folder, ": ", std::strerror(errno)));
  }
  std::unique_ptr<MemoryGroup> group(new MemoryGroup(folder));
  SYSTOLE_RETURN_IF_ERROR(Write(absl::StrCat(folder, "/", limit), absl::StrCat(bytes)));
  return group;
}

MemoryGroup::~MemoryGroup() { ::rmdir(folder_.c_str()); }

absl::Status MemoryGroup::Add(pid_t process) {
  return Write(folder_ + "/cgroup.procs", absl::StrCat(process));
}

}  // namespace systole
