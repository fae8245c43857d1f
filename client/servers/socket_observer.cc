#include "client/servers/socket_observer.h"

#include <utility>

#include "grpc/grpc.h"
#include "grpc/support/sync.h"

// ChannelArguments::SetSocketMutator() is public, but no header that gRPC installs declares the
// type of its argument. The structs below have the names and the order of fields that gRPC has had
// since 2021. A test dials a socket and checks that `seen` is called.
namespace systole {

struct SocketInfo {
  int fd;
  int usage;
};

struct MutatorTable {
  bool (*mutate_fd)(int fd, grpc_socket_mutator* mutator);
  int (*compare)(grpc_socket_mutator* a, grpc_socket_mutator* b);
  void (*destroy)(grpc_socket_mutator* mutator);
  bool (*mutate_fd_2)(const SocketInfo* info, grpc_socket_mutator* mutator);
};

}  // namespace systole

struct grpc_socket_mutator {
  const systole::MutatorTable* table;
  gpr_refcount references;
};

namespace systole {
namespace {

struct Observer {
  grpc_socket_mutator base;  // Must be first: gRPC passes us the address of `base`.
  std::function<void(int fd)> seen;
};

Observer* From(grpc_socket_mutator* mutator) { return reinterpret_cast<Observer*>(mutator); }

const MutatorTable kTable = {
    .mutate_fd =
        [](int fd, grpc_socket_mutator* mutator) {
          From(mutator)->seen(fd);
          return true;
        },
    .compare = [](grpc_socket_mutator* a,
                  grpc_socket_mutator* b) { return a < b ? -1 : (a > b ? 1 : 0); },
    .destroy = [](grpc_socket_mutator* mutator) { delete From(mutator); },
    .mutate_fd_2 =
        [](const SocketInfo* info, grpc_socket_mutator* mutator) {
          From(mutator)->seen(info->fd);
          return true;
        },
};

}  // namespace

void ObserveSockets(grpc::ChannelArguments& args, std::function<void(int fd)> seen) {
  auto* const observer =
      new Observer{.base = {.table = &kTable, .references = {}}, .seen = std::move(seen)};
  gpr_ref_init(&observer->base.references, 1);  // The arguments own the observer.
  args.SetSocketMutator(&observer->base);
}

}  // namespace systole
