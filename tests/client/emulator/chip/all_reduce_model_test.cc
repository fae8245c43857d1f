#include "client/emulator/chip/all_reduce_model.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

// The gradients of ResNet-50 are 25.56 million f32.
constexpr double kResNet50Bytes = 25.56e6 * 4;

double Milliseconds(const AllReduceShape& shape) {
  const absl::StatusOr<double> seconds = AllReduceSeconds(shape);
  return seconds.ok() ? 1000 * *seconds : -1;
}

// The times are worked out by hand to a microsecond, with 1 us a hop.
TEST(AllReduceModelTest, WorkedExamplesComeOut) {
  const struct {
    int64_t edge;
    double link_bytes_per_s;
    AllReduceOrder order;
    double ms;
  } cases[] = {
      {2, 62e9, AllReduceOrder::kAllAxes, 0.622},  {2, 62e9, AllReduceOrder::kOneOrder, 1.241},
      {2, 82e9, AllReduceOrder::kAllAxes, 0.472},  {16, 62e9, AllReduceOrder::kAllAxes, 0.881},
      {32, 82e9, AllReduceOrder::kAllAxes, 0.747},
  };
  for (const auto& c : cases) {
    EXPECT_NEAR(Milliseconds({.axes = {{c.edge}, {c.edge}},
                              .bytes = kResNet50Bytes,
                              .link_bytes_per_s = c.link_bytes_per_s,
                              .order = c.order}),
                c.ms, 0.0005)
        << c.edge << " " << c.ms;
  }
}

// 8 bytes at 1 byte/s a link, 4 x 2 chips, no latency. Along a ring a chip uses two links, so the
// rate b of a ring is 2 bytes/s. An all-reduce takes twice the time of these phases:
//   kOneOrder  3/4 * 8/2 = 3 s along x, then 1/2 * 2/2 = 0.5 s along y: 3.5 s
//   kAllAxes   one part of 4 bytes takes 1.5 s along x, then 0.25 s along y; meanwhile the other
//              part takes 1 s along y, then 0.75 s along x: max(1.5, 1) + max(0.25, 0.75) = 2.25 s
TEST(AllReduceModelTest, AxesNeedNotBeEqual) {
  AllReduceShape shape = {.axes = {{4}, {2}}, .bytes = 8, .link_bytes_per_s = 1, .hop_s = 0};
  EXPECT_DOUBLE_EQ(Milliseconds(shape), 4500);
  shape.order = AllReduceOrder::kOneOrder;
  EXPECT_DOUBLE_EQ(Milliseconds(shape), 7000);
  shape.hop_s = 1;  // 2 * (3 + 1) hops.
  EXPECT_DOUBLE_EQ(Milliseconds(shape), 15000);
}

// 24 bytes at 1 byte/s a link, 2 x 2 x 2 chips, no latency. The rate b of a ring is 2 bytes/s.
// kAllAxes cuts the buffer into three parts of 8 bytes. All axes are alike, so each part takes
// 1/2 * 8/2 = 2 s, then 1 s, then 0.5 s. An all-reduce takes twice this sum of 3.5 s. kOneOrder has
// one part of 24 bytes, so every phase takes three times as long.
TEST(AllReduceModelTest, OnThreeEqualAxesAllAxesIsThreeTimesAsFastAsOneOrder) {
  AllReduceShape shape = {.axes = {{2}, {2}, {2}}, .bytes = 24, .link_bytes_per_s = 1, .hop_s = 0};
  EXPECT_DOUBLE_EQ(Milliseconds(shape), 7000);
  shape.order = AllReduceOrder::kOneOrder;
  EXPECT_DOUBLE_EQ(Milliseconds(shape), 21000);
  shape.hop_s = 1;  // 2 * (1 + 1 + 1) hops.
  EXPECT_DOUBLE_EQ(Milliseconds(shape), 27000);
}

// The shape is that of the test above, but the axis y is open. It has half the bandwidth, so in
// each phase the part that is on y takes twice as long. The phases take max(2, 4, 2), max(2, 1, 1)
// and max(.5, .5, 1) seconds.
TEST(AllReduceModelTest, OneOpenAxisHoldsUpEveryPhase) {
  EXPECT_DOUBLE_EQ(
      Milliseconds(
          {.axes = {{2}, {2, false}, {2}}, .bytes = 24, .link_bytes_per_s = 1, .hop_s = 0}),
      14000);
}

TEST(AllReduceModelTest, AlongOpenLinesTheBytesTakeTwiceAsLong) {
  AllReduceShape shape = {.axes = {{4}, {4}}, .bytes = 1e6, .link_bytes_per_s = 1e9, .hop_s = 0};
  const double ring = Milliseconds(shape);
  shape.axes = {{4, false}, {4, false}};
  EXPECT_DOUBLE_EQ(Milliseconds(shape), 2 * ring);
}

TEST(AllReduceModelTest, OneChipHasNothingToDo) {
  EXPECT_EQ(Milliseconds({.axes = {{1}, {1}}, .bytes = 1e9, .link_bytes_per_s = 1e9}), 0);
}

// If only one axis has more than one chip, both orders are the same.
TEST(AllReduceModelTest, OneAxisMakesTheOrdersEqual) {
  AllReduceShape shape = {.axes = {{8}, {1}}, .bytes = 1e9, .link_bytes_per_s = 1e9};
  const double both = Milliseconds(shape);
  shape.order = AllReduceOrder::kOneOrder;
  EXPECT_THAT(Milliseconds(shape), DoubleNear(both, 1e-9));
}

TEST(AllReduceModelTest, BadNumbersAreRefusedByField) {
  const auto expect_refused = [](const AllReduceShape& shape, const char* message) {
    EXPECT_THAT(AllReduceSeconds(shape),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  expect_refused({.link_bytes_per_s = 1}, "AllReduceShape.axes has 0 axes");
  expect_refused({.axes = {{1}, {1}, {1}, {1}}, .link_bytes_per_s = 1}, "has 4 axes, want 1 to 3");
  expect_refused({.axes = {{0}}, .link_bytes_per_s = 1}, "AllReduceShape.axes[0].chips is 0");
  expect_refused({.axes = {{1}, {-1}}, .link_bytes_per_s = 1}, "axes[1].chips is -1");
  expect_refused({.axes = {{(1 << 20) + 1}}, .link_bytes_per_s = 1}, "want 1 to 1048576");
  expect_refused({.axes = {{2}}, .bytes = -1, .link_bytes_per_s = 1}, "AllReduceShape.bytes is -1");
  expect_refused({.axes = {{2}}, .link_bytes_per_s = 0}, "link_bytes_per_s is 0, want more than 0");
  expect_refused({.axes = {{2}}, .link_bytes_per_s = std::numeric_limits<double>::quiet_NaN()},
                 "nan");
  expect_refused(
      {.axes = {{2}}, .link_bytes_per_s = 1, .hop_s = std::numeric_limits<double>::infinity()},
      "hop_s is inf");
}

}  // namespace
}  // namespace systole::emulator
