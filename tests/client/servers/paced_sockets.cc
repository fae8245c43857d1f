#include "tests/client/servers/paced_sockets.h"

#include <sys/socket.h>

#include <vector>

#include "client/servers/socket_observer.h"

namespace systole {
namespace {

class Paced final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* args) override {
    ObserveSockets(*args, [](int fd) {
      // Connections inherit this option from the listening socket.
      ::setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &kPacedBytesPerSecond,
                   sizeof(kPacedBytesPerSecond));
    });
  }
  void UpdatePlugins(
      std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* /*plugins*/) override {}
};

}  // namespace

std::unique_ptr<grpc::ServerBuilderOption> PacedSockets() { return std::make_unique<Paced>(); }

}  // namespace systole
