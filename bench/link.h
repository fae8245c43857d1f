// Two network namespaces on this machine with two links between them, so that two processes talk as
// if over a network:
//
//   client (this process)                         server (a child process)
//     10.77.1.1 -- veth, 1 Gbit/s by tbf ------------ 10.77.1.2
//     10.77.2.1 -- tun -- relay, 10 ms each way -- tun -- 10.77.2.2
//
// The relay is a process of its own. It holds every packet for 10 ms, so TCP behaves as on a long
// path. (tc's netem would do the same, but not every kernel has it.) In both namespaces TCP buffers
// may grow to 64 MiB, as is usual for long paths.
//
// Single-thread. Needs root, iproute2 and /dev/net/tun.
#ifndef SYSTOLE_BENCH_LINK_H_
#define SYSTOLE_BENCH_LINK_H_

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace systole::bench {

inline constexpr char kGigabitServer[] = "10.77.1.2";
inline constexpr char kFarServer[] = "10.77.2.2";

// Moves this process into a namespace of its own and starts the server's process in another one.
// `serve` runs in the server's process and gets the descriptor of a stream socket. The socket's
// other end is `control`. The server's process and the relay end when this process ends. REQUIRES:
// no other thread runs, because this function forks, and moves only the calling thread into the
// namespace.
//   FailedPrecondition  the machine does not allow namespaces or links. The message says what to
//                       run as root.
absl::Status StartBehindLinks(const std::function<void(int control)>& serve, int& control);

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_LINK_H_
