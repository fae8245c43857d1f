// The server's flags, as a user would set them.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_flags.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kUsage = 2;

class ServerFlagsTest : public testing::Test {
 protected:
  void SetUp() override {
    shard_ = folder_.Write("raw-0.tfrecord", RawShard(0, 64, 784));
    spec_ = folder_.Write("raw.textproto", RawSpec(784, 1));
  }
  std::string Digest(const std::string& address) const {
    const Finished feed = RunSystole({"feed", "--server", address, "--spec", spec_, "--digest"});
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
    return feed.out;
  }

  // Starts a server, which must end because it refuses a flag in `args`.
  Finished RefusedStart(std::vector<std::string> args) const {
    const TempFolder ports;
    args.insert(args.begin(), {ServerProgram(), "--listen", "127.0.0.1:0", "--port-file",
                               ports / "a", "--dataset", absl::StrCat("raw=", shard_)});
    Process server(args);
    EXPECT_TRUE(
        WaitUntil([&] { return !server.IsRunning() || std::ifstream(ports / "a").good(); }));
    if (server.IsRunning()) server.Signal(SIGKILL);
    return server.Wait();
  }

  const TempFolder folder_;
  std::string shard_;
  std::string spec_;
};

TEST_F(ServerFlagsTest, AConfigFileNamesDatasetsAsTheFlagDoes) {
  // RawSpec() asks for a dataset of this name.
  const std::string name = "raw";
  const std::string config = folder_.Write(
      "server.textproto", absl::StrCat("datasets { name: '", name, "' shards: '", shard_, "' }"));
  const auto by_flag = ServerProcess::Start({"--dataset", absl::StrCat(name, "=", shard_)});
  const auto by_file = ServerProcess::Start({"--config", config});
  ASSERT_THAT(by_flag, IsOk());
  ASSERT_THAT(by_file, IsOk());
  const std::string digest = Digest((*by_flag)->address());
  EXPECT_NE(digest, "");
  EXPECT_EQ(Digest((*by_file)->address()), digest);
}

TEST_F(ServerFlagsTest, AnErrorInAConfigFileIsReportedWithFileAndLine) {
  const std::string config = folder_.Write("server.textproto", "datasets {\n  nmae: 'raw' }");
  const auto server = ServerProcess::Start({"--config", config});
  EXPECT_THAT(server, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("server.textproto:2:"), HasSubstr("nmae"))));
}

// This test sets several fields together. ConfigFlagsTest tests each field alone.
TEST_F(ServerFlagsTest, AConfigFileSetsFlagsAndTheCommandLineOverridesIt) {
  const std::string config = folder_.Write(
      "server.textproto",
      absl::StrCat("datasets { name: 'raw' shards: '", shard_, "' } listen: 'unix:", folder_ / "a",
                   "' port_file: '", folder_ / "port", "' threads: 3 log_format: 'json' ",
                   "memory_budget: '64MB' drain_timeout: '3s'"));
  const auto said_of = [this](std::vector<std::string> args) {
    args.insert(args.begin(), ServerProgram());
    Process server(args);
    EXPECT_TRUE(
        WaitUntil([&] { return std::ifstream(folder_ / "port").good() || !server.IsRunning(); }));
    server.Signal(SIGTERM);
    std::remove((folder_ / "port").c_str());
    return server.Wait().err;
  };
  EXPECT_THAT(
      said_of({"--config", config}),
      AllOf(HasSubstr("{\"time\""), HasSubstr("/a with 3 threads"), HasSubstr("at most 3s")));
  EXPECT_THAT(said_of({"--config", config, "--threads=2", "--log-format=text", "--listen",
                       absl::StrCat("unix:", folder_ / "b"), "--drain-timeout=4s"}),
              AllOf(Not(HasSubstr("{")), HasSubstr("/b with 2 threads"), HasSubstr("at most 4s")));
}

TEST_F(ServerFlagsTest, AConfigFileValueIsRangeCheckedLikeAFlag) {
  const std::string config = folder_.Write("server.textproto", "read_timeout: '25h'");
  EXPECT_THAT(ServerProcess::Start({"--config", config}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("server.textproto: read_timeout: '25h', want 100ms to 24h")));
}

TEST_F(ServerFlagsTest, HelpHasEveryFlagWithItsTextAndDefault) {
  const Finished help = Process({ServerProgram(), "--help"}).Wait();
  EXPECT_EQ(help.exit_code, 0);
  for (const ConfigFlag& flag : ConfigFlags()) {
    EXPECT_THAT(help.out, AllOf(HasSubstr(flag.about->help()), HasSubstr(flag.name)));
    if (flag.is_switch() || flag.about->default_value().empty()) continue;
    EXPECT_THAT(help.out, HasSubstr(absl::StrCat(flag.name, " ", flag.about->value(), "=",
                                                 flag.about->default_value())));
  }
}

// The bounds show which time a text means.
TEST_F(ServerFlagsTest, ATimeFlagTakesUnitsAndAPlainNumberIsSeconds) {
  for (const std::vector<std::string>& times :
       {std::vector<std::string>{"100ms", "86400"}, std::vector<std::string>{"0.1", "24h"}}) {
    EXPECT_THAT(ServerProcess::Start({"--dataset", absl::StrCat("raw=", shard_), "--read-timeout",
                                      times[0], "--drain-timeout", times[1]}),
                IsOk());
  }
  for (const std::string text : {"99ms", "0.099", "86401", "25h"}) {
    const Finished server = RefusedStart({"--read-timeout", text});
    EXPECT_EQ(server.exit_code, kUsage);
    EXPECT_THAT(server.err,
                HasSubstr(absl::StrCat("--read-timeout: '", text, "', want 100ms to 24h")));
  }
  const Finished server = RefusedStart({"--read-timeout", "3 apples"});
  EXPECT_EQ(server.exit_code, kUsage);
  EXPECT_THAT(server.err, HasSubstr("--read-timeout: '3 apples', want a time, such as"));
}

TEST_F(ServerFlagsTest, IndexesAreWrittenIntoTheFolderOfTheIndexDirFlag) {
  const TempFolder indexes;
  const auto server = ServerProcess::Start(
      {"--dataset", absl::StrCat("raw=", shard_), "--index-dir", indexes.path()});
  ASSERT_THAT(server, IsOk());
  EXPECT_FALSE(std::ifstream(shard_ + ".idx").good());
  EXPECT_THAT(indexes.List(), testing::Contains(testing::StartsWith("raw-0.tfrecord-")));
}

TEST_F(ServerFlagsTest, AUnixSocketServesTheSameBytes) {
  const auto tcp = ServerProcess::Start({"--dataset", absl::StrCat("raw=", shard_)});
  ASSERT_THAT(tcp, IsOk());
  const std::string address = absl::StrCat("unix:", folder_ / "socket");
  // The last --listen replaces the first.
  const auto unix_socket =
      ServerProcess::Start({"--dataset", absl::StrCat("raw=", shard_), "--listen", address});
  ASSERT_THAT(unix_socket, IsOk());
  EXPECT_EQ(Digest(address), Digest((*tcp)->address()));
}

TEST_F(ServerFlagsTest, AnInvalidFlagValueIsNamedAndTheServerExitsWith2) {
  const std::pair<std::string, std::string> cases[] = {
      {"--threads=0", "--threads: '0', want 1 to 1024"},
      {"--memory-budget=-1", "--memory-budget: '-1', want a size"},
      {"--drain-timeout=-1", "--drain-timeout: '-1', want 0 to 24h"},
      {"--insecure=maybe", "--insecure: 'maybe', want true or false"}};
  for (const auto& [flag, message] : cases) {
    const Finished server = RefusedStart({flag});
    EXPECT_EQ(server.exit_code, kUsage) << flag;
    EXPECT_THAT(server.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace systole
