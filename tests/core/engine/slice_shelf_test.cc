#include "core/engine/slice_shelf.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsNull;

using Plan = std::shared_ptr<const FeedPlan>;

Plan MakePlan(int batch) {
  absl::StatusOr<Plan> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat("dataset: 'test' num_cores: 2 tail: PAD global_batch: ", batch,
                                " outputs { name: 'id' feature: 'record_id' dtype: INT32 }")),
      OpenTestDataset(TestShards({20})));
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

// Makes a slice with one byte of memory, because the shelf looks only at the size in the plan.
SharedSlicePtr MakeSlice(const Plan& plan, int64_t step, int core = 0,
                         BufferKind kind = BufferKind::kPrivate) {
  absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(1);
  EXPECT_THAT(buffer, IsOk());
  return std::make_shared<SharedSlice>(plan, kind, step, core, 1, /*reads_ahead=*/false,
                                       *std::move(buffer));
}

// Makes calls in any order and compares the shelf with plain lists.
class Model {
 public:
  Model(uint64_t seed, const std::vector<Plan>& plans)
      : random_(seed, 0, 0, 0),
        plans_(plans),
        max_bytes_(Pick(20) * MakeSlice(plans[0], 0)->cost_bytes()),
        max_kept_(static_cast<size_t>(Pick(12))),
        shelf_(max_bytes_, max_kept_) {}

  void Act() {
    switch (Pick(8)) {
      case 0:
      case 1:
        return Add();
      case 2:
      case 3:
        return Keep();
      case 4:
        return Unkeep();
      case 5:
        return Remove();
      case 6:
        return TakeLast();
      default:
        return Pick(10) == 0 ? TakeUnwanted() : Find();
    }
  }

  void Check() const {
    int64_t bytes = 0;
    for (const SharedSlicePtr& slice : kept_) bytes += slice->cost_bytes();
    ASSERT_EQ(shelf_.kept_bytes(), bytes);
    ASSERT_EQ(shelf_.kept(), kept_.size());
    ASSERT_LE(bytes, max_bytes_);
    ASSERT_LE(kept_.size(), max_kept_);
    for (const SharedSlicePtr& slice : all_) {
      ASSERT_EQ(shelf_.Has(*slice), Contains(found_, slice));
      const SharedSlicePtr other = FoundInModel(*slice);
      ASSERT_EQ(shelf_.Find(slice->key()), other);
    }
  }

  int64_t refused() const { return refused_; }
  int64_t kept() const { return times_kept_; }

 private:
  using Slices = std::vector<SharedSlicePtr>;

  int64_t Pick(int64_t count) { return random_.UniformInt(0, count); }
  static bool Contains(const Slices& slices, const SharedSlicePtr& slice) {
    return std::find(slices.begin(), slices.end(), slice) != slices.end();
  }
  SharedSlicePtr FoundInModel(const SharedSlice& like) const {
    for (const SharedSlicePtr& slice : found_) {
      if (slice->key() == like.key()) return slice;
    }
    return nullptr;
  }
  SharedSlicePtr Any() {
    return all_.empty() ? nullptr : all_[static_cast<size_t>(Pick(std::ssize(all_)))];
  }

  void Add() {
    if (all_.size() == 60) all_.erase(all_.begin() + Pick(60));
    const SharedSlicePtr slice = MakeSlice(
        plans_[static_cast<size_t>(Pick(std::ssize(plans_)))], Pick(6), static_cast<int>(Pick(2)),
        Pick(2) == 0 ? BufferKind::kPrivate : BufferKind::kSealed);
    all_.push_back(slice);
    shelf_.Add(slice);
    if (FoundInModel(*slice) == nullptr) found_.push_back(slice);
  }

  void Keep() {
    const SharedSlicePtr slice = Any();
    if (slice == nullptr || !Contains(found_, slice) || Contains(kept_, slice)) return;
    const bool has_room =
        shelf_.kept_bytes() + slice->cost_bytes() <= max_bytes_ && kept_.size() + 1 <= max_kept_;
    ASSERT_EQ(shelf_.HasRoom(slice->cost_bytes()), has_room);
    ++(has_room ? times_kept_ : refused_);
    if (!has_room) return;
    shelf_.Keep(*slice);
    kept_.push_back(slice);
  }

  void Unkeep() {
    const SharedSlicePtr slice = Any();
    if (slice == nullptr) return;
    shelf_.Unkeep(*slice);
    std::erase(kept_, slice);
  }

  void Remove() {
    const SharedSlicePtr slice = Any();
    if (slice == nullptr) return;
    shelf_.Remove(*slice);
    std::erase(kept_, slice);
    std::erase(found_, slice);
  }

  void TakeLast() {
    const SharedSlicePtr last = shelf_.TakeLast();
    ASSERT_EQ(last, kept_.empty() ? nullptr : kept_.back());
    std::erase(kept_, last);
    std::erase(found_, last);
  }

  void TakeUnwanted() {
    const int64_t wanted_from = Pick(7);
    Slices unwanted;
    for (const SharedSlicePtr& slice : kept_) {
      if (slice->step() < wanted_from) unwanted.push_back(slice);
    }
    const Slices taken =
        shelf_.TakeUnwanted([&](const SharedSlice& slice) { return slice.step() >= wanted_from; });
    ASSERT_EQ(taken, unwanted);
    for (const SharedSlicePtr& slice : taken) {
      std::erase(kept_, slice);
      std::erase(found_, slice);
    }
  }

  void Find() {
    const SharedSlicePtr slice = Any();
    if (slice == nullptr) return;
    ASSERT_EQ(shelf_.Find(slice->key()), FoundInModel(*slice));
  }

  CounterRng random_;
  const std::vector<Plan>& plans_;
  const int64_t max_bytes_;
  const size_t max_kept_;
  SliceShelf shelf_;
  Slices all_;
  Slices found_;
  Slices kept_;  // Oldest first.
  int64_t refused_ = 0;
  int64_t times_kept_ = 0;
};

TEST(SliceShelfTest, RandomCallsStayWithinBoundsAndMatchAModelOfPlainLists) {
  const std::vector<Plan> plans = {MakePlan(4), MakePlan(4), MakePlan(2'000)};
  int64_t refused = 0, kept = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Model model(seed, plans);
    for (int i = 0; i < 400; ++i) {
      model.Act();
      model.Check();
      if (HasFatalFailure()) return;
    }
    refused += model.refused();
    kept += model.kept();
  }
  // The test shows something only if the shelf has often refused slices and often kept them.
  EXPECT_GT(refused, 100);
  EXPECT_GT(kept, 200);
}

TEST(SliceShelfTest, TakeLastReturnsTheMostRecentlyKeptSliceFirst) {
  const Plan plan = MakePlan(4);
  SliceShelf shelf(1 << 20, 10);
  std::vector<SharedSlicePtr> slices;
  for (int64_t step = 0; step < 3; ++step) {
    slices.push_back(MakeSlice(plan, step));
    shelf.Add(slices.back());
    shelf.Keep(*slices.back());
  }
  EXPECT_EQ(shelf.TakeLast(), slices[2]);
  EXPECT_EQ(shelf.TakeLast(), slices[1]);
  EXPECT_EQ(shelf.TakeLast(), slices[0]);
  EXPECT_THAT(shelf.TakeLast(), IsNull());
  EXPECT_EQ(shelf.kept_bytes(), 0);
}

TEST(SliceShelfTest, AnUnkeptSliceIsStillFoundButNotTaken) {
  const Plan plan = MakePlan(4);
  SliceShelf shelf(1 << 20, 10);
  const SharedSlicePtr slice = MakeSlice(plan, 0);
  shelf.Add(slice);
  shelf.Keep(*slice);
  shelf.Unkeep(*slice);
  EXPECT_EQ(shelf.Find(slice->key()), slice);
  EXPECT_THAT(shelf.TakeLast(), IsNull());
  EXPECT_THAT(shelf.TakeUnwanted([](const SharedSlice&) { return false; }), IsEmpty());
  shelf.Keep(*slice);
  EXPECT_THAT(shelf.TakeUnwanted([](const SharedSlice&) { return false; }), ElementsAre(slice));
  EXPECT_THAT(shelf.Find(slice->key()), IsNull());
}

TEST(SliceShelfTest, FindMatchesPlanStepCoreAndKindOfMemory) {
  const Plan plan = MakePlan(4);
  SliceShelf shelf(1 << 20, 10);
  const SharedSlicePtr slice = MakeSlice(plan, 1, 1, BufferKind::kSealed);
  shelf.Add(slice);
  EXPECT_EQ(shelf.Find(MakeSlice(plan, 1, 1, BufferKind::kSealed)->key()), slice);
  EXPECT_THAT(shelf.Find(MakeSlice(plan, 2, 1, BufferKind::kSealed)->key()), IsNull());
  EXPECT_THAT(shelf.Find(MakeSlice(plan, 1, 0, BufferKind::kSealed)->key()), IsNull());
  EXPECT_THAT(shelf.Find(MakeSlice(plan, 1, 1, BufferKind::kPrivate)->key()), IsNull());
  EXPECT_THAT(shelf.Find(MakeSlice(MakePlan(4), 1, 1, BufferKind::kSealed)->key()), IsNull());
}

}  // namespace
}  // namespace systole
