#include "core/engine/dataset_shares.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

using Plan = std::shared_ptr<const FeedPlan>;

constexpr int64_t kBudgetBytes = 1'000;

Plan PlanOver(const std::shared_ptr<Dataset>& dataset, const std::string& datasets) {
  absl::StatusOr<Plan> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat(datasets, " num_cores: 1 global_batch: 4 epochs: 1 ",
                                "outputs { name: 'id' feature: 'record_id' dtype: INT64 }")),
      dataset);
  EXPECT_THAT(plan, IsOk());
  return *plan;
}

// A plan of one dataset of 16 records.
Plan PlanOver(const std::string& name) {
  return PlanOver(OpenTestDataset(TestShards({16}), name), absl::StrCat("dataset: '", name, "'"));
}

DatasetShares Shares(int max_threads) { return DatasetShares(max_threads, absl::Seconds(7)); }

// Gives each dataset in turn as many threads as an engine would, and lets the reads of all threads
// hang.
std::vector<int> ThreadsOfDatasetsThatHang(int max_threads, int num_datasets) {
  DatasetShares shares = Shares(max_threads);
  std::vector<HungTask> hung;
  std::vector<int> threads;
  std::vector<Plan> plans;
  for (int i = 0; i < num_datasets; ++i) {
    plans.push_back(PlanOver(absl::StrCat("d", i)));
    threads.push_back(0);
    while (static_cast<int>(hung.size()) < max_threads &&
           !shares.Judge(hung, kBudgetBytes).Of(*plans[i]).has_value()) {
      shares.Begin(*plans[i]);
      hung.push_back({.plan = plans[i].get()});
      ++threads[i];
    }
  }
  return threads;
}

TEST(DatasetSharesTest, EachHungDatasetGetsFourSeventhsOfTheThreadsThatAreLeft) {
  EXPECT_EQ(ThreadsOfDatasetsThatHang(7, 3), (std::vector<int>{4, 1, 1}));
  EXPECT_EQ(ThreadsOfDatasetsThatHang(70, 4), (std::vector<int>{40, 17, 7, 3}));
  EXPECT_EQ(ThreadsOfDatasetsThatHang(1, 2), (std::vector<int>{1, 0}));
  for (int max_threads = 2; max_threads < 60; ++max_threads) {
    // Another dataset, which does not hang, still finds a thread.
    const std::vector<int> threads = ThreadsOfDatasetsThatHang(max_threads, 1);
    EXPECT_LT(threads[0], max_threads);
  }
}

TEST(DatasetSharesTest, ADatasetThatHasItsShareOfThreadsWaitsAndOthersDoNot) {
  DatasetShares shares = Shares(7);
  const Plan busy = PlanOver("busy");
  const Plan other = PlanOver("other");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(shares.Begin(*busy));
  EXPECT_EQ(shares.Judge({}, kBudgetBytes).Of(*busy), std::nullopt);
  EXPECT_TRUE(shares.Begin(*busy));
  EXPECT_THAT(shares.Judge({}, kBudgetBytes).Of(*busy), Optional(IsOk()));
  EXPECT_EQ(shares.Judge({}, kBudgetBytes).Of(*other), std::nullopt);
  EXPECT_TRUE(shares.End(*busy));
  EXPECT_EQ(shares.Judge({}, kBudgetBytes).Of(*busy), std::nullopt);
}

TEST(DatasetSharesTest, AHungDatasetMayHoldAQuarterOfTheBudgetAndLessIfOthersHang) {
  DatasetShares shares = Shares(70);
  const Plan a = PlanOver("a");
  const Plan b = PlanOver("b");
  const Plan c = PlanOver("c");
  for (const Plan& plan : {a, b, c}) shares.Begin(*plan);
  std::vector<HungTask> hung = {{.plan = a.get(), .cost_bytes = kBudgetBytes / 4}};
  EXPECT_THAT(shares.Judge(hung, kBudgetBytes).Of(*a), Optional(IsOk()));
  hung[0].cost_bytes -= 1;
  EXPECT_EQ(shares.Judge(hung, kBudgetBytes).Of(*a), std::nullopt);
  // All datasets that hang share half of the budget. So each of three may hold a sixth of the
  // budget.
  hung.push_back({.plan = b.get(), .cost_bytes = 1});
  hung.push_back({.plan = c.get(), .cost_bytes = 1});
  EXPECT_THAT(shares.Judge(hung, kBudgetBytes).Of(*a), Optional(IsOk()));
  EXPECT_EQ(shares.Judge(hung, kBudgetBytes).Of(*b), std::nullopt);
}

TEST(DatasetSharesTest, ATimedOutReadFailsStreamsOnceItsDatasetHasItsShareOfThreads) {
  DatasetShares shares = Shares(2);
  const Plan plan = PlanOver("hung");
  std::vector<HungTask> hung = {{.plan = plan.get(), .record = 3, .timed_out = true}};
  shares.Begin(*plan);
  EXPECT_THAT(shares.Judge(hung, kBudgetBytes).Of(*plan),
              Optional(StatusIs(absl::StatusCode::kUnavailable,
                                AllOf(HasSubstr("record 3"), HasSubstr("has not returned for 7s"),
                                      HasSubstr("check its mount")))));
  DatasetShares more = Shares(7);
  more.Begin(*plan);
  EXPECT_EQ(more.Judge(hung, kBudgetBytes).Of(*plan), std::nullopt);
}

TEST(DatasetSharesTest, AConcatenationOrMixtureCountsForAllMembersUntilOneIsKnownToHang) {
  const std::shared_ptr<Dataset> a = OpenTestDataset(TestShards({16}), "a");
  const std::shared_ptr<Dataset> b = OpenTestDataset(TestShards({16}), "b");
  absl::StatusOr<std::shared_ptr<Dataset>> joined = Dataset::Join({a, b});
  ASSERT_THAT(joined, IsOk());
  const Plan of_a = PlanOver(a, "dataset: 'a'");
  const Plan of_b = PlanOver(b, "dataset: 'b'");
  for (const char* members :
       {"concatenation { dataset: 'a' } concatenation { dataset: 'b' }",
        "mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' weight: 1 }"}) {
    SCOPED_TRACE(members);
    const Plan both = PlanOver(*joined, members);
    DatasetShares shares = Shares(4);  // One dataset may have two threads.
    shares.Begin(*both);
    EXPECT_TRUE(shares.Begin(*both));
    for (const Plan& plan : {both, of_a, of_b}) {
      EXPECT_THAT(shares.Judge({}, kBudgetBytes).Of(*plan), Optional(IsOk()));
    }
    // Both tasks read records of b.
    const std::vector<HungTask> hung(2, {.plan = both.get(), .record = 20, .timed_out = true});
    const DatasetShares::Verdict verdict = shares.Judge(hung, kBudgetBytes);
    EXPECT_EQ(verdict.Of(*of_a), std::nullopt);
    for (const Plan& plan : {both, of_b}) {
      EXPECT_THAT(verdict.Of(*plan),
                  Optional(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("record_id 20"))));
    }
  }
}

TEST(DatasetSharesTest, AZipCountsForAllItsMembersUntilTheOneThatHangsIsKnown) {
  const std::shared_ptr<Dataset> a = OpenTestDataset(TestShards({16}), "a");
  const std::shared_ptr<Dataset> b = OpenTestDataset(TestShards({16}), "b");
  absl::StatusOr<std::shared_ptr<Dataset>> joined = Dataset::Zip({{a, ""}, {b, "b/"}});
  ASSERT_THAT(joined, IsOk());
  const Plan both = PlanOver(*joined, "zip { dataset: 'a' } zip { dataset: 'b' prefix: 'b/' }");
  const Plan of_a = PlanOver(a, "dataset: 'a'");
  const Plan of_b = PlanOver(b, "dataset: 'b'");
  DatasetShares shares = Shares(4);  // One dataset may have two threads.
  shares.Begin(*both);
  EXPECT_TRUE(shares.Begin(*both));
  for (const Plan& plan : {both, of_a, of_b}) {
    EXPECT_THAT(shares.Judge({}, kBudgetBytes).Of(*plan), Optional(IsOk()));
  }
  std::vector<HungTask> hung(2, {.plan = both.get(), .record = 3, .part = 1, .timed_out = true});
  const auto b_hangs = Optional(
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr("dataset 'b'"), HasSubstr("record 3"), Not(HasSubstr("'a'")))));
  DatasetShares::Verdict verdict = shares.Judge(hung, kBudgetBytes);
  EXPECT_EQ(verdict.Of(*of_a), std::nullopt);
  EXPECT_THAT(verdict.Of(*of_b), b_hangs);
  EXPECT_THAT(verdict.Of(*both), b_hangs);
  // If it is not known which member is read, each member may be the one that hangs.
  for (HungTask& task : hung) task.part = std::nullopt;
  verdict = shares.Judge(hung, kBudgetBytes);
  for (const Plan& plan : {both, of_a, of_b}) {
    EXPECT_THAT(verdict.Of(*plan),
                Optional(StatusIs(absl::StatusCode::kUnavailable, HasSubstr("record 3"))));
  }
}

TEST(DatasetSharesTest, ADatasetThatASpecNamesSeveralTimesCountsOnce) {
  const std::shared_ptr<Dataset> a = OpenTestDataset(TestShards({16}), "a");
  absl::StatusOr<std::shared_ptr<Dataset>> joined = Dataset::Zip({{a, ""}, {a, "2/"}, {a, "3/"}});
  ASSERT_THAT(joined, IsOk());
  const Plan thrice = PlanOver(*joined,
                               "zip { dataset: 'a' } zip { dataset: 'a' prefix: '2/' } "
                               "zip { dataset: 'a' prefix: '3/' }");
  DatasetShares shares = Shares(7);  // One dataset may have four threads.
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(shares.Begin(*thrice));
  EXPECT_EQ(shares.Judge({}, kBudgetBytes).Of(*thrice), std::nullopt);
  const std::vector<HungTask> hung(2, {.plan = thrice.get(), .cost_bytes = kBudgetBytes / 9});
  EXPECT_EQ(shares.Judge(hung, kBudgetBytes).Of(*thrice), std::nullopt);
  EXPECT_TRUE(shares.Begin(*thrice));
  EXPECT_THAT(shares.Judge({}, kBudgetBytes).Of(*thrice), Optional(IsOk()));
}

// Tasks begin and end in any order. A dataset has to wait exactly while it has its share of the
// threads.
TEST(DatasetSharesTest, InAnyOrderOfTasksADatasetWaitsExactlyWhileItHasItsShare) {
  const std::vector<Plan> plans = {PlanOver("a"), PlanOver("b"), PlanOver("c")};
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 0, 0, 0);
    const auto max_threads = static_cast<int>(random.UniformInt(1, 20));
    DatasetShares shares = Shares(max_threads);
    std::vector<size_t> tasks;
    std::vector<int> threads(plans.size(), 0);
    const int share = std::max(1, max_threads * 4 / 7);
    for (int i = 0; i < 500; ++i) {
      const bool begins =
          tasks.empty() || (std::ssize(tasks) < max_threads && random.UniformInt(0, 2) == 0);
      const auto at = static_cast<size_t>(begins ? 0 : random.UniformInt(0, std::ssize(tasks)));
      const size_t plan =
          begins ? static_cast<size_t>(random.UniformInt(0, std::ssize(plans))) : tasks[at];
      const bool had_share = threads[plan] >= share;
      threads[plan] += begins ? 1 : -1;
      const bool changed = begins ? shares.Begin(*plans[plan]) : shares.End(*plans[plan]);
      ASSERT_EQ(changed, had_share != (threads[plan] >= share));
      if (begins) {
        tasks.push_back(plan);
      } else {
        tasks.erase(tasks.begin() + static_cast<int64_t>(at));
      }
      const DatasetShares::Verdict verdict = shares.Judge({}, kBudgetBytes);
      for (size_t j = 0; j < plans.size(); ++j) {
        ASSERT_EQ(verdict.Of(*plans[j]).has_value(), threads[j] >= share);
      }
    }
  }
}

}  // namespace
}  // namespace systole
