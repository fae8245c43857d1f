// Throttles each thing that can limit a feed. The feed's verdict must name the throttled thing, and
// a throttle must not change a byte.
//
// A throttle adds a quarter of a second to a step. The slow processor takes an eighth of a second
// of processor time instead, which lasts longer on a busy machine. Everything else that a step
// needs takes some milliseconds. So the verdict does not depend on how busy the machine is.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/core/http/stub_objects.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kThrottle = absl::Milliseconds(250);
constexpr int kSteps = 4;
constexpr int kCores = 8;
constexpr int kRecordBytes = 1 << 10;
constexpr int64_t kStepBytes = int64_t{kChaosRecords} * kRecordBytes;

class VerdictTest : public ChaosTest {
 protected:
  VerdictTest() : ChaosTest(kRecordBytes) {}

  // Starts a server whose storage takes 20 ms for each record. The server reads four records at a
  // time.
  void AddServerOfSlowFiles() {
    const std::string order = folder_.Write("order", "slow raw-");
    AddServer({}, {.environment = {absl::StrCat("LD_PRELOAD=", SYSTOLE_STORAGE_SHIM),
                                   absl::StrCat("SYSTOLE_SHIM=", order)}});
  }

  std::vector<std::string> Command(const std::vector<std::string>& more) const {
    std::vector<std::string> args = {SystoleProgram(), "feed",    "--server",
                                     Servers(),        "--steps", absl::StrCat(kSteps)};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  Finished Feed(const std::vector<std::string>& more, const ProcessOptions& options = {}) const {
    Process feed(Command(more), options);
    Finished finished = feed.Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished;
  }
  // The lines that the feed of this spec prints without a throttle between it and `server`.
  std::string Unthrottled(const std::string& server, const std::string& spec,
                          const std::string& what) const {
    const Finished finished = RunSystole(
        {"feed", "--server", server, "--spec", spec, "--steps", absl::StrCat(kSteps), what});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out;
  }
  void ExpectLimit(const std::string& limit, const ProcessOptions& options = {}) {
    // Hedging is off. With hedging, another server could send a step that is late, and the feed
    // would learn only a part of what the late server did.
    EXPECT_THAT(Feed({"--spec", spec_path_, "--json", "--hedge-fraction", "0"}, options).out,
                HasSubstr(absl::StrCat("\"limit\":\"", limit, "\"")));
    Process feed(FeedArgs(/*steps=*/2, {}), options);
    ExpectUndisturbed(feed, 2);
  }

  // Runs a feed whose trainer prints each step, and then works on the step until `work` returns.
  // Expects `remark` in what the feed writes to stderr.
  template <typename Work>
  void ExpectRemarkIfTrainer(Work work, const std::string& remark) {
    Process feed(Command({"--spec", spec_path_, "--print=bytes"}), {.stdout_pipe_bytes = 4096});
    std::string printed;
    for (int step = 0; step < kSteps; ++step) {
      // The pipe does not hold a whole line of a core, so the trainer cannot finish the last core's
      // line of the step before ReadLine() reads it.
      for (int core = 0; core < kCores; ++core) {
        if (core == kCores - 1) work(step);
        printed += feed.ReadLine();
      }
    }
    const Finished finished = feed.Wait();
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(remark));
    EXPECT_EQ(printed + finished.out, Unthrottled(address(0), spec_path_, "--print=bytes"));
  }
  // Whether the proxy has passed on this many bytes to the trainer.
  bool HasCome(int64_t bytes) { return proxy(0).passed() >= bytes; }
};

TEST_F(VerdictTest, SlowFilesAreReportedAsTheStorageLimit) {
  AddServerOfSlowFiles();
  ExpectLimit("storage");
}

TEST_F(VerdictTest, SlowFilesOfOneOfTwoServersAreReportedAsTheStorageLimit) {
  AddServer();
  AddServerOfSlowFiles();
  ExpectLimit("storage");
}

TEST_F(VerdictTest, ASlowWebServerIsReportedAsTheStorageLimit) {
  // Each step is a shard, and the web server answers one request at a time.
  StubObjects objects;
  constexpr int kShards = kSteps + 2;
  std::vector<std::string> args = {"--dataset", absl::StrCat("files=", folder_ / "far-*.tfrecord")};
  for (int i = 0; i < kShards; ++i) {
    const std::string shard = RawShard(i * kChaosRecords, kChaosRecords, kRecordBytes);
    const std::string name = absl::StrCat("far-", i, ".tfrecord");
    folder_.Write(name, shard);
    args.insert(args.end(), {"--dataset", absl::StrCat("web=", objects.Put("/" + name, shard))});
  }
  AddServer(args);
  Mutex one_at_a_time;
  objects.SetFault([&](const StubRequest&) -> std::optional<StubAnswer> {
    MutexLock lock(one_at_a_time);
    absl::SleepFor(kThrottle);
    return std::nullopt;
  });
  const auto spec = [&](const std::string& dataset) {
    return folder_.Write(
        dataset + ".textproto",
        absl::StrReplaceAll(ChaosSpec(dataset, kRecordBytes), {{"shuffle { mode: GLOBAL }", ""}}));
  };
  EXPECT_THAT(Feed({"--spec", spec("web"), "--json"}).out, HasSubstr("\"limit\":\"storage\""));
  EXPECT_EQ(Feed({"--spec", spec("web"), "--digest=example"}).out,
            Unthrottled(address(0), spec("files"), "--digest=example"));
}

TEST_F(VerdictTest, ACostlyOutputIsReportedAsTheDecodeLimit) {
  PackFlowers(folder_, /*images=*/8, /*shards=*/1);
  const std::string flowers = absl::StrCat("flowers=", folder_.path(), "/flowers-train-*");
  AddServer({"--dataset", flowers});
  // An example of `picture` takes the server's only thread 60 ms.
  const std::string spec = folder_.Write(
      "costly.textproto",
      "dataset: 'flowers' epochs: 0 global_batch: 2 num_cores: 2 "
      "outputs { name: 'label' feature: 'label' dtype: INT32 } "
      "outputs { name: 'picture' feature: 'image' dtype: FLOAT32 "
      "  transforms { decode_jpeg {} } transforms { resize { height: 2048 width: 2048 } } "
      "  transforms { resize { height: 8 width: 8 } } } "
      "outputs { name: 'corner' feature: 'image' dtype: UINT8 "
      "  transforms { decode_jpeg {} } transforms { crop { height: 8 width: 8 } } }");
  EXPECT_THAT(Feed({"--spec", spec, "--json"}).out,
              AllOf(HasSubstr("\"limit\":\"decode\""), HasSubstr("\"limit_output\":\"picture\"")));
  const auto server = ServerProcess::Start({"--dataset", flowers});
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ(Feed({"--spec", spec, "--digest=example"}).out,
            Unthrottled((*server)->address(), spec, "--digest=example"));
}

TEST_F(VerdictTest, LowNetworkBandwidthIsReportedAsTheWireLimit) {
  AddServer();
  SetAll({.bytes_per_second = 4 * kStepBytes});
  ExpectLimit("wire");
}

TEST_F(VerdictTest, ASlowClientProcessorIsReportedAsTheClientLimit) {
  AddServer();
  ExpectLimit("client", {.environment = {absl::StrCat("LD_PRELOAD=", SYSTOLE_SLOW_CHECKSUM)}});
}

TEST_F(VerdictTest, ForASlowTrainerTheFeedReportsThatStepsWereReadyInTime) {
  AddServer();
  ExpectRemarkIfTrainer(
      [&](int step) {
        // After the next step has come, the trainer works for longer than that step took to come.
        // So the step is ready during at least half of the trainer's work.
        const absl::Time begin = absl::Now();
        const int64_t there = std::min(kSteps, step + 2) * kStepBytes;
        EXPECT_TRUE(WaitUntil([&] { return HasCome(there); }));
        absl::SleepFor(absl::Now() - begin + kThrottle);
      },
      "steps were ready before the trainer asked for them.");
}

TEST_F(VerdictTest, ForStepsThatComeJustInTimeTheFeedReportsThatItKeptUp) {
  AddServer();
  // Slightly more bytes than a step has together with the headers of its chunks and frames.
  constexpr int64_t kGranted = kStepBytes * 21 / 20;
  int64_t come = 0;
  proxy(0).Grant(kGranted);
  ExpectRemarkIfTrainer(
      [&](int step) {
        // The trainer's work ends one kThrottle after the next step has come. The step comes after
        // about three quarters of the work.
        absl::SleepFor(3 * kThrottle);
        proxy(0).Grant(kGranted);
        if (step + 1 == kSteps) return;
        come += kGranted;
        EXPECT_TRUE(WaitUntil([&] { return HasCome(std::min(come, kSteps * kStepBytes)); }));
        absl::SleepFor(kThrottle);
      },
      "the feed just kept up.");
}

}  // namespace
}  // namespace systole
