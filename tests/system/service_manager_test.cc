// A server tells its service manager what it does.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/notify_socket.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServiceManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string shard = folder_.Write("raw.tfrecord", RawShard(0, 64, 784));
    config_ = folder_.Write("server.textproto",
                            absl::StrCat("datasets { name: 'raw' shards: '", shard, "' }\n"));
  }

  std::unique_ptr<ServerProcess> Serve(const std::vector<std::string>& environment) {
    absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start({"--config", config_}, {.environment = environment});
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }

  // The next message that is not a sign of life (WATCHDOG=1).
  std::string Next() {
    std::string said = manager_.Next();
    while (said == "WATCHDOG=1") said = manager_.Next();
    return said;
  }

  const TempFolder folder_;
  std::string config_;
  NotifySocket manager_{folder_ / "notify"};
};

TEST_F(ServiceManagerTest, TheManagerIsNotifiedOfStartReloadWatchdogAndStop) {
  const std::unique_ptr<ServerProcess> server =
      Serve({absl::StrCat("NOTIFY_SOCKET=", folder_ / "notify"), "WATCHDOG_USEC=400000"});
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(Next(), "STATUS=opening the datasets");
  const std::string ready =
      absl::StrCat("READY=1\nSTATUS=serving 1 dataset on ", server->address());
  EXPECT_EQ(Next(), ready);
  EXPECT_EQ(manager_.Next(), "WATCHDOG=1");
  EXPECT_EQ(manager_.Next(), "WATCHDOG=1");
  server->process().Signal(SIGHUP);
  EXPECT_THAT(Next(), AllOf(StartsWith("RELOADING=1\nMONOTONIC_USEC="),
                            EndsWith("\nSTATUS=reading the config again")));
  EXPECT_EQ(Next(), ready);
  // If the config has errors, the reload still ends, and the server goes on as before.
  folder_.Write("server.textproto", "datasets { nam: 'raw' }");
  server->process().Signal(SIGHUP);
  EXPECT_THAT(Next(), StartsWith("RELOADING=1\n"));
  EXPECT_EQ(Next(), ready);
  server->process().Signal(SIGTERM);
  EXPECT_EQ(Next(), "STOPPING=1\nSTATUS=draining for at most 10s");
  EXPECT_EQ(server->process().Wait().exit_code, 0);
  EXPECT_EQ(manager_.Poll(), "");
}

TEST_F(ServiceManagerTest, AnUnreachableManagerSocketIsOnlyAWarning) {
  const std::unique_ptr<ServerProcess> server =
      Serve({absl::StrCat("NOTIFY_SOCKET=", folder_ / "nowhere")});
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(WaitUntil([&] {
    return absl::StrContains(server->process().err(),
                             "cannot report the server's state to the service manager at '");
  }));
}

TEST_F(ServiceManagerTest, AnInheritedDescriptorThatIsNotASocketEndsTheServer) {
  // The shell becomes the server, so $$ is the server's process id. Descriptor 3 is /dev/null.
  const Finished ended =
      Process({"/bin/sh", "-c", "exec 3</dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"", "sh",
               ServerProgram(), "--config", config_, "--listen", "127.0.0.1:0"})
          .Wait();
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("it is not a Unix socket that listens for streams"));
}

}  // namespace
}  // namespace systole
