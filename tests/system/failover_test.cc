// While a feed runs, servers are killed or drained. The trainer sees the same steps.
#include <signal.h>

#include <chrono>
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

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int kRecordBytes = 64 << 10;
// A step has 4 MiB, and all steps together have 640 MiB. A client prefetches less than 640 MiB. So
// while nobody reads a feed's output, the feed has steps that are not fetched yet.
constexpr int kSteps = 160;

class FailoverTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    folder_->Write("raw-0.tfrecord", RawShard(0, 32, kRecordBytes));
    folder_->Write("raw-1.tfrecord", RawShard(32, 32, kRecordBytes));
    spec_ = folder_->Write("spec.textproto", RawSpec(kRecordBytes, /*epochs=*/kSteps));
  }
  static void TearDownTestSuite() { delete folder_; }

  static absl::StatusOr<std::unique_ptr<ServerProcess>> Serve(
      const std::vector<std::string>& args = {}) {
    std::vector<std::string> all = {"--dataset", absl::StrCat("raw=", *folder_ / "raw-*.tfrecord")};
    all.insert(all.end(), args.begin(), args.end());
    return ServerProcess::Start(all);
  }

  static std::vector<std::string> FeedArgs(const std::string& servers) {
    return {"feed", "--server", servers,   "--spec",
            spec_,  "--digest", "--steps", absl::StrCat(kSteps)};
  }

  // Starts a feed and reads its first line. Then the feed waits until somebody reads more lines.
  static std::unique_ptr<Process> FeedInMidStream(const std::string& servers, std::string* line) {
    std::vector<std::string> args = FeedArgs(servers);
    args.insert(args.begin(), SystoleProgram());
    auto feed = std::make_unique<Process>(args, ProcessOptions{.stdout_pipe_bytes = 4096});
    *line = feed->ReadLine();
    return feed;
  }

  static std::string Reference() {
    static const std::string* const reference = [] {
      const auto server = Serve();
      EXPECT_THAT(server, IsOk());
      return new std::string(server.ok() ? RunSystole(FeedArgs((*server)->address())).out : "");
    }();
    return *reference;
  }

  static TempFolder* folder_;
  static std::string spec_;
};
TempFolder* FailoverTest::folder_ = nullptr;
std::string FailoverTest::spec_;

TEST_F(FailoverTest, AnotherServerTakesOverFromAKilledOne) {
  ASSERT_EQ(Lines(Reference()).size(), 8u * kSteps);
  const auto doomed = Serve();
  const auto other = Serve();
  ASSERT_THAT(doomed, IsOk());
  ASSERT_THAT(other, IsOk());
  std::string line;
  const std::unique_ptr<Process> feed =
      FeedInMidStream(absl::StrCat((*doomed)->address(), ",", (*other)->address()), &line);
  (*doomed)->process().Signal(SIGKILL);
  EXPECT_EQ((*doomed)->process().Wait().signal, SIGKILL);
  EXPECT_TRUE(feed->IsRunning());
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, Reference());
}

TEST_F(FailoverTest, ALostServerIsLoggedOnStderrAsTextOrJsonOrNotAtAll) {
  for (const std::string format : {"text", "json", "none"}) {
    const auto doomed = Serve();
    const auto other = Serve();
    ASSERT_THAT(doomed, IsOk());
    ASSERT_THAT(other, IsOk());
    const std::string lost = (*doomed)->address();
    std::vector<std::string> args = FeedArgs(absl::StrCat(lost, ",", (*other)->address()));
    args.insert(args.begin(), SystoleProgram());
    args.insert(args.end(), {"--log-format", format});
    Process feed(args, ProcessOptions{.stdout_pipe_bytes = 4096});
    feed.ReadLine();
    (*doomed)->process().Signal(SIGKILL);
    const Finished finished = feed.Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    const std::string text = absl::StrCat("server ", lost, " was lost at step ");
    if (format == "text") {
      EXPECT_THAT(finished.err, HasSubstr("warning: " + text));
    } else if (format == "json") {
      EXPECT_THAT(finished.err,
                  ContainsRegex(absl::StrCat(
                      R"(\{"time":"[^"]*","level":"warn","cause":"server_lost",)", R"("message":")",
                      text, R"([0-9]+: [^"]*","feed":"[0-9a-f]{16}",)", R"("server":")", lost,
                      R"(","dataset":"raw","step":[0-9]+\})")));
    } else {
      EXPECT_THAT(finished.err, Not(HasSubstr(lost)));
    }
  }
}

TEST_F(FailoverTest, AServerThatDrainsHandsItsStreamsOver) {
  const auto leaving = Serve();
  const auto other = Serve();
  ASSERT_THAT(leaving, IsOk());
  ASSERT_THAT(other, IsOk());
  std::string line;
  const std::unique_ptr<Process> feed =
      FeedInMidStream(absl::StrCat((*leaving)->address(), ",", (*other)->address()), &line);
  (*leaving)->process().Signal(SIGTERM);
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, Reference());
  const Finished server = (*leaving)->process().Wait();
  EXPECT_EQ(server.exit_code, 0) << server.err;
}

TEST_F(FailoverTest, AnIdleServerEndsOnSigterm) {
  const auto server = Serve();
  ASSERT_THAT(server, IsOk());
  (*server)->process().Signal(SIGTERM);
  EXPECT_EQ((*server)->process().Wait().exit_code, 0);
}

TEST_F(FailoverTest, AClientThatStoppedReadingDoesNotHoldADrainingServer) {
  const auto server = Serve({"--drain-timeout", "1"});
  ASSERT_THAT(server, IsOk());
  std::string line;
  const std::unique_ptr<Process> feed = FeedInMidStream((*server)->address(), &line);
  feed->Signal(SIGSTOP);
  (*server)->process().Signal(SIGTERM);
  // The test waits for less than the 180 s after which the kernel would end the connection of a
  // client that does not read (silence_timeout of server/listener/listener.h).
  EXPECT_TRUE(WaitUntil([&] { return !(*server)->process().IsRunning(); },
                        /*longest=*/std::chrono::seconds(90)));
  const Finished finished = (*server)->process().Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
}

}  // namespace
}  // namespace systole
