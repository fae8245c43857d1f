// Simulates a kernel without the seal against later writing (F_SEAL_FUTURE_WRITE), such as Linux
// before 5.1.
//
// Thread-safe.
#ifndef SYSTOLE_TESTS_CORE_MEMORY_OLD_KERNEL_H_
#define SYSTOLE_TESTS_CORE_MEMORY_OLD_KERNEL_H_

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "absl/functional/function_ref.h"
#include "core/status/check.h"

namespace systole {

// Runs `work` on a thread of its own. On that thread, and on all threads that it starts, fcntl()
// refuses F_SEAL_FUTURE_WRITE.
inline void OnOldKernel(absl::FunctionRef<void()> work) {
  std::thread([work] {
    const auto load = [](size_t offset) {
      return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)};
    };
    const auto skip_unless = [](uint16_t test, uint32_t value, uint8_t instructions) {
      return sock_filter{static_cast<uint16_t>(BPF_JMP | test | BPF_K), 0, instructions, value};
    };
    const auto answer = [](uint32_t value) { return sock_filter{BPF_RET | BPF_K, 0, 0, value}; };
    // The filter reads the lower half of each argument, which comes first on x86-64.
    sock_filter filter[] = {
        load(offsetof(seccomp_data, nr)),      skip_unless(BPF_JEQ, SYS_fcntl, 5),
        load(offsetof(seccomp_data, args[1])), skip_unless(BPF_JEQ, F_ADD_SEALS, 3),
        load(offsetof(seccomp_data, args[2])), skip_unless(BPF_JSET, F_SEAL_FUTURE_WRITE, 1),
        answer(SECCOMP_RET_ERRNO | EINVAL),    answer(SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]), .filter = filter};
    SYSTOLE_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    SYSTOLE_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    work();
  }).join();
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_MEMORY_OLD_KERNEL_H_
