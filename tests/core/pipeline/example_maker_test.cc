#include "core/pipeline/example_maker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>

#include "absl/status/status.h"
#include "core/pipeline/first_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(FirstErrorTest, TheLowestSlotStaysWhateverComesFirst) {
  FirstError error;
  EXPECT_THAT(error.status(), IsOk());
  error.Add(7, absl::DataLossError("seven"));
  error.Add(3, absl::DataLossError("three"));
  error.Add(5, absl::DataLossError("five"));
  error.Add(3, absl::DataLossError("three again"));
  error.Add(0, absl::OkStatus());
  EXPECT_THAT(error.status(), StatusIs(absl::StatusCode::kDataLoss, "three"));
}

// The bytes of address space that this process uses.
uint64_t AddressSpace() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(ExampleMakerTest, NoMemoryToPlaceAnExampleIsNoDamageAndNeverMasked) {
  // An example that is not written straight into its place takes 3 GiB of scratch.
  const auto dataset = OpenTestDataset(TestShards({1}));
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText("dataset: 'test' global_batch: 1 num_cores: 1 on_corrupt: MASK "
                   "outputs { name: 'x' feature: 'image' dtype: FLOAT32 layout: NCHW "
                   "  transforms { decode_jpeg {} } "
                   "  transforms { resize { height: 16384 width: 16384 } } }"),
      dataset);
  ASSERT_THAT(plan, IsOk());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit little = {.rlim_cur = AddressSpace() + (uint64_t{1} << 30),
                         .rlim_max = before.rlim_max};
  ExampleMaker maker;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  // Fails before it looks at the slice.
  const absl::Status status = maker.Make(*plan, /*step=*/0, /*core=*/0, 0, 1, /*slice=*/nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("refused a buffer")));
  EXPECT_EQ(dataset->damage().masked_examples(), 0);
}

}  // namespace
}  // namespace systole
