// Two servers and one Unix socket. One server serves, the other server reports the conflict, and
// neither server harms the other.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int kUnavailable = 4;

class UnixSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    shard_ = folder_.Write("raw.tfrecord", RawShard(0, 64, 784));
    spec_ = folder_.Write("spec.textproto", RawSpec(784, 1));
    std::filesystem::create_directory(folder_ / "run");
  }

  std::string Address() const { return absl::StrCat("unix:", folder_ / "run/s"); }
  std::vector<std::string> Flags() const {
    return {"--dataset", "raw=" + shard_, "--listen", Address()};
  }
  std::unique_ptr<ServerProcess> Serve() const {
    absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(Flags());
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }
  void ExpectFed() const {
    const Finished feed = RunSystole({"feed", "--server", Address(), "--spec", spec_, "--steps",
                                      "1", "--connect-timeout", "300"});
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
  }
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const TempFolder folder_;
  std::string shard_;
  std::string spec_;
};

TEST_F(UnixSocketTest, ASecondServerIsRefusedAndTheFirstServesOn) {
  const auto first = Serve();
  ASSERT_NE(first, nullptr);
  std::vector<std::string> args = Flags();
  args.insert(args.begin(), ServerProgram());
  const Finished second = Process(args).Wait();
  EXPECT_EQ(second.exit_code, kUnavailable) << second.err;
  EXPECT_THAT(second.err, AllOf(HasSubstr(Address()),
                                HasSubstr(absl::StrCat("process ", first->process().pid())),
                                HasSubstr("stop it first, or choose another --listen")));
  EXPECT_THAT(Left(), UnorderedElementsAre("s", "s.lock", "s.slots"));
  ExpectFed();
}

TEST_F(UnixSocketTest, AServerThatEndsRemovesItsSocketFiles) {
  const auto server = Serve();
  ASSERT_NE(server, nullptr);
  ExpectFed();
  server->process().Signal(SIGTERM);
  EXPECT_EQ(server->process().Wait().exit_code, 0);
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(UnixSocketTest, ANewServerTakesOverTheFilesOfAKilledServer) {
  {
    const auto killed = Serve();
    ASSERT_NE(killed, nullptr);
    killed->process().Signal(SIGKILL);
    killed->process().Wait();
    EXPECT_THAT(Left(), UnorderedElementsAre("s", "s.lock", "s.slots"));
  }
  const auto next = Serve();
  ASSERT_NE(next, nullptr);
  ExpectFed();
}

TEST_F(UnixSocketTest, OnlyOneOfSeveralServersStartedAtOnceServes) {
  std::vector<std::unique_ptr<Process>> servers;
  std::vector<std::string> args = Flags();
  args.insert(args.begin(), ServerProgram());
  for (int i = 0; i < 4; ++i) servers.push_back(std::make_unique<Process>(args));
  // All servers except one find that the socket is in use, and end.
  const auto running = [&servers] {
    int count = 0;
    for (const auto& server : servers) count += server->IsRunning() ? 1 : 0;
    return count;
  };
  ASSERT_TRUE(WaitUntil([&] { return running() <= 1; }));
  ASSERT_EQ(running(), 1);
  ExpectFed();
  for (const auto& server : servers) {
    if (server->IsRunning()) continue;
    const Finished refused = server->Wait();
    EXPECT_EQ(refused.exit_code, kUnavailable) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("another server"));
  }
}

TEST_F(UnixSocketTest, AFolderThatIsNotThereIsNamed) {
  const Finished server = Process({ServerProgram(), "--dataset", "raw=" + shard_, "--listen",
                                   absl::StrCat("unix:", folder_ / "none/s")})
                              .Wait();
  EXPECT_EQ(server.exit_code, 3);
  EXPECT_THAT(server.err, AllOf(HasSubstr(folder_ / "none/s.lock"), HasSubstr("folder")));
}

}  // namespace
}  // namespace systole
