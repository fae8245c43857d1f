// A connected pair of TCP sockets over loopback. It is the ceiling of all figures whose bytes go
// through a socket.
//
// Thread-safe. A failure to make a socket ends the program.
#ifndef SYSTOLE_BENCH_TCP_PAIR_H_
#define SYSTOLE_BENCH_TCP_PAIR_H_

#include <utility>

namespace systole::bench {

// {sender, receiver}: descriptors, which the caller must close.
std::pair<int, int> TcpPair();
// The descriptor of a new connection to `port` of this machine.
int ConnectTo(int port);

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_TCP_PAIR_H_
