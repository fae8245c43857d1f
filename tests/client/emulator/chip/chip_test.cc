#include "client/emulator/chip/chip.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "client/emulator/chip/all_reduce_model.h"
#include "client/emulator/shipped/shipped_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

v1::Chip Shipped(const std::string& name) {
  absl::StatusOr<v1::Chip> chip = LoadChip(name);
  EXPECT_THAT(chip, IsOk());
  return chip.ok() ? *chip : v1::Chip();
}

// Compares 2 * cores * units * rows * columns * clock * macs_per_place with the maker's peak.
TEST(ChipTest, ShippedPeaksAreWithinOnePercentOfThePublishedOnes) {
  for (const ShippedFile& file : ShippedChips()) {
    const v1::Chip chip = Shipped(std::string(file.name));
    ASSERT_GT(chip.published_peak_flops(), 0) << file.name;
    EXPECT_NEAR(PeakFlops(chip) / chip.published_peak_flops(), 1, 0.01) << file.name;
  }
}

TEST(ChipTest, ShippedRidgesAreTheKnownOnes) {
  const struct {
    const char* chip;
    double flops_per_byte;
  } cases[] = {{"v2", 66}, {"v3", 137}, {"v4", 224}, {"v5e", 241}, {"v5p", 166}, {"v6e", 560}};
  for (const auto& c : cases) {
    EXPECT_NEAR(RidgeFlopsPerByte(Shipped(c.chip)) / c.flops_per_byte, 1, 0.01) << c.chip;
  }
}

// The number in a slice's name counts cores for v2 to v5p, and chips for v5e and v6e. A chip of v5e
// or v6e has one core, so in every name the number is that of the cores.
TEST(ChipTest, ShippedSlicesHaveAsManyCoresAsTheirNamesSay) {
  for (const ShippedFile& file : ShippedChips()) {
    const v1::Chip chip = Shipped(std::string(file.name));
    for (const v1::Slice& slice : chip.slices()) {
      EXPECT_EQ(slice.name(), chip.name() + "-" + std::to_string(ChipsOf(slice) * chip.cores()));
    }
  }
}

TEST(ChipTest, ShippedV2AndV3SlicesReachFromEightCoresToFullPods) {
  const v1::Chip v2 = Shipped("v2"), v3 = Shipped("v3");
  EXPECT_EQ(v2.slices(0).name(), "v2-8");
  EXPECT_EQ(ChipsOf(v2.slices(v2.slices_size() - 1)), 256);
  EXPECT_EQ(v3.slices(0).name(), "v3-8");
  EXPECT_EQ(ChipsOf(v3.slices(v3.slices_size() - 1)), 1024);
}

// The buffer has the 25.56 million f32 gradients of ResNet-50. The times are worked out by hand to
// a microsecond.
TEST(ChipTest, ShippedLinksGiveTheWorkedAllReduceTimes) {
  const struct {
    const char* chip;
    const char* slice;
    double ms;
  } cases[] = {{"v2", "v2-8", 0.622},
               {"v3", "v3-8", 0.472},
               {"v2", "v2-512", 0.881},
               {"v3", "v3-2048", 0.747}};
  for (const auto& c : cases) {
    const v1::Chip chip = Shipped(c.chip);
    const absl::StatusOr<const v1::Slice*> slice = FindSlice(chip, c.slice);
    ASSERT_THAT(slice, IsOk());
    AllReduceShape shape = {
        .bytes = 25.56e6 * 4, .link_bytes_per_s = chip.link_bytes_per_s(), .hop_s = chip.hop_s()};
    for (const v1::Axis& axis : (*slice)->axes()) {
      shape.axes.push_back({.chips = axis.chips(), .ring = axis.ring()});
    }
    const absl::StatusOr<double> seconds = AllReduceSeconds(shape);
    ASSERT_THAT(seconds, IsOk());
    EXPECT_NEAR(1000 * *seconds, c.ms, 0.0005) << c.slice;
  }
}

TEST(ChipTest, SlicesAreFoundByNameAndTheFirstIsTheDefault) {
  const v1::Chip chip = Shipped("v5e");
  EXPECT_EQ((*FindSlice(chip, "v5e-16"))->name(), "v5e-16");
  EXPECT_EQ((*FindSlice(chip, ""))->name(), "v5e-1");
  EXPECT_THAT(FindSlice(chip, "v5e-2"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("v5e has no slice 'v5e-2'; it has v5e-1, v5e-4")));
}

TEST(ChipTest, EveryFieldIsCheckedAndNamed) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  using Change = std::function<void(v1::Chip&)>;
  const std::vector<std::pair<const char*, Change>> cases = {
      {"name is ''", [](v1::Chip& c) { c.clear_name(); }},
      {"name is 'a b'", [](v1::Chip& c) { c.set_name("a b"); }},
      {"cores is 0", [](v1::Chip& c) { c.clear_cores(); }},
      {"matrix_units_per_core is -1", [](v1::Chip& c) { c.set_matrix_units_per_core(-1); }},
      {"array_rows is 65537", [](v1::Chip& c) { c.set_array_rows(65537); }},
      {"array_columns is 0", [](v1::Chip& c) { c.set_array_columns(0); }},
      {"macs_per_place is -2", [](v1::Chip& c) { c.set_macs_per_place(-2); }},
      {"clock_hz is nan", [=](v1::Chip& c) { c.set_clock_hz(kNan); }},
      {"published_peak_flops is -5", [](v1::Chip& c) { c.set_published_peak_flops(-5); }},
      {"vector_lanes is 0", [](v1::Chip& c) { c.set_vector_lanes(0); }},
      {"vector_units_per_lane is 0", [](v1::Chip& c) { c.set_vector_units_per_lane(0); }},
      {"vector_memory_bytes_per_core is -1",
       [](v1::Chip& c) { c.set_vector_memory_bytes_per_core(-1); }},
      {"memory_bytes is 0", [](v1::Chip& c) { c.set_memory_bytes(0); }},
      {"memory_bytes_per_s is inf", [=](v1::Chip& c) { c.set_memory_bytes_per_s(kInf); }},
      {"link_bytes_per_s is 0", [](v1::Chip& c) { c.set_link_bytes_per_s(0); }},
      {"hop_s is -1", [](v1::Chip& c) { c.set_hop_s(-1); }},
      {"host_bytes_per_s is 0", [](v1::Chip& c) { c.set_host_bytes_per_s(0); }},
      {"overlap is 1.5", [](v1::Chip& c) { c.set_overlap(1.5); }},
      {"number of slices is 0", [](v1::Chip& c) { c.clear_slices(); }},
      {"number of slices is 265, want 1 to 256",
       [](v1::Chip& c) {
         while (c.slices_size() < 265) c.add_slices()->CopyFrom(c.slices(0));
       }},
      {"number of measurements is 257, want 0 to 256",
       [](v1::Chip& c) {
         while (c.measurements_size() < 257) c.add_measurements()->CopyFrom(c.measurements(0));
       }},
      {"slices[0].name is ''", [](v1::Chip& c) { c.mutable_slices(0)->clear_name(); }},
      {"number of slices[1].axes is 0", [](v1::Chip& c) { c.mutable_slices(1)->clear_axes(); }},
      {"axis of slices[0] is 0",
       [](v1::Chip& c) { c.mutable_slices(0)->mutable_axes(1)->set_chips(0); }},
      {"product of the axes of slices[0] is 2097152",
       [](v1::Chip& c) { c.mutable_slices(0)->mutable_axes(1)->set_chips(1 << 20); }},
      {"slices[1].name is 'v3-8', which an earlier slice has",
       [](v1::Chip& c) { c.mutable_slices(1)->set_name("v3-8"); }},
      {"measurements[0].model is ''",
       [](v1::Chip& c) { c.mutable_measurements(0)->clear_model(); }},
      {"measurements[1].slice is 'v9'",
       [](v1::Chip& c) { c.mutable_measurements(1)->set_slice("v9"); }},
      {"measurements[0].per_core_batch is 0",
       [](v1::Chip& c) { c.mutable_measurements(0)->set_per_core_batch(0); }},
      {"measurements[0].examples_per_s is nan",
       [=](v1::Chip& c) { c.mutable_measurements(0)->set_examples_per_s(kNan); }},
      {"measurements[0].source is ''",
       [](v1::Chip& c) { c.mutable_measurements(0)->clear_source(); }},
      {"measurements[0].source is 'a\\x1b[31m'",
       [](v1::Chip& c) { c.mutable_measurements(0)->set_source("a\x1b[31m"); }},
  };
  for (const auto& [message, change] : cases) {
    v1::Chip chip = Shipped("v3");
    ASSERT_THAT(CheckChip(chip), IsOk());
    change(chip);
    EXPECT_THAT(CheckChip(chip), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

TEST(ChipTest, ErrorsNameTheFile) {
  EXPECT_THAT(ParseChip("name: \"x\" cores: 1 matrix_units_per_core: 0", "my.textproto"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("my.textproto: matrix_units_per_core is 0, want 1 to 1024")));
  EXPECT_THAT(ParseChip("name: \"x\"\nclock: 3", "my.textproto"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("my.textproto:2"), HasSubstr("clock"))));
  EXPECT_THAT(LoadChip("v7"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("v6e")));
}

TEST(ChipTest, AbsentMacsPerPlaceAreOne) {
  v1::Chip chip = Shipped("v2");
  const double peak = PeakFlops(chip);
  chip.set_macs_per_place(2);
  EXPECT_EQ(PeakFlops(chip), 2 * peak);
}

}  // namespace
}  // namespace systole::emulator
