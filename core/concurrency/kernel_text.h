// The kernel's small text files about a process, its threads and its limits.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_KERNEL_TEXT_H_
#define SYSTOLE_CORE_CONCURRENCY_KERNEL_TEXT_H_

#include <string>

namespace systole {

// The first 4 KiB of the file `path`; empty if the file is missing or cannot be read.
std::string KernelText(const std::string& path);

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_KERNEL_TEXT_H_
