#include "client/emulator/chip/infeed_layout.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::HasSubstr;

InfeedBytes Count(std::vector<int64_t> example, int64_t batch, InfeedLayout layout,
                  int64_t element_bytes = 2) {
  return CountInfeedBytes(example, batch, element_bytes, layout);
}

constexpr double kImage = 224 * 224 * 3 * 2;

TEST(InfeedLayoutTest, WithoutTilesNothingIsPadded) {
  for (const InfeedLayout layout : {InfeedLayout::kNhwc, InfeedLayout::kHwcn}) {
    const InfeedBytes bytes = Count({224, 224, 3}, 5, layout);
    EXPECT_EQ(bytes.useful, 5 * kImage);
    EXPECT_EQ(bytes.padded, 5 * kImage);
  }
}

// 3 channels are padded to 128 lanes, 42.7 times as much. 224 rows are a multiple of 8.
TEST(InfeedLayoutTest, NhwcTiledPadsTheChannelsToTheLanes) {
  const InfeedBytes bytes = Count({224, 224, 3}, 128, InfeedLayout::kNhwcTiled);
  EXPECT_EQ(bytes.useful, 128 * kImage);
  EXPECT_EQ(bytes.padded, 128 * 224. * 224 * 128 * 2);
  EXPECT_NEAR(bytes.padded / bytes.useful, 42.7, 0.05);
}

// The batch is on the lanes: 128 examples fill them, and 100 examples are padded to 128. The
// channels are on the sublanes, so 3 channels become 8.
TEST(InfeedLayoutTest, HwcnTiledPadsBatchAndChannels) {
  EXPECT_EQ(Count({224, 224, 3}, 128, InfeedLayout::kHwcnTiled).padded, 224. * 224 * 8 * 128 * 2);
  EXPECT_EQ(Count({224, 224, 3}, 100, InfeedLayout::kHwcnTiled).padded, 224. * 224 * 8 * 128 * 2);
  EXPECT_EQ(Count({224, 224, 3}, 129, InfeedLayout::kHwcnTiled).padded, 224. * 224 * 8 * 256 * 2);
  EXPECT_EQ(Count({14, 14, 1024}, 128, InfeedLayout::kHwcnTiled).padded, 14. * 14 * 1024 * 128 * 2);
}

TEST(InfeedLayoutTest, FlatDataHaveTwoDimensions) {
  EXPECT_EQ(Count({784}, 100, InfeedLayout::kNhwcTiled, 1).padded, 104. * 896);
  EXPECT_EQ(Count({784}, 100, InfeedLayout::kHwcnTiled, 1).padded, 784. * 128);
  EXPECT_EQ(Count({784}, 100, InfeedLayout::kHwcnTiled, 4).useful, 784. * 400);
}

TEST(InfeedLayoutTest, NamesReadBack) {
  for (const InfeedLayout layout : {InfeedLayout::kNhwc, InfeedLayout::kHwcn,
                                    InfeedLayout::kNhwcTiled, InfeedLayout::kHwcnTiled}) {
    EXPECT_THAT(ParseInfeedLayout(InfeedLayoutName(layout)), IsOkAndHolds(layout));
  }
  EXPECT_THAT(ParseInfeedLayout("chwn"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'chwn'; want nhwc, hwcn")));
}

}  // namespace
}  // namespace systole::emulator
