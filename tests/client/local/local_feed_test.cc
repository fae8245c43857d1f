#include "client/local/local_feed.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/verdict/feed_verdict.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/pace.h"
#include "core/concurrency/thread_times.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "core/storage/byte_source.h"
#include "core/storage/memory_source.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/metric_of.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::FeedSpec SpecOf(const std::string& more, const std::string& outputs = AllOutputs()) {
  return SpecFromText(
      absl::StrCat("dataset: 'test' seed: 3 shuffle { mode: GLOBAL } ", more, outputs));
}

constexpr char kEightCores[] = "global_batch: 16 num_cores: 8 epochs: 2 tail: PAD ";

// Outputs whose first dimension counts the examples.
std::string BatchFirstOutputs() {
  return R"pb(
    outputs {
      name: "image"
      feature: "image"
      transforms { decode_jpeg {} }
      transforms { random_resized_crop { height: 9 width: 7 } }
      dtype: FLOAT32
    }
    outputs { name: "id" feature: "record_id" dtype: INT64 }
  )pb";
}

// The digests of the slices that a StepEngine makes one by one, in the order of (step, core).
std::vector<std::string> EngineDigests(const v1::FeedSpec& spec,
                                       const std::shared_ptr<const Dataset>& dataset,
                                       int core_begin, int core_end) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(spec, dataset);
  EXPECT_THAT(plan, IsOk());
  StepEngine engine({.threads = 2});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(*plan, {.count = 1000, .core_begin = core_begin, .core_end = core_end});
  EXPECT_THAT(stream, IsOk());
  std::vector<std::string> digests;
  while (true) {
    StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return digests;
    digests.push_back(SliceDigest((**slice)->layout(), (**slice)->data()));
  }
}

std::unique_ptr<LocalFeed> MustCreate(const v1::FeedSpec& spec,
                                      const std::shared_ptr<const Dataset>& dataset,
                                      const LocalFeedOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<LocalFeed>> feed = LocalFeed::Create(spec, dataset, options);
  EXPECT_THAT(feed, IsOk());
  return *std::move(feed);
}

std::vector<std::string> Drain(Feed& feed) {
  std::vector<std::string> digests;
  while (true) {
    absl::StatusOr<std::optional<Step>> step = feed.Next();
    EXPECT_THAT(step, IsOk());
    if (!step.ok() || !step->has_value()) return digests;
    for (int core = feed.core_begin(); core < feed.core_end(); ++core) {
      digests.push_back(StepDigest(**step, core));
    }
  }
}

TEST(LocalFeedTest, AMisspeltFeatureOfAWhereIsRefusedAtEveryTry) {
  const auto dataset = OpenTestDataset(TestShards({20, 7}));
  const v1::FeedSpec spec =
      SpecOf(absl::StrCat(kEightCores, "select { where { feature: 'lable' present: false } } "));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(LocalFeed::Create(spec, dataset, {}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("did you mean 'label'?")));
  }
}

TEST(LocalFeedTest, StepsAreThoseOfTheEngineForEveryRangeOfCores) {
  const auto dataset = OpenTestDataset(TestShards({20, 0, 17}));
  for (const std::string& outputs : {AllOutputs(), BatchFirstOutputs()}) {
    const v1::FeedSpec spec = SpecOf(kEightCores, outputs);
    for (const auto& [begin, end] :
         std::vector<std::pair<int, int>>{{0, 8}, {0, 4}, {6, 8}, {7, 8}, {1, 3}, {2, 5}}) {
      SCOPED_TRACE(absl::StrCat(begin, ":", end));
      const auto feed =
          MustCreate(spec, dataset, {.threads = 2, .core_begin = begin, .core_end = end});
      EXPECT_EQ(Drain(*feed), EngineDigests(spec, dataset, begin, end));
    }
  }
}

TEST(LocalFeedTest, ShardsMayLieInTheMemoryOfTheProcess) {
  const std::vector<std::string> shards = TestShards({20, 17});
  for (size_t i = 0; i < shards.size(); ++i) {
    ASSERT_THAT(PutStored(absl::StrCat("mem://local-feed/", i, ".tfrecord"), shards[i]), IsOk());
  }
  const auto dataset = Dataset::Open("test", {"mem://local-feed/*"});
  ASSERT_THAT(dataset, IsOk());
  const auto feed = MustCreate(SpecOf(kEightCores), *dataset);
  EXPECT_EQ(Drain(*feed), EngineDigests(SpecOf(kEightCores), OpenTestDataset(shards), 0, 8));
}

TEST(LocalFeedTest, ShardsMayLieOnAWebServerThatFailsNowAndThen) {
  const std::vector<std::string> shards = TestShards({20, 17});
  StubObjects objects;
  std::vector<std::string> names;
  for (size_t i = 0; i < shards.size(); ++i) {
    names.push_back(objects.Put(absl::StrCat("/d/", i, ".tfrecord"), shards[i]));
  }
  std::atomic<int> asked = 0;
  objects.SetFault([&asked](const StubRequest&) -> std::optional<StubAnswer> {
    if (asked++ % 10 != 5) return std::nullopt;
    return StubAnswer{.bytes = "", .closes = true};
  });
  const auto dataset = Dataset::Open("test", names);
  ASSERT_THAT(dataset, IsOk());
  const auto feed = MustCreate(SpecOf(kEightCores), *dataset);
  EXPECT_EQ(Drain(*feed), EngineDigests(SpecOf(kEightCores), OpenTestDataset(shards), 0, 8));
}

TEST(LocalFeedTest, AShardThatIsReplacedOnItsWebServerEndsTheFeed) {
  StubObjects objects;
  const std::vector<std::string> shards = TestShards({20, 20});
  const std::string name = objects.Put("/d/a.tfrecord", shards[0]);
  const auto dataset = Dataset::Open("test", {name});
  ASSERT_THAT(dataset, IsOk());
  // The engine keeps no bytes that it has read, and the feed is endless. So the feed must read the
  // replaced shard in the end.
  absl::StatusOr<std::shared_ptr<LocalEngine>> engine =
      LocalEngine::Create({.read_budget_bytes = 1});
  ASSERT_THAT(engine, IsOk());
  v1::FeedSpec spec = SpecOf(kEightCores);
  spec.set_epochs(0);
  const auto feed = MustCreate(spec, *dataset, {.engine = *engine});
  objects.Put("/d/a.tfrecord", shards[1]);
  absl::StatusOr<std::optional<Step>> step = feed->Next();
  while (step.ok() && step->has_value()) step = feed->Next();
  EXPECT_THAT(step, StatusIs(absl::StatusCode::kFailedPrecondition,
                             HasSubstr("shard \"a.tfrecord\" was replaced")));
}

TEST(LocalFeedTest, ATensorOfAllCoresIsOneAlignedBlockOfMemory) {
  const auto feed = MustCreate(SpecOf(kEightCores, BatchFirstOutputs()),
                               OpenTestDataset(TestShards({37})), {.core_begin = 4, .core_end = 8});
  absl::StatusOr<std::optional<Step>> step = feed->Next();
  ASSERT_THAT(step, IsOk());
  for (int index = 0; index < 3; ++index) {
    const TensorView first = (*step)->Tensor(4, index);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0);
    for (int core = 5; core < 8; ++core) {
      EXPECT_EQ((*step)->Tensor(core, index).data, first.data + (core - 4) * first.num_bytes());
    }
  }
}

TEST(LocalFeedTest, TheTrainerMayKeepEveryStep) {
  const v1::FeedSpec spec = SpecOf(kEightCores, BatchFirstOutputs());
  const auto dataset = OpenTestDataset(TestShards({160}));
  // The feed has memory for only two steps ahead of the trainer.
  const auto feed = MustCreate(spec, dataset, {.prefetch_bytes = 0});
  std::vector<Step> kept;
  while (true) {
    absl::StatusOr<std::optional<Step>> step = feed->Next();
    ASSERT_THAT(step, IsOk());
    if (!step->has_value()) break;
    kept.push_back(**std::move(step));
  }
  ASSERT_EQ(kept.size(), 20);
  std::vector<std::string> digests;
  for (const Step& step : kept) {
    for (int core = 0; core < 8; ++core) digests.push_back(StepDigest(step, core));
  }
  EXPECT_EQ(digests, EngineDigests(spec, dataset, 0, 8));
}

TEST(LocalFeedTest, StepsOutliveTheFeed) {
  const v1::FeedSpec spec = SpecOf(kEightCores, BatchFirstOutputs());
  const auto dataset = OpenTestDataset(TestShards({20}));
  auto feed = MustCreate(spec, dataset);
  absl::StatusOr<std::optional<Step>> step = feed->Next();
  ASSERT_THAT(step, IsOk());
  feed.reset();
  EXPECT_EQ(StepDigest(**step, 0), EngineDigests(spec, dataset, 0, 1)[0]);
}

TEST(LocalFeedTest, ATokenGoesOnWhereItWasTaken) {
  const v1::FeedSpec spec = SpecOf(kEightCores);
  const auto dataset = OpenTestDataset(TestShards({37}));
  const auto first = MustCreate(spec, dataset, {.wanted = {.steps = 2}});
  std::vector<std::string> digests = Drain(*first);
  EXPECT_EQ(first->Token().position, (FeedPosition{.epoch = 0, .examples = 32}));
  absl::StatusOr<std::unique_ptr<LocalFeed>> second =
      LocalFeed::Resume(spec, dataset, first->Token(), {});
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ((*second)->next_step(), 2);
  for (std::string& digest : Drain(**second)) digests.push_back(std::move(digest));
  EXPECT_EQ(digests, EngineDigests(spec, dataset, 0, 8));
}

// The record ids in the feed's remaining steps, without padding.
std::vector<int64_t> DrainIds(Feed& feed) {
  std::vector<int64_t> ids;
  while (true) {
    absl::StatusOr<std::optional<Step>> step = feed.Next();
    EXPECT_THAT(step, IsOk());
    if (!step.ok() || !step->has_value()) return ids;
    const auto valid = (*step)->Tensor(0, feed.layout().valid_index()).bytes();
    const auto bytes = (*step)->Tensor(0, feed.layout().IndexOf("id")).bytes();
    for (size_t i = 0; i < valid.size(); ++i) {
      int64_t id = 0;
      std::memcpy(&id, bytes.data() + i * sizeof(id), sizeof(id));
      if (valid[i] != 0) ids.push_back(id);
    }
  }
}

TEST(LocalFeedTest, AnotherBatchGoesOnAtTheSameExampleOrSaysHowManyItSkips) {
  const auto dataset = OpenTestDataset(TestShards({20, 17}));
  const auto spec_of = [](int batch, const std::string& tail) {
    return SpecOf(absl::StrCat("global_batch: ", batch, " epochs: 2 tail: ", tail, " "),
                  "outputs { name: 'id' feature: 'record_id' }");
  };
  std::vector<std::string> lines;
  const auto log = std::make_shared<EventLog>(
      [&lines](LogLevel, const std::string& line) { lines.push_back(line); },
      EventLogOptions{.max_lines = 1000});
  for (const std::string tail : {"PAD", "DROP"}) {
    for (const int from : {4, 6, 37}) {
      for (const int to : {3, 4, 8, 12, 20}) {
        const int64_t per_epoch = MustCreate(spec_of(from, tail), dataset)->steps_per_epoch();
        const std::vector<int64_t> all = DrainIds(*MustCreate(spec_of(to, tail), dataset));
        for (int64_t taken = 1; taken <= 2 * per_epoch; ++taken) {
          SCOPED_TRACE(absl::StrCat(tail, ", ", from, " to ", to, " after ", taken, " steps"));
          lines.clear();
          const auto first = MustCreate(spec_of(from, tail), dataset, {.wanted = {.steps = taken}});
          std::vector<int64_t> ids = DrainIds(*first);
          absl::StatusOr<std::unique_ptr<LocalFeed>> second =
              LocalFeed::Resume(spec_of(to, tail), dataset, first->Token(), {.log = log});
          ASSERT_THAT(second, IsOk());
          const std::vector<int64_t> rest = DrainIds(**second);
          ASSERT_TRUE(std::equal(rest.rbegin(), rest.rend(), all.rbegin()));
          const int64_t in_epoch = taken % per_epoch * from;
          ids.erase(ids.begin(), ids.end() - in_epoch);
          ids.insert(ids.end(), rest.begin(),
                     rest.end() - (taken < per_epoch ? static_cast<int64_t>(all.size()) / 2 : 0));
          ASSERT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), ids.size());
          // With DROP the new feed's epoch ends before the examples that fill no batch. These
          // examples do not count as skipped.
          const int64_t end = tail == "PAD" ? 37 : 37 / to * to;
          const int64_t begin = std::min((in_epoch + to - 1) / to * to, end);
          const int64_t skipped = std::max<int64_t>(begin - in_epoch, 0);
          if (skipped == 0) {
            ASSERT_THAT(lines, IsEmpty());
          } else {
            ASSERT_THAT(lines,
                        ElementsAre(HasSubstr(absl::StrCat("examples skipped: ", skipped, ". "))));
          }
          if (taken < 2 * per_epoch) {
            ASSERT_EQ(static_cast<int64_t>(ids.size()), std::max(in_epoch, end) - skipped);
          }
        }
      }
    }
  }
}

TEST(LocalFeedTest, ATokenWithAnImpossiblePositionIsRefused) {
  const v1::FeedSpec spec = SpecOf(kEightCores);
  const auto dataset = OpenTestDataset(TestShards({37}));
  ResumeToken token = MustCreate(spec, dataset)->Token();
  token.position.examples = 37;
  EXPECT_THAT(LocalFeed::Resume(spec, dataset, token, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("37 records has no position after 37 examples of epoch 0")));
  token.position = {.epoch = 3};
  EXPECT_THAT(LocalFeed::Resume(spec, dataset, token, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 6 steps")));
  token.position = {.epoch = int64_t{1} << 60};
  EXPECT_THAT(LocalFeed::Resume(spec, dataset, token, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("first_step is")));
}

TEST(LocalFeedTest, ATokenOfOtherDataOrAnotherOrderIsRefused) {
  const v1::FeedSpec spec = SpecOf(kEightCores);
  const ResumeToken token = MustCreate(spec, OpenTestDataset(TestShards({37})))->Token();
  EXPECT_THAT(
      LocalFeed::Resume(spec, OpenTestDataset(TestShards({38})), token, {}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("its records have changed")));
  v1::FeedSpec other = spec;
  other.set_seed(4);
  EXPECT_THAT(LocalFeed::Resume(other, OpenTestDataset(TestShards({37})), token, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("seed")));
}

TEST(LocalFeedTest, WeightChangesMayDifferOnlyAfterTheTokensPosition) {
  const std::shared_ptr<const Dataset> one = OpenTestDataset(TestShards({37}));
  const absl::StatusOr<std::shared_ptr<const Dataset>> dataset = Dataset::Join({one, one});
  ASSERT_THAT(dataset, IsOk());
  const auto spec = [](const std::string& weights) {
    return SpecFromText(
        absl::StrCat("mixture { dataset: 'test' weight: 3 select { take: 20 } } "
                     "mixture { dataset: 'test' weight: 1 select { skip: 20 } } seed: 3 "
                     "shuffle { mode: GLOBAL } epochs: 2 global_batch: 8 num_cores: 8 ",
                     weights, AllOutputs()));
  };
  const std::string past = "weights { from_step: 2 weights: [0, 1] } ";
  const std::string later = past + "weights { from_step: 5 weights: [1, 1] }";
  const ResumeToken token = MustCreate(spec(past), *dataset)->TokenAt(5);
  EXPECT_EQ(token.weight_changes.size(), 1u);
  EXPECT_EQ(MustCreate(spec(later), *dataset)->TokenAt(5), token);
  // The weights first change at step 2. A token that is taken there has no change in its past, so
  // it is that of a feed without changes.
  EXPECT_EQ(MustCreate(spec(later), *dataset)->TokenAt(2),
            MustCreate(spec(""), *dataset)->TokenAt(2));
  const std::vector<std::string> all = Drain(*MustCreate(spec(later), *dataset));
  absl::StatusOr<std::unique_ptr<LocalFeed>> rest =
      LocalFeed::Resume(spec(later), *dataset, token, {});
  ASSERT_THAT(rest, IsOk());
  EXPECT_EQ(Drain(**rest), std::vector<std::string>(all.begin() + 5 * 8, all.end()));
  const auto refusal = [&](const std::string& weights) {
    const absl::Status status = LocalFeed::Resume(spec(weights), *dataset, token, {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("weights { from_step: 2 weights: [1, 2] }"),
              AllOf(HasSubstr("the past differs from step 2 on"), HasSubstr("other than those")));
  EXPECT_THAT(refusal(past + "weights { from_step: 4 weights: [1, 2] }"),
              AllOf(HasSubstr("the past differs from step 4 on"), HasSubstr("did not have"),
                    HasSubstr("where the token was taken, after")));
  EXPECT_THAT(refusal(""), HasSubstr("changed more often (1) than those of the spec (0)"));
}

// A feed has steps of 32 or of 64 examples. The first change of the weights, at example 31990, is
// in the middle of a step in either feed. The second change, at example 1001 * 32, is at the
// beginning of a step of 32 examples, but in the middle of a step of 64.
TEST(LocalFeedTest, WeightChangesByExampleResumeUnderAnotherBatchSize) {
  const std::shared_ptr<const Dataset> one = OpenTestDataset(TestShards({37}));
  const absl::StatusOr<std::shared_ptr<const Dataset>> dataset = Dataset::Join({one, one});
  ASSERT_THAT(dataset, IsOk());
  const auto spec = [](int batch, const std::string& second_change) {
    return SpecFromText(absl::StrCat(
        "mixture { dataset: 'test' weight: 3 } mixture { dataset: 'test' weight: 1 } "
        "seed: 3 shuffle { mode: GLOBAL } epochs: 0 global_batch: ",
        batch, " weights { from_example: 31990 weights: [1, 4] } weights { ", second_change,
        " weights: [0, 1] } "
        "outputs { name: 'id' feature: 'record_id' }"));
  };
  const std::string by_step = "from_step: 1001";
  const std::string by_example = "from_example: 32032";
  const auto all = [&](int batch, const std::string& change) {
    return DrainIds(*MustCreate(spec(batch, change), *dataset,
                                {.wanted = {.first_step = 31936 / batch, .steps = 320 / batch}}));
  };
  const std::vector<int64_t> ids = all(32, by_step);  // Examples 31936 to 32255.
  ASSERT_EQ(ids.size(), 320u);
  EXPECT_EQ(all(32, by_example), ids);
  EXPECT_EQ(all(64, by_example), ids);
  for (const int taken : {1000, 1002, 1004, 1006}) {
    SCOPED_TRACE(taken);
    const ResumeToken token = MustCreate(spec(32, by_step), *dataset)->TokenAt(taken);
    absl::StatusOr<std::unique_ptr<LocalFeed>> rest = LocalFeed::Resume(
        spec(64, by_example), *dataset, token, {.wanted = {.steps = (1008 - taken) / 2}});
    ASSERT_THAT(rest, IsOk());
    EXPECT_EQ((*rest)->next_step(), taken / 2);
    EXPECT_EQ(DrainIds(**rest), std::vector<int64_t>(ids.begin() + 32 * (taken - 998), ids.end()));
    if (taken < 1002) continue;
    EXPECT_THAT(LocalFeed::Resume(spec(64, by_step), *dataset, token, {}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("write `from_example: 32032` instead of `from_step: 1001`")));
  }
}

TEST(LocalFeedTest, ReportsItsNumbersOfStepsRecordsPaddingAndBytes) {
  const auto feed =
      MustCreate(SpecOf(kEightCores), OpenTestDataset(TestShards({37})), {.wanted = {.epochs = 1}});
  EXPECT_EQ(feed->steps_per_epoch(), 3);
  EXPECT_EQ(feed->num_records(), 37);
  EXPECT_TRUE(feed->has_end());
  EXPECT_EQ(feed->end_step(), 3);
  Drain(*feed);
  EXPECT_EQ(feed->stats().steps_received, 3);
  EXPECT_EQ(feed->stats().padded_examples, 3 * 16 - 37);
  EXPECT_EQ(feed->stats().delivered_bytes, 3 * 8 * feed->layout().payload_bytes());
  const auto endless = MustCreate(SpecOf("global_batch: 8 num_cores: 8 epochs: 0 "),
                                  OpenTestDataset(TestShards({37})));
  EXPECT_FALSE(endless->has_end());
}

// A shard in memory. Calls `before_read` before each read.
class WatchedSource final : public ByteSource {
 public:
  WatchedSource(std::string bytes, std::string name, std::function<void()> before_read,
                bool is_local)
      : memory_(std::move(bytes), std::move(name)),
        before_read_(std::move(before_read)),
        is_local_(is_local) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    before_read_();
    return memory_.ReadAt(offset, out);
  }
  absl::StatusOr<uint64_t> Size() const override { return memory_.Size(); }
  bool is_local() const override { return is_local_; }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::string_view name() const override { return memory_.name(); }

 private:
  const MemorySource memory_;
  const std::function<void()> before_read_;
  const bool is_local_;
};

// A dataset of 16 shards with 4 records each.
std::shared_ptr<const Dataset> WatchedDataset(const std::function<void()>& before_read,
                                              bool is_local) {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  for (const std::string& bytes : TestShards(std::vector<int>(16, 4))) {
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(std::make_unique<WatchedSource>(
        bytes, absl::StrCat("/data/", shards.size()), before_read, is_local));
    EXPECT_THAT(shard, IsOk());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Create("test", std::move(shards));
  EXPECT_THAT(dataset, IsOk());
  return *std::move(dataset);
}

TEST(LocalFeedTest, StorageIsTheLimitIfTheTrainerWaitsForReads) {
  // Local files are read by the computing threads themselves, which wait for each read. Other
  // shards are read ahead.
  for (const bool is_local : {true, false}) {
    SCOPED_TRACE(is_local);
    // Waits for local files are known only from the kernel's times of threads.
    if (is_local && !TimesOf(OwnThreadId()).has_value()) continue;
    FeedWaits waits;
    const auto is_limit = [&waits] {
      return waits.verdict.limit == FeedLimit::kStorage && waits.verdict.share > 0.5;
    };
    // On a busy machine the feed may wait longer for a processor than for reads of 60 ms. Then it
    // runs again, with longer reads.
    for (int64_t read_ms = 60; read_ms <= 4'000 && !is_limit(); read_ms *= 4) {
      std::atomic<bool> slow = false;  // Once it is set, each read takes this time.
      const std::shared_ptr<const Dataset> dataset = WatchedDataset(
          [&slow, read_ms] {
            if (!slow) return;
            PaceUntil(SteadyClock()() + absl::Milliseconds(read_ms),
                      {.spin = absl::ZeroDuration()});
          },
          is_local);
      const v1::FeedSpec spec = SpecFromText(
          "dataset: 'test' global_batch: 4 num_cores: 1 epochs: 1 "
          "outputs { name: 'path' feature: 'path' shape: 3 dtype: FLOAT32 }");
      const auto feed = MustCreate(spec, dataset, {.threads = 1});
      EXPECT_EQ(feed->stats().waits.verdict.limit, FeedLimit::kUnknown);
      slow = true;
      Drain(*feed);
      waits = feed->stats().waits;
    }
    EXPECT_EQ(waits.verdict.limit, FeedLimit::kStorage);
    EXPECT_GT(waits.verdict.share, 0.5);
    EXPECT_GT(waits.times.of(WaitCause::kStorage), 0.05);
  }
}

TEST(LocalFeedTest, TheVerdictNamesTheCostliestOutputAndOperation) {
  const auto dataset = OpenTestDataset(TestShards({20, 20}));
  const v1::FeedSpec spec = SpecFromText(
      R"pb(
        dataset: "test"
        global_batch: 8
        num_cores: 1
        epochs: 2
        outputs { name: "id" feature: "record_id" dtype: INT64 }
        outputs {
          name: "picture"
          feature: "image"
          transforms { decode_jpeg {} }
          transforms { resize { height: 1024 width: 1024 } }
          transforms { resize { height: 4 width: 4 } }
          dtype: FLOAT32
        }
      )pb");
  const auto feed = MustCreate(spec, dataset, {.threads = 1});
  Drain(*feed);
  const FeedWaits waits = feed->stats().waits;
  EXPECT_EQ(waits.verdict.limit, FeedLimit::kDecode);
  EXPECT_EQ(OutputName(waits.verdict, feed->layout()), "picture");
  EXPECT_EQ(CostliestOperation(waits.verdict, feed->layout(), spec), "resize");
  EXPECT_EQ(waits.verdict.operation, 1);  // The first resize.
  EXPECT_GT(waits.verdict.share, 0.5);
}

TEST(LocalFeedTest, DamagedRecordsAreMaskedAndCounted) {
  std::vector<std::string> shards = TestShards({16});
  shards[0][200] = static_cast<char>(shards[0][200] ^ 1);  // A byte of the first record.
  const auto dataset = OpenTestDataset(shards);
  const auto masked =
      MustCreate(SpecOf("global_batch: 16 num_cores: 2 epochs: 1 on_corrupt: MASK"), dataset);
  EXPECT_EQ(Drain(*masked).size(), 2);
  EXPECT_EQ(masked->stats().masked_examples, 1);
  EXPECT_EQ(masked->stats().examples_taken, 15);
  EXPECT_THAT(masked->stats().masked_records, ElementsAre(0));
  const auto failing = MustCreate(SpecOf("global_batch: 16 num_cores: 2 epochs: 1 "), dataset);
  for (int i = 0; i < 2; ++i) {  // The same error comes again.
    EXPECT_THAT(failing->Next(),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("shard-0.tfrecord"), HasSubstr("record 0"),
                               HasSubstr("on_corrupt: MASK"))));
  }
}

TEST(LocalFeedTest, MaskedExamplesAreLogged) {
  std::vector<std::string> shards = TestShards({16});
  shards[0][200] = static_cast<char>(shards[0][200] ^ 1);  // A byte of the first record.
  std::vector<std::string> lines;
  const auto log = std::make_shared<EventLog>(
      [&lines](LogLevel, const std::string& line) { lines.push_back(line); });
  const auto masked =
      LocalFeed::Create(SpecOf("global_batch: 16 num_cores: 2 epochs: 1 on_corrupt: MASK"),
                        OpenTestDataset(shards), {.log = log});
  ASSERT_THAT(masked, IsOk());
  Drain(**masked);
  EXPECT_THAT(lines, ElementsAre("step 0: examples masked for damage: 1; record_id 0"));
}

TEST(LocalFeedTest, EveryStepThatIsTakenMovesTheMetrics) {
  const auto dataset = OpenTestDataset(TestShards({40}));
  const v1::FeedSpec spec = SpecOf("global_batch: 8 num_cores: 4 epochs: 2 ");
  // One feed has all four cores, and the other feed has two of them.
  for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{0, 4}, {1, 3}}) {
    const auto feed = MustCreate(
        spec, dataset, {.wanted = {.first_step = 1}, .core_begin = begin, .core_end = end});
    EXPECT_EQ(MetricOf(feed->Metrics(), "ready_steps"), 0);
    EXPECT_EQ(MetricOf(feed->Metrics(), "next_step"), 1);
    ASSERT_THAT(feed->Next(), IsOk());
    ASSERT_TRUE(WaitUntil([&] { return MetricOf(feed->Metrics(), "ready_steps") > 0; }));
    EXPECT_GT(MetricOf(feed->Metrics(), "buffered_bytes"), 0);
    Drain(*feed);
    const std::vector<MetricFamily> metrics = feed->Metrics();
    EXPECT_EQ(MetricOf(metrics, "next_step"), 10);
    EXPECT_EQ(MetricOf(metrics, "steps_received_total"), 9);
    EXPECT_EQ(MetricOf(metrics, "examples_taken_total"), 9 * 2 * (end - begin));
    EXPECT_EQ(MetricOf(metrics, "step_wait_seconds_count"), 8);
    EXPECT_EQ(MetricOf(metrics, "longest_wait_seconds") > 0,
              MetricOf(metrics, "step_wait_seconds_sum") > 0);
    EXPECT_EQ(MetricOf(metrics, "ready_steps"), 0);
    EXPECT_EQ(MetricOf(metrics, "waiting_seconds"), 0);
  }
}

TEST(LocalFeedTest, WaitForNextEndsWithAStepTheTimeoutOrTheEndOfTheFeed) {
  for (const bool is_local : {true, false}) {
    SCOPED_TRACE(is_local);
    std::atomic<bool> blocked = false;
    const auto feed = MustCreate(
        SpecOf("global_batch: 32 num_cores: 8 epochs: 1 "),
        WatchedDataset([&blocked] { EXPECT_TRUE(WaitUntil([&] { return !blocked; })); }, is_local));
    blocked = true;
    EXPECT_FALSE(feed->WaitForNext(absl::ZeroDuration()));
    EXPECT_FALSE(feed->WaitForNext(absl::Milliseconds(1)));
    blocked = false;
    EXPECT_TRUE(feed->WaitForNext(absl::InfiniteDuration()));
    EXPECT_TRUE(feed->WaitForNext(absl::ZeroDuration()));  // The step is still there.
    EXPECT_EQ(Drain(*feed).size(), 16);
    EXPECT_TRUE(feed->WaitForNext(absl::ZeroDuration()));  // The feed's end ends a wait, too.
    EXPECT_EQ(feed->next_step(), 2);
  }
}

TEST(LocalFeedTest, AfterCancelThereIsNothingMore) {
  const auto feed = MustCreate(SpecOf(kEightCores), OpenTestDataset(TestShards({160})));
  ASSERT_THAT(feed->Next(), IsOk());
  feed->Cancel();
  EXPECT_TRUE(feed->WaitForNext(absl::InfiniteDuration()));
  EXPECT_THAT(feed->Next(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  EXPECT_THAT(feed->Next(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
}

TEST(LocalFeedTest, OptionsOutOfRangeAreRefusedByName) {
  const auto dataset = OpenTestDataset(TestShards({16}));
  const v1::FeedSpec spec = SpecOf(kEightCores);
  const std::pair<LocalFeedOptions, const char*> cases[] = {
      {{.threads = 0}, "threads is 0"},
      {{.threads = 1025}, "threads is 1025"},
      {{.prefetch_bytes = -1}, "prefetch_bytes is -1"},
      {{.wanted = {.first_step = -1}}, "first_step is -1"},
      {{.wanted = {.first_step = 3}}, "the feed has 2 steps"},
      {{.wanted = {.steps = 1, .epochs = 1}}, "at most one above 0"},
      {{.core_begin = 3, .core_end = 3}, "cores 3:3"},
      {{.core_end = 9}, "cores 0:9"},
  };
  for (const auto& [options, message] : cases) {
    EXPECT_THAT(LocalFeed::Create(spec, dataset, options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

}  // namespace
}  // namespace systole
