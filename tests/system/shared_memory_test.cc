// Tests shared memory with the real programs on one machine. Shared memory brings the same bytes as
// TCP. If a server drains or is killed, its client loses no step. If a client is killed, the server
// frees the memory that the client held.
#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A slice has 512 KiB, a step has 4 MiB, and all steps together have 640 MiB. This is more than a
// client prefetches.
constexpr int kRecordBytes = 64 << 10;
constexpr int kSteps = 160;

class SystemSharedMemoryTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    // 61 records leave 3 places of a step of 64 empty. One of the 61 is damaged, so it is masked.
    folder_->Write("raw-0.tfrecord", RawShard(0, 40, kRecordBytes));
    folder_->Write("raw-1.tfrecord", RawShard(40, 20, kRecordBytes));
    std::string damaged = RawShard(0, 1, kRecordBytes);
    damaged[kRecordBytes / 2] ^= 1;
    folder_->Write("raw-2.tfrecord", damaged);
    spec_ = folder_->Write("spec.textproto",
                           RawSpec(kRecordBytes, /*epochs=*/kSteps) + "tail: PAD on_corrupt: MASK");
  }
  static void TearDownTestSuite() { delete folder_; }

  // Starts a server on the Unix socket `socket`, or on TCP if `socket` is empty.
  static std::unique_ptr<ServerProcess> Serve(const std::string& socket,
                                              const std::vector<std::string>& args = {}) {
    std::vector<std::string> all = {"--dataset", absl::StrCat("raw=", *folder_ / "raw-*.tfrecord")};
    if (!socket.empty()) all.insert(all.end(), {"--listen", Address(socket)});
    all.insert(all.end(), args.begin(), args.end());
    auto server = ServerProcess::Start(all);
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }
  static std::string Address(const std::string& socket) {
    return absl::StrCat("unix:", *folder_ / socket);
  }

  static std::vector<std::string> FeedArgs(const std::string& servers, int steps = kSteps) {
    return {"feed", "--server", servers, "--spec", spec_, "--steps", absl::StrCat(steps)};
  }
  static std::string Digest(const std::string& servers, const std::vector<std::string>& more = {},
                            int steps = kSteps) {
    std::vector<std::string> args = FeedArgs(servers, steps);
    args.push_back("--digest");
    args.insert(args.end(), more.begin(), more.end());
    const Finished feed = RunSystole(args);
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
    return feed.out;
  }
  // Starts a feed and reads its first line. Then the feed waits until somebody reads more lines.
  static std::unique_ptr<Process> FeedInMidStream(const std::string& servers, std::string* line) {
    std::vector<std::string> args = FeedArgs(servers);
    args.insert(args.begin(), SystoleProgram());
    args.push_back("--digest");
    auto feed = std::make_unique<Process>(args, ProcessOptions{.stdout_pipe_bytes = 4096});
    *line = feed->ReadLine();
    return feed;
  }

  // The digests of a feed over TCP from a server with one thread.
  static std::string Reference() {
    static const std::string* const reference = [] {
      const auto server = Serve("", {"--threads", "1"});
      return new std::string(server != nullptr ? Digest(server->address()) : "");
    }();
    return *reference;
  }

  static v1::ServerStatusResponse StatusOf(const std::string& socket) {
    const auto stub = v1::Systole::NewStub(
        grpc::CreateChannel(Address(socket), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::ServerStatusResponse status;
    EXPECT_TRUE(stub->ServerStatus(&context, {}, &status).ok());
    return status;
  }

  static TempFolder* folder_;
  static std::string spec_;
};
TempFolder* SystemSharedMemoryTest::folder_ = nullptr;
std::string SystemSharedMemoryTest::spec_;

TEST_F(SystemSharedMemoryTest, TheStepsAreTheSameWithSharedMemoryWithoutItAndOverTcp) {
  ASSERT_EQ(Lines(Reference()).size(), 8u * kSteps);
  for (const std::string threads : {"1", "8"}) {
    const auto server = Serve("digest", {"--threads", threads});
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(Digest(Address("digest")), Reference()) << threads;
    EXPECT_EQ(Digest(Address("digest"), {"--no-shared-memory"}), Reference()) << threads;
  }
  const auto server = Serve("off", {"--no-shared-memory"});
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(Digest(Address("off")), Reference());
}

TEST_F(SystemSharedMemoryTest, FeedReportsSharedBytesAndWhyBatchesWereNotShared) {
  const auto sharing = Serve("tells");
  const auto sending = Serve("sends", {"--no-shared-memory"});
  ASSERT_TRUE(sharing != nullptr && sending != nullptr);
  constexpr int64_t kBytes = int64_t{kSteps} * 8 * (8 * kRecordBytes + 8);
  std::vector<std::string> args = FeedArgs(Address("tells"));
  EXPECT_THAT(RunSystole(args).out,
              AllOf(HasSubstr("  shared payload     671.1 MB\n"), Not(HasSubstr("shared memory"))));
  args.push_back("--json");
  EXPECT_THAT(RunSystole(args).out,
              AllOf(HasSubstr(absl::StrCat("\"shared_payload_bytes\":", kBytes, ",")),
                    HasSubstr("\"not_shared\":\"\",")));
  args.push_back("--no-shared-memory");
  EXPECT_THAT(RunSystole(args).out,
              AllOf(HasSubstr("\"shared_payload_bytes\":0,"),
                    HasSubstr("\"not_shared\":\"shared memory is switched off at this client")));

  args = FeedArgs(Address("sends"), /*steps=*/10);
  EXPECT_THAT(RunSystole(args).out,
              HasSubstr("\nnote: not all batches came through shared memory: no server shares "
                        "memory at '"));
  EXPECT_THAT(sending->process().err(),
              HasSubstr("batches are sent, not shared: sharing is switched off"));
}

TEST_F(SystemSharedMemoryTest, TheServerLogsOnceWhyBatchesAreNotShared) {
  const auto server = Serve("once");
  ASSERT_NE(server, nullptr);
  // Each core has one record.
  const std::string spec =
      folder_->Write("small.textproto", absl::StrReplaceAll(RawSpec(kRecordBytes, /*epochs=*/1),
                                                            {{"num_cores: 8", "num_cores: 64"}}) +
                                            "tail: PAD on_corrupt: MASK");
  const std::vector<std::string> args = {"feed", "--server", Address("once"), "--spec", spec};
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(RunSystole(args).out, HasSubstr("through shared memory: the slices are so small"));
  }
  const std::string log = server->process().err();
  const std::string line =
      "batches are sent to a client on this machine, not shared: the slices are so small";
  const size_t first = log.find(line);
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(line, first + 1), std::string::npos) << log;
}

TEST_F(SystemSharedMemoryTest, AResumedRunOverSharedMemoryHasTheSameDigests) {
  const auto server = Serve("resume");
  ASSERT_NE(server, nullptr);
  const std::string head = Digest(Address("resume"), {}, /*steps=*/7);
  const std::string tail = Digest(Address("resume"), {"--first-step", "7"}, kSteps - 7);
  EXPECT_EQ(head + tail, Reference());
}

TEST_F(SystemSharedMemoryTest, AKilledClientLeavesNothingInTheServersMemory) {
  const auto server = Serve("killed");
  ASSERT_NE(server, nullptr);
  for (int i = 0; i < 3; ++i) {
    std::string line;
    const std::unique_ptr<Process> feed = FeedInMidStream(Address("killed"), &line);
    EXPECT_GT(MetricOf(StatusOf("killed"), "shared_payload_bytes"), 0);
    feed->Signal(SIGKILL);
    EXPECT_EQ(feed->Wait().signal, SIGKILL);
    EXPECT_TRUE(WaitUntil([] { return MetricOf(StatusOf("killed"), "memory_used_bytes") == 0; }));
  }
}

TEST_F(SystemSharedMemoryTest, AnotherServerTakesOverFromAKilledOne) {
  auto doomed = Serve("doomed");
  const auto other = Serve("");
  ASSERT_TRUE(doomed != nullptr && other != nullptr);
  std::string line;
  const std::unique_ptr<Process> feed =
      FeedInMidStream(absl::StrCat(Address("doomed"), ",", other->address()), &line);
  doomed->process().Signal(SIGKILL);
  doomed->process().Wait();
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, Reference());
}

TEST_F(SystemSharedMemoryTest, ARestartedServerTakesOverTheStaleSocketsOfAKilledServer) {
  auto first = Serve("again");
  ASSERT_NE(first, nullptr);
  std::string line;
  const std::unique_ptr<Process> feed = FeedInMidStream(Address("again"), &line);
  first->process().Signal(SIGKILL);
  first->process().Wait();
  const auto second = Serve("again");
  ASSERT_NE(second, nullptr);
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, Reference());
  EXPECT_GT(MetricOf(StatusOf("again"), "shared_payload_bytes"), 0);
}

TEST_F(SystemSharedMemoryTest, AServerThatDrainsHandsItsStreamOver) {
  const auto leaving = Serve("leaving");
  const auto other = Serve("staying");
  ASSERT_TRUE(leaving != nullptr && other != nullptr);
  std::string line;
  const std::unique_ptr<Process> feed =
      FeedInMidStream(absl::StrCat(Address("leaving"), ",", Address("staying")), &line);
  leaving->process().Signal(SIGTERM);
  const Finished finished = feed->Wait();
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(line + finished.out, Reference());
  EXPECT_EQ(leaving->process().Wait().exit_code, 0);
}

}  // namespace
}  // namespace systole
