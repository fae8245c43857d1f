#include "core/pipeline/example_maker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg_encoder.h"
#include "core/pipeline/first_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/pipeline/test_dataset.h"
#include "tests/core/record/shard_builder.h"
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

// Records of which some are damaged: the record itself, its image's header, its image's data, and
// an image of another kind.
std::string ShardWithDamage() {
  ShardBuilder builder;
  for (int64_t i = 0; i < 16; ++i) {
    std::string jpeg = TestJpeg(i);
    if (i == 3) jpeg[0] = 'x';
    if (i == 4 || i == 7) jpeg.resize(jpeg.size() / 2);
    if (i == 9) {
      jpeg = *EncodeJpeg(std::vector<uint8_t>(64 * 64 * 3, 77), 64, 64, 3, {.progressive = true});
    }
    builder.Add(i == 12 ? "no example" : ExampleBuilder().AddBytes("image", jpeg).Serialize());
  }
  return builder.Build();
}

constexpr char kTwoImages[] =
    "dataset: 'test' seed: 5 global_batch: 16 num_cores: 1 shuffle { mode: GLOBAL } "
    "outputs { name: 'x' feature: 'image' dtype: FLOAT32 transforms { decode_jpeg {} } "
    "  transforms { random_resized_crop { height: 16 width: 16 } } } "
    "outputs { name: 'y' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
    "  transforms { resize { height: 8 width: 8 } } } ";

TEST(ExampleMakerTest, ExamplesMadeTogetherEqualExamplesMadeAlone) {
  const auto dataset = OpenTestDataset({ShardWithDamage()});
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(SpecFromText(absl::StrCat(kTwoImages, "on_corrupt: MASK")), dataset);
  ASSERT_THAT(plan, IsOk());
  const auto slice_bytes = static_cast<size_t>((*plan)->layout().slice_bytes());
  ExampleMaker maker;
  for (int64_t step = 0; step < 5; ++step) {
    std::vector<uint8_t> together(slice_bytes), alone(slice_bytes);
    ASSERT_THAT(maker.Make(*plan, step, 0, 0, 16, together.data()), IsOk());
    for (int64_t slot = 0; slot < 16; ++slot) {
      ASSERT_THAT(maker.Make(*plan, step, 0, slot, slot + 1, alone.data()), IsOk());
    }
    EXPECT_EQ(together, alone) << "step " << step;
  }
  EXPECT_EQ(dataset->damage().masked_examples(), 5 * 2 * 4);
}

TEST(ExampleMakerTest, ACallThatFailsLeavesNothingToTheNext) {
  const auto dataset = OpenTestDataset({ShardWithDamage()});
  absl::StatusOr<std::shared_ptr<const FeedPlan>> fail =
      FeedPlan::Create(SpecFromText(kTwoImages), dataset);
  ASSERT_THAT(fail, IsOk());
  ExampleMaker used;
  for (int64_t step = 0; step < 5; ++step) {
    for (int64_t end = 1; end <= 16; ++end) {
      const auto slice_bytes = static_cast<size_t>((*fail)->layout().slice_bytes());
      std::vector<uint8_t> ours(slice_bytes), theirs(slice_bytes);
      ExampleMaker fresh;
      const absl::Status status = fresh.Make(*fail, step, 0, 0, end, theirs.data());
      EXPECT_EQ(used.Make(*fail, step, 0, 0, end, ours.data()), status);
      EXPECT_EQ(ours, theirs);
    }
  }
}

}  // namespace
}  // namespace systole
