// Tests the account of scratch memory: the memory that threads take for their work, apart from
// slices. If there is no room for more scratch memory, a thread waits. A thread gives its scratch
// memory back when its turn ends, in whatever way the turn ends.
#include "core/engine/scratch_account.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/concurrency/worker_pool.h"
#include "core/engine/example_maker.h"
#include "core/engine/step_engine.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/gated_source.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(ScratchAccountTest, NeedWaitsUntilTheElderAccountFreesItsMemory) {
  SharedScratch shared(10 * kMiB);
  ScratchAccount elder(shared), other(shared);
  ASSERT_TRUE(elder.Need(ScratchUse::kReads, 50 * kMiB));
  std::atomic<bool> done = false;
  WorkerPool pool(1);
  pool.Submit([&] {
    EXPECT_TRUE(other.Need(ScratchUse::kReads, 20 * kMiB));
    done = true;
  });
  ASSERT_TRUE(WaitUntil([&] { return other.waits(); }));
  EXPECT_EQ(shared.used_bytes(), 50 * kMiB);
  EXPECT_TRUE(elder.EndTurn({}));
  EXPECT_TRUE(WaitUntil([&] { return done.load(); }));
  EXPECT_FALSE(other.waits());
  EXPECT_EQ(shared.used_bytes(), 20 * kMiB);
}

TEST(ScratchAccountTest, AnInterruptEndsAWaitInNeedWithoutTakingMemory) {
  SharedScratch shared(10 * kMiB);
  ScratchAccount elder(shared), other(shared);
  ASSERT_TRUE(elder.Need(ScratchUse::kReads, 50 * kMiB));
  InterruptFlag unwanted;
  std::atomic<bool> done = false;
  WorkerPool pool(1);
  pool.Submit([&] {
    const InterruptScope scope(unwanted);
    EXPECT_FALSE(other.Need(ScratchUse::kReads, 20 * kMiB));
    done = true;
  });
  ASSERT_TRUE(WaitUntil([&] { return other.waits(); }));
  unwanted.Raise();
  EXPECT_TRUE(WaitUntil([&] { return done.load(); }));
  EXPECT_EQ(shared.used_bytes(), 50 * kMiB);
}

TEST(ScratchAccountTest, AnAccountHoldsTheMaximumNeedOfEachUse) {
  SharedScratch shared(100 * kMiB);
  ScratchAccount account(shared);
  EXPECT_TRUE(account.Need(ScratchUse::kPlan, 3 * kMiB));
  EXPECT_TRUE(account.Need(ScratchUse::kCoefficients, 20 * kMiB));
  EXPECT_TRUE(account.Need(ScratchUse::kCoefficients, 10 * kMiB));
  EXPECT_EQ(account.held_bytes(), 23 * kMiB);
  account.EndExample();
  EXPECT_EQ(account.held_bytes(), 3 * kMiB);
  EXPECT_TRUE(account.EndTurn({kMiB}));
  EXPECT_EQ(account.held_bytes(), kMiB);
}

// Eight progressive images of 1,536 x 1,024 pixels, each of which needs 4.5 MiB for coefficients.
// Under a sanitizer the width is 512, and an image needs 1.5 MiB.
constexpr int kWidth = kSanitized ? 512 : 1536;

std::shared_ptr<Dataset> LargeImages(bool damaged) {
  const std::vector<uint8_t> pixels(size_t{kWidth} * 1024 * 3, 77);
  const auto jpeg = EncodeJpeg(pixels, kWidth, 1024, 3, {.progressive = true});
  SYSTOLE_CHECK(jpeg.ok());
  ShardBuilder builder;
  for (int i = 0; i < 8; ++i) {
    std::string image = *jpeg;
    if (damaged && i == 2) image.resize(image.size() / 2);
    if (damaged && i == 5) image = "no JPEG";
    builder.Add(ExampleBuilder().AddBytes("image", image).Serialize());
  }
  return OpenTestDataset({builder.Build()});
}

// Two specs: the first is computed in one pass, and the second needs whole images between its
// transforms.
std::vector<std::string> Specs(const std::string& on_corrupt) {
  std::vector<std::string> specs;
  for (const char* const flip : {"", "transforms { random_flip {} }"}) {
    specs.push_back(
        absl::StrCat("dataset: 'test' global_batch: 8 num_cores: 1 on_corrupt: ", on_corrupt,
                     " outputs { name: 'x' feature: 'image' dtype: UINT8 "
                     "transforms { decode_jpeg {} } ",
                     flip, " transforms { resize { height: 16 width: 16 } } }"));
  }
  return specs;
}

TEST(ScratchAccountTest, AllScratchMemoryIsReturnedHoweverATurnEnds) {
  for (const bool damaged : {false, true}) {
    for (const std::string on_corrupt : {"FAIL", "MASK"}) {
      for (const std::string& spec : Specs(on_corrupt)) {
        for (const bool interrupted : {false, true}) {
          SCOPED_TRACE(
              absl::StrCat(spec, damaged ? " damaged" : "", interrupted ? " interrupted" : ""));
          const auto plan = FeedPlan::Create(SpecFromText(spec), LargeImages(damaged));
          ASSERT_THAT(plan, IsOk());
          std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
          // With the large capacity, no thread waits for memory. With the small capacity, the maker
          // may keep no memory.
          for (const int64_t capacity : {1000 * kMiB, int64_t{1}}) {
            InterruptFlag unwanted;
            const InterruptScope scope(unwanted);
            SharedScratch shared(capacity);
            ScratchAccount account(shared);
            {
              ExampleMaker maker(&account);
              ExampleRun run = {.examples = {.begin = 0, .end = 8}};
              int64_t most = 0;
              maker.Make(*plan, 0, 0, run, slice.data(), [&] {
                most = std::max(most, account.held_bytes());
                if (interrupted) unwanted.Raise();
                return false;
              });
              EXPECT_GT(most, kMiB);
              EXPECT_LT(account.held_bytes(), capacity == 1 ? 1 : 4 * kMiB);
              EXPECT_EQ(shared.used_bytes(), account.held_bytes());
            }
            EXPECT_TRUE(account.EndTurn({}));
            EXPECT_EQ(shared.used_bytes(), 0);
          }
        }
      }
    }
  }
}

// Bytes that the allocator has handed out. Under AddressSanitizer the number is always the same.
size_t UsedBytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

TEST(ScratchAccountTest, AnExampleMakerFreesItsMemoryUnderATinyBudget) {
  const auto plan = FeedPlan::Create(SpecFromText(Specs("FAIL")[0]), LargeImages(false));
  ASSERT_THAT(plan, IsOk());
  std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
  SharedScratch shared(1);
  ScratchAccount account(shared);
  ExampleMaker maker(&account);
  const size_t before = UsedBytes();
  ASSERT_THAT(maker.Make(*plan, 0, 0, 0, 8, slice.data()), IsOk());
  EXPECT_LT(UsedBytes() - before, size_t{128} << 10);
}

TEST(ScratchAccountTest, LaterStepsReuseTheScratchMemoryOfTheFirstStep) {
  const auto dataset = OpenTestDataset(TestShards({16}));
  const auto plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' global_batch: 16 num_cores: 1 ", AllOutputs())),
      dataset);
  ASSERT_THAT(plan, IsOk());
  std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
  SharedScratch shared(1000 * kMiB);
  ScratchAccount account(shared);
  ExampleMaker maker(&account);
  ASSERT_THAT(maker.Make(*plan, 0, 0, 0, 16, slice.data()), IsOk());
  const int64_t held = account.held_bytes();
  EXPECT_GT(held, kMiB);
  for (int64_t step = 1; step < 4; ++step) {
    ExampleRun run = {.examples = {.begin = 0, .end = 16}};
    maker.Make(*plan, step, 0, run, slice.data(), [&] {
      EXPECT_EQ(account.held_bytes(), held);
      return false;
    });
    EXPECT_EQ(account.held_bytes(), held);
  }
}

std::vector<std::string> StepsOf(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan) {
  std::vector<std::string> steps;
  auto stream = engine.Open(plan, {.count = 6, .core_end = 1});
  EXPECT_THAT(stream, IsOk());
  for (int i = 0; i < 6; ++i) {
    const StepStream::Result slice = (*stream)->Next();
    if (!slice.ok() || !slice->has_value()) break;
    steps.push_back(SliceDigest(plan->layout(), (**slice)->data()));
  }
  EXPECT_EQ(steps.size(), 6u);
  return steps;
}

TEST(StepEngineScratchTest, ATinyScratchBudgetDoesNotChangeTheBytes) {
  const auto plan = FeedPlan::Create(SpecFromText(Specs("MASK")[0]), LargeImages(true));
  ASSERT_THAT(plan, IsOk());
  StepEngine much({.threads = 4});
  StepEngine little({.threads = 4, .scratch_budget_bytes = 1});
  EXPECT_EQ(StepsOf(little, *plan), StepsOf(much, *plan));
  EXPECT_EQ(little.GetStats().scratch_used_bytes, 0);
}

TEST(StepEngineScratchTest, AHangingReadDoesNotBlockOtherStreamsForScratchMemory) {
  const auto gate = std::make_shared<Gate>();
  std::vector<std::unique_ptr<const RecordSource>> shards;
  shards.push_back(std::make_unique<TfRecordShard>(*TfRecordShard::Create(
      std::make_unique<GatedSource>(TestShards({16})[0], "/data/hung.tfrecord", gate))));
  absl::StatusOr<std::shared_ptr<Dataset>> hung = Dataset::Create("hung", std::move(shards));
  ASSERT_THAT(hung, IsOk());
  const std::string output =
      " global_batch: 8 num_cores: 1 outputs { name: 'x' feature: 'image' dtype: UINT8 "
      "transforms { decode_jpeg {} } transforms { resize { height: 16 width: 16 } } }";
  const auto waits = FeedPlan::Create(SpecFromText("dataset: 'hung'" + output), *hung);
  const auto goes_on =
      FeedPlan::Create(SpecFromText("dataset: 'test'" + output), OpenTestDataset(TestShards({8})));
  ASSERT_THAT(waits, IsOk());
  ASSERT_THAT(goes_on, IsOk());
  gate->Shut();
  StepEngine engine({.threads = 1, .max_threads = 4, .scratch_budget_bytes = 1});
  const auto stream = engine.Open(*waits, {.count = 1, .core_end = 1});
  ASSERT_THAT(stream, IsOk());
  ASSERT_TRUE(WaitUntil([&] { return gate->waiting() == 1; }));
  StepsOf(engine, *goes_on);
  EXPECT_EQ(gate->waiting(), 1);
  gate->Open();
}

}  // namespace
}  // namespace systole
