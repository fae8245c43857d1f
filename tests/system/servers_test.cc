// Servers hang, join and leave while a feed runs. The trainer sees the same steps.
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::ContainsRegex;

constexpr int kRecordBytes = 64 << 10;
// A step has 4 MiB, and all steps together have 640 MiB. A client prefetches less than 640 MiB. So
// while nobody reads a feed's output, the feed has steps that are not fetched yet.
constexpr int kSteps = 160;

class ServersTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    folder_->Write("raw-0.tfrecord", RawShard(0, 32, kRecordBytes));
    folder_->Write("raw-1.tfrecord", RawShard(32, 32, kRecordBytes));
    spec_ = folder_->Write("spec.textproto", RawSpec(kRecordBytes, /*epochs=*/kSteps));
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::unique_ptr<ServerProcess> MustServe() {
    auto server =
        ServerProcess::Start({"--dataset", absl::StrCat("raw=", *folder_ / "raw-*.tfrecord")});
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }

  static std::vector<std::string> FeedArgs(const std::string& servers) {
    return {"feed", "--server", servers,   "--spec",
            spec_,  "--digest", "--steps", absl::StrCat(kSteps)};
  }

  // Starts a feed and reads its first line. Then the feed waits until somebody reads more lines.
  static std::unique_ptr<Process> FeedInMidStream(const std::string& servers, std::string* line,
                                                  const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = FeedArgs(servers);
    args.insert(args.begin(), SystoleProgram());
    args.insert(args.end(), more.begin(), more.end());
    auto feed = std::make_unique<Process>(args, ProcessOptions{.stdout_pipe_bytes = 4096});
    *line = feed->ReadLine();
    return feed;
  }

  static TempFolder* folder_;
  static std::string spec_;
};
TempFolder* ServersTest::folder_ = nullptr;
std::string ServersTest::spec_;

TEST_F(ServersTest, AStoppedServerIsAbandonedBeforeTheSilenceTimeout) {
  const auto goes_on = MustServe();
  const auto stops = MustServe();
  ASSERT_NE(goes_on, nullptr);
  ASSERT_NE(stops, nullptr);
  const std::string reference = RunSystole(FeedArgs(goes_on->address())).out;
  ASSERT_EQ(Lines(reference).size(), 8u * kSteps);
  std::string line;
  // The silence timeout is ten hours, so the test fails if the feed waits for it.
  const std::unique_ptr<Process> feed =
      FeedInMidStream(absl::StrCat(goes_on->address(), ",", stops->address()), &line,
                      {"--silence-timeout", "36000", "--retry-for", "36000"});
  stops->process().Signal(SIGSTOP);
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, reference);
}

TEST_F(ServersTest, APausedTrainerContinuesWithoutLosingStepsOrTimingOut) {
  const auto server = MustServe();
  ASSERT_NE(server, nullptr);
  const std::string reference = RunSystole(FeedArgs(server->address())).out;
  std::string line;
  const std::unique_ptr<Process> feed =
      FeedInMidStream(server->address(), &line, {"--retry-for", "5", "--silence-timeout", "5"});
  feed->Signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(8));  // Longer than both timeouts.
  feed->Signal(SIGCONT);
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, reference);
}

TEST_F(ServersTest, AFeedFollowsChangesOfItsServerListFile) {
  auto leaves = MustServe();
  ASSERT_NE(leaves, nullptr);
  const std::string reference = RunSystole(FeedArgs(leaves->address())).out;
  const std::string list = folder_->Write("servers", leaves->address() + "\n");
  std::string line;
  const std::unique_ptr<Process> feed = FeedInMidStream("file:" + list, &line);
  const auto joins = MustServe();
  ASSERT_NE(joins, nullptr);
  folder_->Write("servers", joins->address() + "  # the other one has gone\n");
  leaves->process().Signal(SIGKILL);
  EXPECT_EQ(leaves->process().Wait().signal, SIGKILL);
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, reference);
  EXPECT_THAT(finished.err, ContainsRegex("\n  membership changes +2\n"));
}

// With --digest the feed prints its metrics to stderr, except those that are 0.
TEST_F(ServersTest, AFeedCountsALostServerAndAServerThatJoins) {
  const auto stops = MustServe();
  ASSERT_NE(stops, nullptr);
  const std::string list = folder_->Write("servers", stops->address() + "\n");
  std::string line;
  const std::unique_ptr<Process> feed = FeedInMidStream("file:" + list, &line);
  stops->process().Signal(SIGKILL);
  EXPECT_EQ(stops->process().Wait().signal, SIGKILL);
  const auto joins = MustServe();
  ASSERT_NE(joins, nullptr);
  folder_->Write("servers", absl::StrCat(stops->address(), "\n", joins->address(), "\n"));
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.err, ContainsRegex("\n  streams lost +[1-9]"));
  EXPECT_THAT(finished.err, ContainsRegex("\n  retries +[1-9]"));
  EXPECT_THAT(finished.err, ContainsRegex("\n  membership changes +1\n"));
}

TEST_F(ServersTest, AFeedLooksUpTheNameInAnAddressWithTheDnsScheme) {
  const auto server = MustServe();
  ASSERT_NE(server, nullptr);
  const Finished plain = RunSystole(FeedArgs(server->address()));
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  const std::string port = server->address().substr(server->address().find(':'));
  const Finished named = RunSystole(FeedArgs("dns:///localhost" + port));
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(named.out, plain.out);
}

TEST_F(ServersTest, FeedJsonHasFieldsForRetriesHedgesAndServerChanges) {
  const auto server = MustServe();
  ASSERT_NE(server, nullptr);
  const Finished finished = RunSystole(
      {"feed", "--server", server->address(), "--spec", spec_, "--steps", "3", "--json"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  for (const char* field : {"retries", "hedges_won", "hedges_lost", "relieved_steps", "probes",
                            "membership_changes", "bad_server_lists", "longest_wait_seconds"}) {
    EXPECT_THAT(finished.out, testing::HasSubstr(absl::StrCat("\"", field, "\""))) << field;
  }
}

}  // namespace
}  // namespace systole
