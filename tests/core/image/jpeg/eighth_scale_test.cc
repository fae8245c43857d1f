#include "core/image/jpeg/eighth_scale.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/numeric/simd_target.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using Block = std::array<int16_t, 64>;
using Quantization = std::array<uint16_t, 64>;

constexpr int kMaxBlocks = HuffmanScan::kMaxBlocks;
constexpr int kMcus = 19;  // More than one vector, but no whole number of vectors.
constexpr int kFirstMcu = 3;

int RoundedShift(int x, int bits) { return (x + (1 << (bits - 1))) >> bits; }
uint8_t Clamped(int x) { return static_cast<uint8_t>(std::clamp(x, 0, 255)); }

uint8_t OneSample(const Block& block, const Quantization& q) {
  return Clamped(RoundedShift(block[0] * q[0], 3) + 128);
}

// Computes one sample of libjpeg's jpeg_idct_2x2.
uint8_t OneOfFour(const Block& block, const Quantization& q, int y, int x) {
  const auto sum = [](int even, int odd1, int odd3, int odd5, int odd7, bool second) {
    const int odd = odd1 * 29692 - odd3 * 10426 + odd5 * 6967 - odd7 * 5906;
    return (even << 15) + (second ? -odd : odd);
  };
  int columns[8];
  for (int c = 0; c < 8; ++c) {
    const auto at = [&](int r) { return block[8 * r + c] * q[8 * r + c]; };
    columns[c] = RoundedShift(sum(at(0), at(1), at(3), at(5), at(7), y == 1), 13);
  }
  return Clamped(
      RoundedShift(sum(columns[0], columns[1], columns[3], columns[5], columns[7], x == 1), 20) +
      128);
}

struct Rgb {
  uint8_t r, g, b;
};

Rgb ToRgb(int y, int cb, int cr) {
  const auto fixed = [](double factor) { return static_cast<int>(factor * 65536 + 0.5); };
  return {Clamped(y + RoundedShift(fixed(1.402) * (cr - 128), 16)),
          Clamped(y + RoundedShift(-fixed(0.34414) * (cb - 128) - fixed(0.71414) * (cr - 128), 16)),
          Clamped(y + RoundedShift(fixed(1.772) * (cb - 128), 16))};
}

// Draws a table of small factors, with which few samples are clamped. In images of an encoder, too,
// few samples are clamped.
Quantization DrawQuantization(CounterRng& rng) {
  Quantization q;
  for (uint16_t& factor : q) factor = static_cast<uint16_t>(rng.UniformInt(1, 20));
  return q;
}

void DrawBlock(CounterRng& rng, const Quantization& q, int16_t* block) {
  for (size_t i = 0; i < 64; ++i) {
    const auto largest = static_cast<int>((i == 0 ? 900 : 400 / (1 + i % 8 + i / 8)) / q[i]);
    block[i] = static_cast<int16_t>(rng.UniformInt(-largest, largest + 1));
  }
}

EighthScale::Format ColourFormat(int mcu_width, int mcu_height, CounterRng& rng) {
  EighthScale::Format format = {.num_planes = 3,
                                .channels = 3,
                                .num_blocks = mcu_width * mcu_height + 2,
                                .mcu_width = mcu_width,
                                .mcu_height = mcu_height};
  // The planes are Cr, luma, Cb, because a scan's order may differ from the frame's.
  format.planes[0] = 2;
  format.planes[static_cast<size_t>(format.num_blocks) - 1] = 1;
  for (Quantization& q : format.quantization) q = DrawQuantization(rng);
  return format;
}

void CheckColour(int mcu_width, int mcu_height, CounterRng& rng) {
  const EighthScale::Format format = ColourFormat(mcu_width, mcu_height, rng);
  EighthScale scale;
  scale.Start(format, kFirstMcu, kMcus);
  std::vector<std::array<Block, kMaxBlocks>> mcus(kMcus);
  for (int mcu = 0; mcu < kMcus; ++mcu) {
    HuffmanDecoder::Block blocks[kMaxBlocks];
    for (int i = 0; i < format.num_blocks; ++i) {
      DrawBlock(rng, format.quantization[format.planes[i]], blocks[i]);
      std::memcpy(mcus[mcu][i].data(), blocks[i], sizeof(Block));
    }
    ASSERT_TRUE(scale.AddMcu(blocks, kFirstMcu + mcu));
  }
  const bool halved = mcu_width % 2 == 0 && mcu_height % 2 == 0;
  const int first = kFirstMcu * mcu_width;
  for (int row = 0; row < mcu_height; ++row) {
    for (const auto& [x, width] : {std::pair(first, kMcus * mcu_width), {first + 3, 7}}) {
      std::vector<uint8_t> out(size_t{3} * width);
      ASSERT_TRUE(scale.WriteRow(row, x, width, out.data()));
      for (int i = 0; i < width; ++i) {
        const auto& mcu = mcus[static_cast<size_t>((x - first + i) / mcu_width)];
        const int column = (x + i) % mcu_width;
        const auto colour = [&](int plane, int block) -> int {
          const Quantization& q = format.quantization[plane];
          return halved ? OneOfFour(mcu[block], q, row * 2 / mcu_height, column * 2 / mcu_width)
                        : OneSample(mcu[block], q);
        };
        const Rgb want = ToRgb(OneSample(mcu[1 + row * mcu_width + column], format.quantization[0]),
                               colour(1, format.num_blocks - 1), colour(2, 0));
        ASSERT_EQ(out[3 * i], want.r) << row << " " << i;
        ASSERT_EQ(out[3 * i + 1], want.g) << row << " " << i;
        ASSERT_EQ(out[3 * i + 2], want.b) << row << " " << i;
      }
    }
  }
}

TEST(EighthScaleTest, ColourHasLibjpegsArithmeticForEveryShapeOnEveryTarget) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    CounterRng rng(/*seed=*/7, 0, 0, 0);
    for (const auto& [width, height] :
         {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}}) {
      SCOPED_TRACE(testing::Message() << width << "x" << height);
      CheckColour(width, height, rng);
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(EighthScaleTest, GreyIsTheMeanOfEachBlock) {
  for (const int channels : {1, 3}) {
    EighthScale::Format format = {.channels = channels};
    format.quantization[0].fill(16);
    EighthScale scale;
    scale.Start(format, 0, 3);
    for (const int16_t dc : {-64, 0, 63}) {
      HuffmanDecoder::Block block = {dc, 1000, -1000};
      ASSERT_TRUE(scale.AddMcu(&block, (dc + 64) / 63));
    }
    std::vector<uint8_t> out(static_cast<size_t>(3 * channels));
    ASSERT_TRUE(scale.WriteRow(0, 0, 3, out.data()));
    for (int i = 0; i < channels; ++i) {
      EXPECT_EQ(out[i], 0);
      EXPECT_EQ(out[channels + i], 128);
      EXPECT_EQ(out[2 * channels + i], 254);
    }
  }
}

// Whether EighthScale makes the rows of one MCU of 2 x 2 blocks. In the block of Cb, the
// coefficient at index `coefficient` is `value`. All other coefficients are 0.
bool IsMade(size_t coefficient, int16_t value, uint16_t factor) {
  CounterRng rng(/*seed=*/7, 0, 0, 0);
  EighthScale::Format format = ColourFormat(2, 2, rng);
  format.quantization[1].fill(factor);
  EighthScale scale;
  scale.Start(format, 0, 1);
  HuffmanDecoder::Block blocks[kMaxBlocks] = {};
  blocks[5][coefficient] = value;
  std::vector<uint8_t> out(6);
  return scale.AddMcu(blocks, 0) && scale.WriteRow(0, 0, 2, out.data()) &&
         scale.WriteRow(1, 0, 2, out.data());
}

TEST(EighthScaleTest, OutOfRangeCoefficientsAreRefusedIfTheTransformUsesThem) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const size_t used : {0, 1, 3, 5, 7, 8, 9, 63}) {
      SCOPED_TRACE(used);
      EXPECT_TRUE(IsMade(used, 204, 10));
      EXPECT_TRUE(IsMade(used, -204, 10));
      EXPECT_FALSE(IsMade(used, 205, 10));
      EXPECT_FALSE(IsMade(used, -205, 10));
      EXPECT_FALSE(IsMade(used, -32768, 10));
      EXPECT_FALSE(IsMade(used, 1, 65535));
      EXPECT_TRUE(IsMade(used, 32767, 0));
    }
    // The transform does not use these coefficients.
    for (const size_t unused : {2, 4, 6, 10, 16, 17, 50}) {
      EXPECT_TRUE(IsMade(unused, -32768, 65535)) << unused;
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// Each coefficient is within its limit, but the sample that the coefficients make together does not
// fit into 10 bits.
TEST(EighthScaleTest, AnOutOfRangeSampleOfInRangeCoefficientsIsRefused) {
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (const int16_t value : {int16_t{2047}, int16_t{-2047}}) {
      CounterRng rng(/*seed=*/7, 0, 0, 0);
      EighthScale::Format format = ColourFormat(2, 2, rng);
      format.quantization[1].fill(1);
      EighthScale scale;
      scale.Start(format, 0, 1);
      HuffmanDecoder::Block blocks[kMaxBlocks] = {};
      for (const size_t i : {0, 1, 8}) blocks[5][i] = value;
      ASSERT_TRUE(scale.AddMcu(blocks, 0));
      std::vector<uint8_t> out(6);
      EXPECT_FALSE(scale.WriteRow(0, 0, 2, out.data()));
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

}  // namespace
}  // namespace systole
