#include "core/engine/read_ahead.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/batch/slice_layout.h"
#include "core/cache/disk_store.h"
#include "core/checksum/xxh3.h"
#include "core/compression/compression.h"
#include "core/concurrency/mutex.h"
#include "core/dataset/dataset.h"
#include "core/engine/step_engine.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/far_compressed.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/gated_source.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kId[] = "num_cores: 1 outputs { name: 'id' feature: 'record_id' dtype: INT64 }";

std::shared_ptr<const FeedPlan> PlanOf(const std::shared_ptr<Dataset>& dataset,
                                       const std::string& spec) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: '", dataset->name(), "' ", spec)), dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

// A hash of the tensors of `steps` steps, or the error that ends the stream.
absl::StatusOr<uint64_t> Digest(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan,
                                int64_t steps) {
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = steps, .core_end = plan->num_cores()});
  if (!stream.ok()) return stream.status();
  Xxh3Hasher hasher;
  while (true) {
    const StepStream::Result slice = (*stream)->Next();
    if (!slice.ok()) return slice.status();
    if (!slice->has_value()) return hasher.Digest64();
    for (const SliceTensor& tensor : plan->layout().tensors()) {
      hasher.Update(
          absl::string_view(reinterpret_cast<const char*>((**slice)->data()) + tensor.offset,
                            static_cast<size_t>(tensor.spec.num_bytes())));
    }
  }
}

const std::vector<std::string>& Shards() {
  static const auto* const shards = new std::vector<std::string>(TestShards({37, 0, 64, 1, 50}));
  return *shards;
}

// All orders. Under a sanitizer, only the two orders whose reads differ most from each other.
std::vector<std::string> Orders() {
  const std::string window = "shuffle { mode: WINDOW block_records: 5 window_records: 40 }";
  const std::string selected = "shuffle { mode: GLOBAL } select { shard { count: 2 index: 1 } }";
  if (kSanitized) return {window, selected};
  return {"", "shuffle { mode: GLOBAL }", window, selected};
}

TEST(ReadAheadTest, AFarFeedHasTheBytesOfALocalOneInEveryOrder) {
  const auto near = OpenTestDataset(Shards());
  const auto far = OpenFarDataset(Shards(), std::make_shared<Gate>());
  for (const std::string& order : Orders()) {
    for (const int64_t budget : {int64_t{1}, int64_t{0}}) {
      const std::string spec =
          absl::StrCat(order, " global_batch: 24 num_cores: 2 tail: PAD epochs: 4 ", AllOutputs());
      StepEngine engine({.threads = 2, .reads = 3, .read_budget_bytes = budget});
      const auto near_plan = PlanOf(near, spec);
      const int64_t steps = *near_plan->order().total_steps();
      const absl::StatusOr<uint64_t> want = Digest(engine, near_plan, steps);
      ASSERT_THAT(want, IsOk());
      const absl::StatusOr<uint64_t> got = Digest(engine, PlanOf(far, spec), steps);
      ASSERT_THAT(got, IsOk());
      EXPECT_EQ(*got, *want) << order << " budget " << budget;
      EXPECT_EQ(engine.GetStats().memory_used_bytes, 0);
    }
  }
}

constexpr char kNoisy[] =
    " outputs { name: 'w' feature: 'weight' dtype: FLOAT32 } outputs { name: 'l' feature: 'label' "
    "dtype: INT32 } ";

TEST(ReadAheadTest, ACompressedFarFeedHasTheBytesOfALocalOneInEveryOrder) {
  const std::vector<std::string> shards = NoisyShards({50, 0, 90, 1}, 30'000);
  const auto near = OpenTestDataset(shards);
  const TempFolder folder;
  StubObjects objects;
  for (const Compression compression : kCompressions) {
    const std::string prefix = folder / absl::StrCat(CompressionName(compression), "-");
    // The first opening makes the files of restart points. Below, the shards are opened with these
    // files, without files, and with copies of the files on a server.
    OpenFarCompressed(shards, compression, std::make_shared<Gate>(), prefix);
    std::string far_prefix;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string target = absl::StrCat("/", CompressionName(compression), i, ".restart");
      const std::string url =
          objects.Put(target, ReadWholeFile(absl::StrCat(prefix, i, ".restart")));
      far_prefix = url.substr(0, url.size() - std::string("0.restart").size());
    }
    for (const std::string& restart : {prefix, std::string(), far_prefix}) {
      for (const std::string& order : Orders()) {
        for (const int64_t budget : {int64_t{1}, int64_t{0}}) {
          SCOPED_TRACE(absl::StrCat(restart, " ", order, " budget ", budget));
          const auto far =
              OpenFarCompressed(shards, compression, std::make_shared<Gate>(), restart);
          ASSERT_GT(far->far_bytes(), 0);
          const std::string spec =
              absl::StrCat(order, " global_batch: 24 num_cores: 2 tail: PAD epochs: 2 ", kNoisy);
          StepEngine engine({.threads = 2, .reads = 3, .read_budget_bytes = budget});
          const auto near_plan = PlanOf(near, spec);
          const int64_t steps = *near_plan->order().total_steps();
          const absl::StatusOr<uint64_t> want = Digest(engine, near_plan, steps);
          ASSERT_THAT(want, IsOk());
          EXPECT_THAT(Digest(engine, PlanOf(far, spec), steps), IsOkAndHolds(*want));
          EXPECT_GT(engine.GetStats().reads.blocks_read, 0);
          EXPECT_EQ(engine.GetStats().memory_used_bytes, 0);
        }
      }
    }
  }
}

TEST(ReadAheadTest, BlocksOfCompressedShardsOutliveTheEngineOnDisk) {
  const std::vector<std::string> shards = NoisyShards({90}, 30'000);
  for (const Compression compression : kCompressions) {
    SCOPED_TRACE(CompressionName(compression));
    const TempFolder folder;
    const auto gate = std::make_shared<Gate>();
    const auto far = OpenFarCompressed(shards, compression, gate, folder / "restart");
    const auto plan =
        PlanOf(far, absl::StrCat("shuffle { mode: GLOBAL } global_batch: 30 ", kNoisy));
    std::vector<uint64_t> digests;
    for (int i = 0; i < 2; ++i) {
      const int reads = gate->reads();
      std::shared_ptr<DiskStore> disk = *DiskStore::Open(folder / "disk", 64 << 20);
      StepEngine engine({.threads = 2, .block_cache = disk});
      const absl::StatusOr<uint64_t> digest = Digest(engine, plan, 3);
      ASSERT_THAT(digest, IsOk());
      digests.push_back(*digest);
      ASSERT_TRUE(WaitUntil([&] { return engine.GetStats().reads.reads_under_way == 0; }));
      EXPECT_EQ(gate->reads() > reads, i == 0);
    }
    EXPECT_EQ(digests[0], digests[1]);
  }
}

TEST(ReadAheadTest, DamageInACompressedFarShardIsHandledAsInALocalFeed) {
  std::vector<std::string> shards = NoisyShards({40, 60}, 30'000);
  shards[1] = WithFlippedBit(shards[1], shards[1].size() * 4);
  const auto near = OpenTestDataset(shards);
  const std::string spec = absl::StrCat("shuffle { mode: GLOBAL } global_batch: 20 ", kNoisy);
  const std::string mask = absl::StrCat(spec, " on_corrupt: MASK");
  for (const Compression compression : kCompressions) {
    SCOPED_TRACE(CompressionName(compression));
    const TempFolder folder;
    const auto gate = std::make_shared<Gate>();
    const auto far = OpenFarCompressed(shards, compression, gate, folder / "restart");
    StepEngine engine({.threads = 2});
    const absl::StatusOr<uint64_t> want = Digest(engine, PlanOf(near, mask), 5);
    ASSERT_THAT(want, IsOk());
    const int checks = gate->checks();
    EXPECT_THAT(Digest(engine, PlanOf(far, mask), 5), IsOkAndHolds(*want));
    EXPECT_EQ(gate->checks() - checks, engine.GetStats().reads.blocks_read);
    EXPECT_EQ(far->damage().masked_examples(), 1);
    const absl::Status failure = Digest(engine, PlanOf(near, spec), 5).status();
    EXPECT_THAT(Digest(engine, PlanOf(far, spec), 5).status(),
                StatusIs(failure.code(), HasSubstr("with `on_corrupt: MASK`")));
  }
}

TEST(ReadAheadTest, DamageInAFarShardIsHandledAsInALocalFeed) {
  std::vector<std::string> shards = Shards();
  shards[2] = WithFlippedBit(shards[2], shards[2].size() * 4);
  const auto near = OpenTestDataset(shards);
  const auto gate = std::make_shared<Gate>();
  const auto far = OpenFarDataset(shards, gate);
  const std::string spec = absl::StrCat("shuffle { mode: GLOBAL } global_batch: 19 ", kId,
                                        " outputs { name: 'w' feature: 'weight' dtype: FLOAT32 }");
  StepEngine engine({.threads = 2});
  const std::string mask = absl::StrCat(spec, " on_corrupt: MASK");
  const absl::StatusOr<uint64_t> want = Digest(engine, PlanOf(near, mask), 8);
  ASSERT_THAT(want, IsOk());
  const int checks = gate->checks();
  EXPECT_THAT(Digest(engine, PlanOf(far, mask), 8), IsOkAndHolds(*want));
  // For each block, the feed checked once whether the shard is unchanged. The damage caused no
  // further check.
  EXPECT_EQ(gate->checks() - checks, engine.GetStats().reads.blocks_read);
  EXPECT_EQ(far->damage().masked_examples(), near->damage().masked_examples());
  EXPECT_EQ(far->damage().masked_examples(), 1);
  const absl::Status failure = Digest(engine, PlanOf(near, spec), 8).status();
  EXPECT_THAT(Digest(engine, PlanOf(far, spec), 8).status(),
              StatusIs(failure.code(), HasSubstr("with `on_corrupt: MASK`")));
}

TEST(ReadAheadTest, AMixtureReadsItsFarMemberAheadAndHasTheBytesOfLocalMembers) {
  const auto near = OpenTestDataset(Shards(), "near");
  // These records differ from all records of `near`.
  ShardBuilder builder;
  for (int64_t i = 0; i < 90; ++i) builder.Add(TestRecord(1000 + i));
  const std::vector<std::string> others = {builder.Build()};
  const auto far = OpenFarDataset(others, std::make_shared<Gate>(), "far");
  const auto other = OpenTestDataset(others, "far");
  absl::StatusOr<std::shared_ptr<Dataset>> mixed = Dataset::Join({near, far});
  absl::StatusOr<std::shared_ptr<Dataset>> local = Dataset::Join({near, other});
  ASSERT_THAT(mixed, IsOk());
  ASSERT_THAT(local, IsOk());
  const std::string text = absl::StrCat(
      "mixture { dataset: 'near' weight: 2 } mixture { dataset: 'far' weight: 3 } "
      "shuffle { mode: GLOBAL } global_batch: 16 ",
      kId, " outputs { name: 'pair' feature: 'pair' shape: 2 dtype: INT64 }");
  absl::StatusOr<std::shared_ptr<const FeedPlan>> want_plan =
      FeedPlan::Create(SpecFromText(text), *local);
  absl::StatusOr<std::shared_ptr<const FeedPlan>> got_plan =
      FeedPlan::Create(SpecFromText(text), *mixed);
  ASSERT_THAT(want_plan, IsOk());
  ASSERT_THAT(got_plan, IsOk());
  StepEngine engine({.threads = 1});
  const absl::StatusOr<uint64_t> want = Digest(engine, *want_plan, 15);
  ASSERT_THAT(want, IsOk());
  EXPECT_EQ(engine.GetStats().reads.blocks_read, 0);
  EXPECT_THAT(Digest(engine, *got_plan, 15), IsOkAndHolds(*want));
  EXPECT_GT(engine.GetStats().reads.blocks_read, 0);
}

TEST(ReadAheadTest, SlicesOfOnlyPaddingAreDeliveredInFarFeeds) {
  const auto far = OpenFarDataset(TestShards({9}), std::make_shared<Gate>());
  const auto plan =
      PlanOf(far,
             "global_batch: 8 num_cores: 4 tail: PAD outputs { name: 'id' feature: 'record_id' "
             "dtype: INT64 }");
  // The second step has one record, in the slice of the first core. The other slices have only
  // padding.
  for (int round = 0; round < 50; ++round) {
    StepEngine engine({.threads = 2});
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(plan, {.first_step = 1, .count = 1, .core_begin = round % 2, .core_end = 4});
    ASSERT_THAT(stream, IsOk());
    for (int core = round % 2; core < 4; ++core) {
      const StepStream::Result slice = (*stream)->Next();
      ASSERT_TRUE(slice.ok() && slice->has_value());
    }
  }
}

TEST(ReadAheadTest, AHangingReadBlocksNoComputeThread) {
  const auto gate = std::make_shared<Gate>();
  const auto hung =
      PlanOf(OpenFarDataset(Shards(), gate, "hung"), absl::StrCat("global_batch: 16 ", kId));
  const auto healthy =
      PlanOf(OpenTestDataset(Shards(), "healthy"), absl::StrCat("global_batch: 16 ", kId));
  gate->Shut();
  StepEngine engine({.threads = 1, .max_threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(hung, {.count = 9});
  ASSERT_THAT(stream, IsOk());
  ASSERT_TRUE(WaitUntil([&] { return gate->waiting() > 0; }));
  EXPECT_THAT(Digest(engine, healthy, 9), IsOk());
  EXPECT_EQ(engine.GetStats().threads_stuck, 0);
  gate->Open();
  EXPECT_TRUE((*stream)->Next().ok());
}

TEST(ReadAheadTest, AHangingReadOfACompressedShardBlocksNoComputeThread) {
  const auto healthy =
      PlanOf(OpenTestDataset(Shards(), "healthy"), absl::StrCat("global_batch: 16 ", kId));
  const std::vector<std::string> shards = NoisyShards({40, 60}, 30'000);
  for (const Compression compression : kCompressions) {
    for (const std::string order : {"", "shuffle { mode: GLOBAL } "}) {
      SCOPED_TRACE(absl::StrCat(CompressionName(compression), order));
      const TempFolder folder;
      const auto gate = std::make_shared<Gate>();
      const auto hung =
          PlanOf(OpenFarCompressed(shards, compression, gate, folder / "restart", "hung"),
                 absl::StrCat(order, "global_batch: 16 ", kId));
      gate->Shut();
      StepEngine engine({.threads = 1, .max_threads = 1});
      absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(hung, {.count = 6});
      ASSERT_THAT(stream, IsOk());
      ASSERT_TRUE(WaitUntil([&] { return gate->waiting() > 0; }));
      EXPECT_THAT(Digest(engine, healthy, 9), IsOk());
      EXPECT_EQ(engine.GetStats().threads_stuck, 0);
      gate->Open();
      EXPECT_TRUE((*stream)->Next().ok());
    }
  }
}

TEST(ReadAheadTest, AReadThatNeverReturnsFailsItsStepAndOtherFarDatasetsGoOn) {
  const auto gate = std::make_shared<Gate>();
  const std::string spec = absl::StrCat("shuffle { mode: GLOBAL } global_batch: 16 ", kId);
  const auto hung = PlanOf(OpenFarDataset(Shards(), gate, "hung"), spec);
  const auto healthy = PlanOf(OpenFarDataset(Shards(), std::make_shared<Gate>(), "healthy"), spec);
  gate->Shut();
  StepEngine engine({.threads = 1, .max_threads = 1, .read_timeout = absl::Seconds(1), .reads = 8});
  // Each stream of the hung dataset stands for another try of a trainer.
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Digest(engine, hung, 9), StatusIs(absl::StatusCode::kUnavailable,
                                                  AllOf(HasSubstr("shard-"), HasSubstr("1s"))));
    EXPECT_THAT(Digest(engine, healthy, 9), IsOk());
  }
  // One dataset may hold three quarters of the 8 requests, however many streams try to read it.
  EXPECT_LE(gate->waiting(), 6);
  // The slices of the failed streams take no memory.
  EXPECT_EQ(engine.GetStats().memory_used_bytes, 0);
  gate->Open();
  ASSERT_TRUE(WaitUntil([&] { return gate->waiting() == 0; }));
  EXPECT_THAT(Digest(engine, hung, 9), IsOk());
}

TEST(ReadAheadTest, ACancelledStreamFreesItsMemoryWhileItsReadStillHangs) {
  const auto gate = std::make_shared<Gate>();
  const auto plan = PlanOf(OpenFarDataset(Shards(), gate), absl::StrCat("global_batch: 16 ", kId));
  gate->Shut();
  StepEngine engine({.threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {.count = 9});
  ASSERT_THAT(stream, IsOk());
  ASSERT_TRUE(WaitUntil([&] { return gate->waiting() > 0; }));
  EXPECT_GT(engine.GetStats().memory_used_bytes, 0);
  (*stream)->Cancel();
  EXPECT_TRUE(WaitUntil([&] { return engine.GetStats().memory_used_bytes == 0; }));
  EXPECT_FALSE(engine.CancelAll(absl::ZeroDuration()));  // The read is still under way.
  gate->Open();
  EXPECT_TRUE(engine.CancelAll(absl::InfiniteDuration()));
}

TEST(ReadAheadTest, OrderedAndWindowFeedsReadEachByteOnce) {
  const auto far = OpenFarDataset(Shards(), std::make_shared<Gate>());
  for (const std::string order :
       {"", "shuffle { mode: WINDOW block_records: 5 window_records: 40 }"}) {
    const auto plan = PlanOf(far, absl::StrCat(order, " global_batch: 8 tail: PAD ", kId));
    StepEngine engine({.threads = 2});
    ASSERT_THAT(Digest(engine, plan, plan->order().steps_per_epoch()), IsOk());
    EXPECT_EQ(engine.GetStats().reads.bytes_read, far->far_bytes()) << order;
  }
}

TEST(ReadAheadTest, CompressedShardsAreReadOnceInTwoEpochsIfAllBlocksAreKept) {
  const std::vector<std::string> shards = NoisyShards({40, 60}, 30'000);
  for (const Compression compression : kCompressions) {
    const TempFolder folder;
    const auto far =
        OpenFarCompressed(shards, compression, std::make_shared<Gate>(), folder / "restart");
    for (const std::string order : {"", "shuffle { mode: GLOBAL }"}) {
      SCOPED_TRACE(absl::StrCat(CompressionName(compression), " ", order));
      const auto plan = PlanOf(far, absl::StrCat(order, " epochs: 2 global_batch: 20 ", kId));
      StepEngine engine({.threads = 2});
      ASSERT_THAT(Digest(engine, plan, *plan->order().total_steps()), IsOk());
      const BlockReaderStats stats = engine.GetStats().reads;
      EXPECT_GE(stats.bytes_read, far->far_bytes());
      // Two pieces of a deflate stream may meet inside a byte. Then the reads of both pieces fetch
      // this byte.
      EXPECT_LE(stats.bytes_read, far->far_bytes() + stats.blocks_read);
    }
  }
}

TEST(ReadAheadTest, AWarmFeedReadsDroppedBlocksAgain) {
  const auto gate = std::make_shared<Gate>();
  const auto far = OpenFarDataset(Shards(), gate);
  const auto other = OpenFarDataset(Shards(), std::make_shared<Gate>(), "other");
  const std::string spec = absl::StrCat("shuffle { mode: GLOBAL } global_batch: 19 ", kId);
  const auto plan = PlanOf(far, spec);
  const int64_t epoch = plan->order().steps_per_epoch();
  int64_t memory_bytes = 0;
  {
    StepEngine engine({.threads = 2});
    ASSERT_THAT(Digest(engine, plan, epoch), IsOk());
    memory_bytes = engine.GetStats().reads.memory_bytes;
  }
  // The memory has room for the blocks of one of the two datasets. After two epochs the feed is
  // warm: its tasks are expected to find all their records in memory (core/engine/warm_feeds.h).
  StepEngine engine({.threads = 2, .read_budget_bytes = memory_bytes});
  ASSERT_THAT(Digest(engine, plan, 2 * epoch), IsOk());
  absl::StatusOr<std::unique_ptr<StepStream>> stream = engine.Open(plan, {.count = 8 * epoch});
  ASSERT_THAT(stream, IsOk());
  int reads = gate->reads();
  for (int round = 0; round < 4; ++round) {
    for (int64_t step = 0; step < epoch; ++step) {
      const StepStream::Result slice = (*stream)->Next();
      ASSERT_TRUE(slice.ok() && slice->has_value()) << slice.status();
    }
    if (round == 0) {
      EXPECT_EQ(gate->reads(), reads);
    } else {
      // The feed of `other` has driven blocks of `far` out of memory, so these are read again. The
      // reads may be for slices that are made ahead, and may begin only after the loop above.
      EXPECT_TRUE(WaitUntil([&] { return gate->reads() > reads; }));
    }
    reads = gate->reads();
    ASSERT_THAT(Digest(engine, PlanOf(other, spec), epoch), IsOk());
  }
  const auto near = PlanOf(OpenTestDataset(Shards()), spec);
  const absl::StatusOr<uint64_t> want = Digest(engine, near, 3 * epoch);
  ASSERT_THAT(want, IsOk());
  EXPECT_THAT(Digest(engine, plan, 3 * epoch), IsOkAndHolds(*want));
}

// An engine without threads. The test takes and finishes the tasks itself.
class PlayedEngine final : public ReadAhead::Engine {
 public:
  explicit PlayedEngine(const std::shared_ptr<const FeedPlan>& plan) : scheduler_({.threads = 1}) {
    const StepRange range = {.count = 4};
    EXPECT_THAT(
        scheduler_.Add(std::make_shared<ScheduledStream>(plan, range, StreamMemory(), range.count)),
        IsOk());
  }

  std::optional<SliceTask> TakeToRead(StepScheduler::MayRead may_read) override {
    MutexLock lock(mu_);
    return std::move(scheduler_.TakeToRead(may_read).task);
  }
  void Arrive(const SliceTask& task, ExampleRun run, bool warm) override {
    MutexLock lock(mu_);
    StepScheduler::TellAll(scheduler_.Arrive(task, std::move(run), warm));
    ++arrived_;
  }
  std::optional<SliceTask> Take() {
    MutexLock lock(mu_);
    return std::move(scheduler_.Take().task);
  }
  // Ends the task, and releases its blocks.
  void Finish(std::optional<SliceTask>& task) {
    MutexLock lock(mu_);
    StepScheduler::TellAll(scheduler_.Finish(*task, task->run(), /*cost=*/1));
    task.reset();
  }
  int arrived() const {
    MutexLock lock(mu_);
    return arrived_;
  }

 private:
  mutable Mutex mu_;
  StepScheduler scheduler_ ABSL_GUARDED_BY(mu_);
  int arrived_ ABSL_GUARDED_BY(mu_) = 0;
};

// A task waits for room for its blocks. If meanwhile other tasks got blocks from memory, these
// tasks could keep the room for ever.
TEST(ReadAheadTest, WhileATaskWaitsForRoomNoOtherTaskGetsBlocksFromMemory) {
  const auto plan = PlanOf(OpenFarDataset(Shards(), std::make_shared<Gate>()),
                           absl::StrCat("shuffle { mode: GLOBAL } global_batch: 8 ", kId));
  PlayedEngine engine(plan);
  // The blocks of a task are larger than this memory of one byte. They may be read only while no
  // other task uses blocks.
  ReadAhead reads({.requests = 8, .memory_bytes = 1}, engine);
  reads.Wake();
  ASSERT_TRUE(WaitUntil([&] { return engine.arrived() == 1; }));
  std::optional<SliceTask> first = engine.Take();
  ASSERT_TRUE(first.has_value());
  ASSERT_NE(first->run().blocks, nullptr);
  ExampleRun again;
  // The second task waits for room, so FindInMemory() gives blocks to no task.
  ASSERT_TRUE(WaitUntil([&] { return !reads.FindInMemory(*first, again); }));
  again = {};
  engine.Finish(first);
  ASSERT_TRUE(WaitUntil([&] { return engine.arrived() == 2; }));
  std::optional<SliceTask> second = engine.Take();
  ASSERT_TRUE(second.has_value());
  engine.Finish(second);
  // The third and the fourth task get their blocks in the same way.
  for (int task = 3; task <= 4; ++task) {
    ASSERT_TRUE(WaitUntil([&] { return engine.arrived() == task; }));
    std::optional<SliceTask> next = engine.Take();
    ASSERT_TRUE(next.has_value());
    if (task == 4) {
      // No task waits any more, and the blocks of the fourth task are in memory.
      EXPECT_TRUE(WaitUntil([&] { return reads.FindInMemory(*next, again); }));
      EXPECT_NE(again.blocks, nullptr);
      again = {};
    }
    engine.Finish(next);
  }
}

TEST(ReadAheadTest, BlocksKeptInMemoryAreNotReadAgainInLaterEpochs) {
  const auto far = OpenFarDataset(Shards(), std::make_shared<Gate>());
  const auto plan =
      PlanOf(far, absl::StrCat("shuffle { mode: GLOBAL } epochs: 3 global_batch: 19 ", kId));
  StepEngine engine({.threads = 2});
  ASSERT_THAT(Digest(engine, plan, *plan->order().total_steps()), IsOk());
  EXPECT_EQ(engine.GetStats().reads.bytes_read, far->far_bytes());
}

}  // namespace
}  // namespace systole
