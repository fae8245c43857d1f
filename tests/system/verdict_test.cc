// Tests that the real programs say what limits a feed: storage that answers late, a costly output,
// or a slow trainer.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "client/verdict/feed_verdict.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/pace.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string SmallShard(int first, int records) {
  ShardBuilder builder;
  for (int i = first; i < first + records; ++i) {
    builder.Add(ExampleBuilder().AddInt64s("cls", {i}).Serialize());
  }
  return builder.Build();
}

constexpr char kClasses[] =
    " global_batch: 8 num_cores: 2 outputs { name: 'label' feature: 'cls' dtype: INT64 }";

std::string Feed(const ServerProcess& server, const std::string& spec, bool json) {
  std::vector<std::string> args = {"feed", "--server", server.address(), "--spec", spec};
  if (json) args.push_back("--json");
  const Finished fed = RunSystole(args);
  EXPECT_EQ(fed.exit_code, 0) << fed.err;
  return fed.out;
}

TEST(VerdictTest, StorageThatAnswersLateIsTheLimit) {
  const TempFolder folder;
  StubObjects objects;
  constexpr int kSteps = 24;
  // With more threads, all steps could wait for storage at the same time. Then the trainer would
  // wait only once.
  std::vector<std::string> args = {"--threads", "1"};
  for (int i = 0; i < kSteps; ++i) {
    args.push_back("--dataset");
    args.push_back(absl::StrCat(
        "web=", objects.Put(absl::StrFormat("/shard-%02d.tfrecord", i), SmallShard(8 * i, 8))));
  }
  const auto server = ServerProcess::Start(args);
  ASSERT_THAT(server, IsOk());
  // From here on, each request takes longer than everything else that a step needs.
  objects.SetFault([](const StubRequest&) -> std::optional<StubAnswer> {
    PaceUntil(SteadyClock()() + absl::Milliseconds(150), {});
    return std::nullopt;
  });
  const std::string spec =
      folder.Write("spec.textproto", absl::StrCat("dataset: 'web' epochs: 1", kClasses));
  EXPECT_THAT(Feed(**server, spec, /*json=*/true), HasSubstr("\"limit\":\"storage\""));
}

TEST(VerdictTest, ACostlyOutputIsTheLimitAndIsNamedWithItsOperation) {
  const TempFolder folder;
  PackFlowers(folder, /*images=*/12, /*shards=*/1);
  const auto server = ServerProcess::Start(
      {"--dataset", absl::StrCat("flowers=", folder.path(), "/flowers-train-*"), "--threads", "1"});
  ASSERT_THAT(server, IsOk());
  const std::string spec = folder.Write(
      "spec.textproto",
      // The picture of an example takes a tenth of a second. This is a hundred times as long as
      // everything else that a step needs.
      "dataset: 'flowers' epochs: 1 global_batch: 2 num_cores: 2 "
      "outputs { name: 'label' feature: 'label' dtype: INT32 } "
      "outputs { name: 'picture' feature: 'image' dtype: FLOAT32 "
      "  transforms { decode_jpeg {} } transforms { resize { height: 2048 width: 2048 } } "
      "  transforms { resize { height: 8 width: 8 } } }");
  EXPECT_THAT(Feed(**server, spec, /*json=*/true),
              AllOf(HasSubstr("\"limit\":\"decode\""), HasSubstr("\"limit_output\":\"picture\""),
                    HasSubstr("\"limit_operation\":\"resize\"")));
  EXPECT_THAT(Feed(**server, spec, /*json=*/false),
              AllOf(HasSubstr("The trainer waited "),
                    HasSubstr("for decode (output picture, operation resize).")));
}

TEST(VerdictTest, ATrainerThatFindsItsStepsReadyIsTheLimit) {
  const TempFolder folder;
  folder.Write("a.tfrecord", SmallShard(0, 240));
  const auto server =
      ServerProcess::Start({"--dataset", absl::StrCat("files=", folder.path(), "/a.tfrecord")});
  ASSERT_THAT(server, IsOk());
  absl::StatusOr<std::unique_ptr<FeedClient>> feed =
      FeedClient::Create(SpecFromText(absl::StrCat("dataset: 'files' epochs: 1", kClasses)),
                         {.servers = {(*server)->address()}});
  ASSERT_THAT(feed, IsOk());
  const int64_t end = (*feed)->end_step();
  for (int64_t step = 0; step < end; ++step) {
    // The trainer works until the window is full, and then for the same time again.
    const MonotonicClock clock = SteadyClock();
    const absl::Duration begin = clock();
    const int64_t there = std::min(end, step + (*feed)->window_steps());
    ASSERT_TRUE(WaitUntil([&] { return (*feed)->stats().steps_received == there; }));
    PaceUntil(clock() + (clock() - begin), {});
    ASSERT_THAT((*feed)->Next(), IsOk());
  }
  const FeedWaits waits = (*feed)->stats().waits;
  EXPECT_EQ(waits.verdict.limit, FeedLimit::kTrainer) << waits.verdict.waits;
}

}  // namespace
}  // namespace systole
