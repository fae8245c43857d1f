#include "client/emulator/chip/published.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

using testing::IsEmpty;

// With 64 images a core or more, the emulator is close to the measured rates. With few images a
// core it is known to be too fast.
TEST(PublishedTest, ResNet50IsComparedAtEveryMeasurementsOwnSliceAndBatch) {
  const Model model = ShippedModel("resnet50");
  const absl::StatusOr<std::vector<Comparison>> v2 =
      CompareWithPublished(model, ShippedChip("v2"), {.per_core_batch = 1});
  ASSERT_THAT(v2, IsOk());
  ASSERT_EQ(v2->size(), 5u);
  const Comparison& mature = (*v2)[2];
  EXPECT_EQ(mature.slice, "v2-8");
  EXPECT_EQ(mature.per_core_batch, 128);
  EXPECT_EQ(mature.published_examples_per_s, 4025);
  EXPECT_NEAR(mature.emulated_examples_per_s / 3768, 1, 0.01);
  EXPECT_NEAR(mature.misfit(), -0.066, 0.005);
  const absl::StatusOr<std::vector<Comparison>> v3 =
      CompareWithPublished(model, ShippedChip("v3"), {.per_core_batch = 1});
  ASSERT_THAT(v3, IsOk());
  ASSERT_EQ(v3->size(), 2u);
  EXPECT_EQ((*v3)[0].slice, "v3-512");
  EXPECT_NEAR((*v3)[0].misfit(), -0.08, 0.01);
  EXPECT_EQ((*v3)[1].per_core_batch, 16);
  EXPECT_GT((*v3)[1].misfit(), 0.4);
}

TEST(PublishedTest, MeasurementsOfOtherModelsAreIgnored) {
  const absl::StatusOr<std::vector<Comparison>> none =
      CompareWithPublished(ShippedModel("mlp-784"), ShippedChip("v2"), {});
  ASSERT_THAT(none, IsOk());
  EXPECT_THAT(*none, IsEmpty());
}

TEST(PublishedTest, OverlapIsTheCallersChoice) {
  v1::Chip chip = ToyChip();
  v1::Measurement* measurement = chip.add_measurements();
  measurement->set_model("toy");
  measurement->set_slice("one");
  measurement->set_per_core_batch(4);
  measurement->set_examples_per_s(1000);
  measurement->set_source("a stopwatch");
  const Model model = ToyModel("6", "layers { dense { units: 8 } }");
  for (const double overlap : {0.0, 1.0}) {
    const absl::StatusOr<std::vector<Comparison>> compared =
        CompareWithPublished(model, chip, {.overlap = overlap});
    ASSERT_THAT(compared, IsOk());
    ASSERT_EQ(compared->size(), 1u);
    const absl::StatusOr<ChipProgram> program =
        CompileProgram(model, chip, {.per_core_batch = 4, .slice = "one", .overlap = overlap});
    ASSERT_THAT(program, IsOk());
    EXPECT_EQ((*compared)[0].emulated_examples_per_s, program->examples_per_s());
    EXPECT_EQ((*compared)[0].source, "a stopwatch");
  }
}

}  // namespace
}  // namespace systole::emulator
