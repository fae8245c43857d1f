#include "core/dataset/shared_zip.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

using Zip = std::shared_ptr<const Dataset>;

Zip MustZip(std::vector<ZippedMember> members) {
  absl::StatusOr<Zip> zip = SharedZip(std::move(members));
  EXPECT_THAT(zip, IsOk());
  return *std::move(zip);
}

TEST(SharedZipTest, OneZipIsMadeForTheSameMembersPrefixesAndOrder) {
  const auto a = OpenTestDataset(TestShards({3, 5}), "a");
  const auto b = OpenTestDataset(TestShards({8}), "b");
  const Zip zip = MustZip({{a, ""}, {b, "b/"}});
  EXPECT_EQ(MustZip({{a, ""}, {b, "b/"}}), zip);
  EXPECT_NE(MustZip({{a, ""}, {b, "c/"}}), zip);
  EXPECT_NE(MustZip({{b, "b/"}, {a, ""}}), zip);
  EXPECT_NE(MustZip({{a, ""}, {b, "b/"}, {b, "c/"}}), zip);
  // The same shards, opened anew.
  EXPECT_NE(MustZip({{a, ""}, {OpenTestDataset(TestShards({8}), "b"), "b/"}}), zip);
}

TEST(SharedZipTest, AZipIsFreedWithItsLastFeed) {
  const auto a = OpenTestDataset(TestShards({4}), "a");
  Zip zip = MustZip({{a, ""}, {a, "2/"}});
  const std::weak_ptr<const Dataset> left = zip;
  zip.reset();
  EXPECT_TRUE(left.expired());
  EXPECT_EQ(a.use_count(), 1);
  EXPECT_EQ(MustZip({{a, ""}, {a, "2/"}})->num_records(), 4);
}

TEST(SharedZipTest, ZippingDatasetsOfUnequalLengthFailsEachTime) {
  const auto a = OpenTestDataset(TestShards({4}), "a");
  const auto b = OpenTestDataset(TestShards({5}), "b");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(SharedZip({{a, ""}, {b, "b/"}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want equal numbers")));
  }
}

TEST(SharedZipTest, ThreadsThatAskAtOnceGetOneZip) {
  const auto a = OpenTestDataset(TestShards({4, 4}), "a");
  std::vector<Zip> zips(8);
  ParallelFor(8, 8, [&](int64_t i) {
    for (int again = 0; again < 50; ++again) {
      zips[static_cast<size_t>(i)] = MustZip({{a, ""}, {a, "2/"}});
    }
  });
  const Zip now = MustZip({{a, ""}, {a, "2/"}});
  for (const Zip& zip : zips) EXPECT_EQ(zip, now);
}

}  // namespace
}  // namespace systole
