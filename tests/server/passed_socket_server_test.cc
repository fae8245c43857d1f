// A server on a socket that the service manager made.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "core/descriptor/owned_fd.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/server.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;

class PassedSocketServerTest : public testing::Test {
 protected:
  void SetUp() override { shards_.Write("a.tfrecord", TestShards({12})[0]); }

  std::unique_ptr<Server> Serve(OwnedFd passed) const {
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(shards_ / "a.tfrecord");
    EXPECT_THAT(catalogue, IsOk());
    v1::ServerConfig config = ListenOn(address());
    config.set_shared_memory(false);
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), config, {}, nullptr, std::move(passed));
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }

  void ExpectAnswered() const {
    const auto stub =
        v1::Systole::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::ListDatasetsResponse response;
    const grpc::Status status = stub->ListDatasets(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  std::string address() const { return "unix:" + (run_ / "s"); }

  const TempFolder shards_;
  const TempFolder run_;
};

TEST_F(PassedSocketServerTest, RestartedServersServeOnThePassedSocketAndKeepItsFile) {
  const OwnedFd of_manager(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string path = run_ / "s";
  std::memcpy(name.sun_path, path.data(), path.size());
  ASSERT_EQ(bind(of_manager.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(of_manager.get(), 16), 0);
  // The second server is one that the manager has restarted.
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<Server> server = Serve(OwnedFd(dup(of_manager.get())));
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(server->port(), 0);
    ExpectAnswered();
    EXPECT_TRUE(server->Drain(absl::Seconds(300)));
  }
  EXPECT_THAT(run_.List(), ElementsAre("s"));
}

}  // namespace
}  // namespace systole
