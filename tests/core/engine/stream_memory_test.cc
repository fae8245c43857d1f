// Streams whose slices lie in memory for other processes, and whose consumers keep the slices they
// got.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/concurrency/mutex.h"
#include "core/engine/slice_budget.h"
#include "core/engine/step_engine.h"
#include "core/memory/sealed_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

constexpr int kCores = 4;
// The slices that are made ahead of the consumer: two steps.
constexpr int kAhead = 2 * kCores;

std::shared_ptr<const FeedPlan> MakePlan() {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' seed: 3 shuffle { mode: GLOBAL } global_batch: 4 ",
                                "num_cores: ", kCores, AllOutputs())),
      OpenTestDataset(TestShards({20})));
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

std::unique_ptr<StepStream> MustOpen(StepEngine& engine,
                                     const std::shared_ptr<const FeedPlan>& plan,
                                     const StreamMemory& memory) {
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 50, .core_end = kCores}, memory);
  EXPECT_THAT(stream, IsOk());
  return *std::move(stream);
}

SlicePtr MustNext(StepStream& stream) {
  StepStream::Result slice = stream.Next();
  EXPECT_TRUE(slice.ok() && slice->has_value()) << slice.status();
  return **std::move(slice);
}

// A call of Next() that may have to wait.
struct Asked {
  explicit Asked(StepStream& stream) {
    stream.Next([this](StepStream::Result result) {
      MutexLock lock(mu);
      ++answers;
      last = std::move(result);
      changed.SignalAll();
    });
  }
  int Answers() {
    MutexLock lock(mu);
    return answers;
  }
  SlicePtr Wait() {
    MutexLock lock(mu);
    while (answers == 0) changed.Wait(mu);
    EXPECT_TRUE(last.ok() && last->has_value());
    return **std::exchange(last, std::optional<SlicePtr>());
  }

  Mutex mu;
  CondVar changed;
  int answers ABSL_GUARDED_BY(mu) = 0;
  StepStream::Result last ABSL_GUARDED_BY(mu) = std::optional<SlicePtr>();
};

// Waits until an engine of one thread has made this many slices of one example. All of them but the
// last are then ready for the consumer.
void WaitForSlices(const StepEngine& engine, int64_t slices) {
  EXPECT_TRUE(WaitUntil([&] { return engine.GetStats().examples_made >= slices; }));
}

TEST(StreamMemoryTest, SlicesInSealedAndPrivateMemoryHoldTheSameBytes) {
  const auto plan = MakePlan();
  StepEngine engine({.threads = 2});
  const auto sealed = MustOpen(engine, plan, {.kind = BufferKind::kSealed});
  const auto ordinary = MustOpen(engine, plan, {});
  for (int i = 0; i < 50 * kCores; ++i) {
    const SlicePtr a = MustNext(*sealed);
    const SlicePtr b = MustNext(*ordinary);
    ASSERT_NE(a->sealed(), nullptr);
    EXPECT_EQ(b->sealed(), nullptr);
    const absl::StatusOr<SealedView> view =
        SealedView::Map(a->sealed()->fd(), a->layout().slice_bytes());
    ASSERT_THAT(view, IsOk());
    EXPECT_EQ(SliceDigest(a->layout(), view->data()), SliceDigest(b->layout(), b->data()));
  }
}

TEST(StreamMemoryTest, SealedBuffersAreReusedForLaterSlices) {
  const auto plan = MakePlan();
  StepEngine engine({.threads = 1, .max_threads = 1});
  const auto stream = MustOpen(engine, plan, {.kind = BufferKind::kSealed});
  std::vector<uint64_t> ids;
  for (int i = 0; i < 50 * kCores; ++i) ids.push_back(MustNext(*stream)->sealed()->id());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_LE(ids.size(), kAhead + 1u);
}

TEST(StreamMemoryTest, DroppingASliceFromAFullWindowDeliversTheNextSlice) {
  const auto plan = MakePlan();
  StepEngine engine({.threads = 1, .max_threads = 1});
  const auto stream = MustOpen(engine, plan, {.window_bytes = 3 * plan->layout().slice_bytes()});
  std::vector<SlicePtr> held;
  for (int i = 0; i < 3; ++i) held.push_back(MustNext(*stream));
  WaitForSlices(engine, 3 + kAhead);
  Asked asked(*stream);  // The slice is made already, but the window is full.
  EXPECT_EQ(asked.Answers(), 0);
  held.erase(held.begin());
  EXPECT_EQ(asked.Answers(), 1);
  const SlicePtr slice = asked.Wait();
  EXPECT_EQ(slice->step(), 0);
  EXPECT_EQ(slice->core(), 3);
}

TEST(StreamMemoryTest, TwoSlicesAreGivenHoweverSmallTheWindow) {
  const auto plan = MakePlan();
  StepEngine engine({.threads = 1, .max_threads = 1});
  const auto stream = MustOpen(engine, plan, {.window_bytes = 0});
  const SlicePtr first = MustNext(*stream);
  SlicePtr second = MustNext(*stream);
  WaitForSlices(engine, 2 + kAhead);
  Asked asked(*stream);
  EXPECT_EQ(asked.Answers(), 0);
  second = nullptr;
  asked.Wait();
}

TEST(StreamMemoryTest, TheEndOfTheStreamIsReportedThoughTheWindowIsFull) {
  const auto plan = MakePlan();
  StepEngine engine({.threads = 1, .max_threads = 1});
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      engine.Open(plan, {.count = 1, .core_end = 2}, {.window_bytes = 0});
  ASSERT_THAT(stream, IsOk());
  const SlicePtr first = MustNext(**stream);
  const SlicePtr second = MustNext(**stream);
  EXPECT_THAT((*stream)->Next(), IsOkAndHolds(testing::Eq(std::nullopt)));
}

TEST(StreamMemoryTest, CancelAnswersAConsumerWithAFullWindowExactlyOnce) {
  const auto plan = MakePlan();
  StepEngine engine({.threads = 1, .max_threads = 1});
  const auto stream = MustOpen(engine, plan, {.window_bytes = 0});
  SlicePtr first = MustNext(*stream);
  const SlicePtr second = MustNext(*stream);
  WaitForSlices(engine, 2 + kAhead);
  Asked asked(*stream);
  stream->Cancel();
  first = nullptr;
  EXPECT_EQ(asked.Answers(), 1);
  MutexLock lock(asked.mu);
  EXPECT_THAT(asked.last, StatusIs(absl::StatusCode::kCancelled, testing::_));
}

TEST(StreamMemoryTest, LookAheadBehindAFullWindowIsTakenBackForANewStream) {
  const auto plan = MakePlan();
  const int64_t budget = 16 * (plan->layout().slice_bytes() + kSliceOverheadBytes);
  // A stream gets a quarter of the budget, four slices: two that are held and two made ahead.
  StepEngine engine({.threads = 1, .max_threads = 1, .memory_budget_bytes = budget});
  std::vector<std::unique_ptr<StepStream>> streams;
  std::vector<std::vector<SlicePtr>> held;
  std::vector<std::unique_ptr<Asked>> asked;
  for (int i = 0; i < 4; ++i) {
    // Each stream has its own plan, because streams of one plan share their slices.
    streams.push_back(
        MustOpen(engine, MakePlan(), {.kind = BufferKind::kSealed, .window_bytes = 0}));
    held.push_back({MustNext(*streams.back()), MustNext(*streams.back())});
  }
  ASSERT_TRUE(WaitUntil([&] { return engine.GetStats().memory_used_bytes == budget; }));
  WaitForSlices(engine, 16);
  for (const auto& stream : streams) asked.push_back(std::make_unique<Asked>(*stream));
  for (int i = 0; i < 4; ++i) {
    streams.push_back(MustOpen(engine, plan, {}));
    EXPECT_NE(MustNext(*streams.back()), nullptr);
  }
  for (const auto& each : asked) EXPECT_EQ(each->Answers(), 0);
  for (const auto& stream : streams) stream->Cancel();  // Answers `asked` before it is destroyed.
}

}  // namespace
}  // namespace systole
