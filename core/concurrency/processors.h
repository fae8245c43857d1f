// How many processors this process may use. This number is the default number of threads.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_PROCESSORS_H_
#define SYSTOLE_CORE_CONCURRENCY_PROCESSORS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// The number of processors in the process's affinity mask, or fewer if a container's quota of
// processor time is less. At least 1. A quota of 1.5 processors counts as 2.
int UsableProcessors();

// The quota of processor time, in processors. `own_groups` is the text of /proc/self/cgroup, which
// names a control group. The smallest quota of this group and the groups around it counts. Reads
// `cpu.max` below `cgroup_root`, the mount of version 2 of control groups. Nullopt: there is no
// quota, or it cannot be read.
std::optional<double> ProcessorQuota(const std::string& cgroup_root, absl::string_view own_groups);

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_PROCESSORS_H_
