// Shows us the sockets that gRPC opens for a channel. gRPC itself neither shows them nor counts
// what comes over them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_SERVERS_SOCKET_OBSERVER_H_
#define SYSTOLE_CLIENT_SERVERS_SOCKET_OBSERVER_H_

#include <functional>

#include "grpcpp/support/channel_arguments.h"

namespace systole {

// Channels made with `args` call `seen` with each of their sockets before the socket is connected.
// The calls come on gRPC's threads, several at a time, until the last of these channels is gone.
// gRPC owns the socket, and may close it as soon as `seen` has returned. Works for TCP and "unix:",
// with TLS and without.
void ObserveSockets(grpc::ChannelArguments& args, std::function<void(int fd)> seen);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_SOCKET_OBSERVER_H_
