#include "client/emulator/array/matrix_unit.h"

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "client/emulator/array/device_array.h"
#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/stepped_array.h"
#include "core/numeric/bf16.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

enum class Values { kOrdinary, kExtreme, kTiny, kWithInfinities };

// Random bf16 operands. kExtreme takes exponents from all of f32's range, so that products leave
// that range. kTiny makes subnormal products that are added to normal sums.
DeviceArray<uint16_t> RandomOperands(int64_t size, Values values, std::mt19937& random) {
  DeviceArray<uint16_t> out(size);
  for (int64_t i = 0; i < size; ++i) {
    const auto sign_and_mantissa = static_cast<uint32_t>(random() & 0x807f0000u);
    uint32_t exponent = 120 + random() % 12;
    if (values == Values::kExtreme) exponent = random() % 255;
    if (values == Values::kTiny) exponent = 60 + random() % 8;
    uint32_t bits = sign_and_mantissa | exponent << 23;
    if (random() % 16 == 0) bits &= 0x80000000u;
    if (values == Values::kWithInfinities && random() % 64 == 0) bits = bits | 0x7f800000u;
    if ((bits & 0x7fffffffu) > 0x7f800000u) bits &= 0xff800000u;
    out[i] = RoundToBf16Flush(std::bit_cast<float>(bits));
  }
  return out;
}

// The bits of the values. All NaNs get the same bits.
std::vector<uint32_t> BitsOf(const float* values, int64_t size) {
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < size; ++i) {
    bits.push_back(std::isnan(values[i]) ? 0x7fc00000u : std::bit_cast<uint32_t>(values[i]));
  }
  return bits;
}

int64_t UpTo(int64_t n, std::mt19937& random) { return 1 + static_cast<int64_t>(random() % n); }

struct Shape {
  int64_t m, k, n;
};

std::vector<uint32_t> ByDefinition(const DeviceArray<uint16_t>& a, const DeviceArray<uint16_t>& b,
                                   Shape s, int64_t array_rows) {
  std::vector<float> out(s.m * s.n);
  MultiplyByDefinition(a.data(), b.data(), s.m, s.k, s.n, array_rows, out.data());
  return BitsOf(out.data(), out.size());
}

std::vector<uint32_t> ByMatrixUnit(const DeviceArray<uint16_t>& a, const DeviceArray<uint16_t>& b,
                                   Shape s) {
  const FlushScope flush;
  MatrixUnit<float> unit;
  std::vector<float> out(s.m * s.n);
  unit.Multiply(PatchMatrix<uint16_t>::Dense(a.data(), s.m, s.k), b.data(), s.n, out.data(), s.n);
  return BitsOf(out.data(), out.size());
}

TEST(MatrixUnitTest, SteppedArrayEqualsTheDefinitionForAnyArraySize) {
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    const auto values = static_cast<Values>(i % 4);
    const Shape s{.m = UpTo(9, random), .k = UpTo(40, random), .n = UpTo(20, random)};
    const int64_t rows = UpTo(16, random), columns = UpTo(16, random);
    const auto a = RandomOperands(s.m * s.k, values, random);
    const auto b = RandomOperands(s.k * s.n, values, random);
    std::vector<float> out(s.m * s.n);
    SteppedArray array(rows, columns);
    const SteppedArray::Cycles cycles =
        array.Multiply(a.data(), b.data(), s.m, s.k, s.n, out.data());
    ASSERT_EQ(BitsOf(out.data(), out.size()), ByDefinition(a, b, s, rows))
        << rows << "x" << columns << " array, m k n " << s.m << " " << s.k << " " << s.n;
    const int64_t folds = ((s.k + rows - 1) / rows) * ((s.n + columns - 1) / columns);
    EXPECT_EQ(cycles.load, folds * rows);
    EXPECT_EQ(cycles.stream, folds * (s.m + rows + columns - 2));
  }
}

// The stepped 128-row array and the vector code of every instruction set give the same bits.
TEST(MatrixUnitTest, EveryInstructionSetEqualsTheSteppedArray) {
  std::mt19937 random(2);
  for (int i = 0; i < 24; ++i) {
    const auto values = static_cast<Values>(i % 4);
    const Shape s{.m = UpTo(40, random), .k = UpTo(300, random), .n = UpTo(70, random)};
    const auto a = RandomOperands(s.m * s.k, values, random);
    const auto b = RandomOperands(s.k * s.n, values, random);
    std::vector<float> out(s.m * s.n);
    SteppedArray array(kArrayRows, 32);
    array.Multiply(a.data(), b.data(), s.m, s.k, s.n, out.data());
    const std::vector<uint32_t> want = BitsOf(out.data(), out.size());
    for (const std::string& target : SupportedSimdTargets()) {
      ASSERT_THAT(ForceSimdTarget(target), IsOk());
      ASSERT_EQ(ByMatrixUnit(a, b, s), want)
          << target << ", m k n " << s.m << " " << s.k << " " << s.n;
    }
    ASSERT_THAT(ForceSimdTarget(""), IsOk());
  }
}

TEST(MatrixUnitTest, EveryInstructionSetEqualsTheDefinition) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const auto values = static_cast<Values>(i % 4);
    const Shape s{.m = UpTo(60, random), .k = UpTo(400, random), .n = UpTo(80, random)};
    const auto a = RandomOperands(s.m * s.k, values, random);
    const auto b = RandomOperands(s.k * s.n, values, random);
    const std::vector<uint32_t> want = ByDefinition(a, b, s, kArrayRows);
    for (const std::string& target : SupportedSimdTargets()) {
      ASSERT_THAT(ForceSimdTarget(target), IsOk());
      ASSERT_EQ(ByMatrixUnit(a, b, s), want)
          << target << ", m k n " << s.m << " " << s.k << " " << s.n;
    }
    ASSERT_THAT(ForceSimdTarget(""), IsOk());
  }
}

// There are more rows than in one block, and the widths are around the width of a tile.
TEST(MatrixUnitTest, BlockAndTileEdgesEqualTheDefinition) {
  std::mt19937 random(4);
  for (const int64_t m : {191, 192, 193, 400}) {
    for (const int64_t n : {15, 16, 17, 31, 32, 33, 48, 64}) {
      const Shape s{.m = m, .k = 129, .n = n};
      const auto a = RandomOperands(s.m * s.k, Values::kOrdinary, random);
      const auto b = RandomOperands(s.k * s.n, Values::kOrdinary, random);
      ASSERT_EQ(ByMatrixUnit(a, b, s), ByDefinition(a, b, s, kArrayRows)) << m << " " << n;
    }
  }
}

TEST(MatrixUnitTest, TransposedProductEqualsTheProductOfTheTranspose) {
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) {
    const auto values = static_cast<Values>(i % 4);
    const Shape s{.m = UpTo(40, random), .k = UpTo(400, random), .n = UpTo(80, random)};
    const auto a = RandomOperands(s.k * s.m, values, random);
    const auto b = RandomOperands(s.k * s.n, values, random);
    DeviceArray<uint16_t> a_transposed(s.m * s.k);
    for (int64_t k = 0; k < s.k; ++k) {
      for (int64_t m = 0; m < s.m; ++m) a_transposed[m * s.k + k] = a[k * s.m + m];
    }
    const std::vector<uint32_t> want = ByDefinition(a_transposed, b, s, kArrayRows);
    for (const std::string& target : SupportedSimdTargets()) {
      ASSERT_THAT(ForceSimdTarget(target), IsOk());
      const FlushScope flush;
      MatrixUnit<float> unit;
      std::vector<float> out(s.m * s.n);
      unit.MultiplyTransposed(PatchMatrix<uint16_t>::Dense(a.data(), s.k, s.m),
                              PatchMatrix<uint16_t>::Dense(b.data(), s.k, s.n), out.data(), s.n);
      ASSERT_EQ(BitsOf(out.data(), out.size()), want)
          << target << ", m k n " << s.m << " " << s.k << " " << s.n;
    }
    ASSERT_THAT(ForceSimdTarget(""), IsOk());
  }
}

// Compares products of 3 x 3 patches of a 2 x 6 x 7 x 5 array: gathered in place, and copied out.
TEST(MatrixUnitTest, PatchesGatheredInPlaceEqualPatchesCopiedOut) {
  std::mt19937 random(6);
  const int64_t images = 2, height = 6, width = 7, channels = 5, kernel = 3, n = 20;
  const auto pixels = RandomOperands(images * height * width * channels, Values::kOrdinary, random);
  const auto b = RandomOperands(kernel * kernel * channels * n, Values::kOrdinary, random);
  const PatchMatrix<uint16_t> patches = {.data = pixels.data(),
                                         .images = images,
                                         .height = height - 2,
                                         .width = width - 2,
                                         .image_stride = height * width * channels,
                                         .y_stride = width * channels,
                                         .x_stride = channels,
                                         .runs = kernel,
                                         .run_length = kernel * channels,
                                         .run_stride = width * channels};
  DeviceArray<uint16_t> copied(patches.rows() * patches.columns());
  int64_t at = 0;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t y = 0; y < height - 2; ++y) {
      for (int64_t x = 0; x < width - 2; ++x) {
        for (int64_t ky = 0; ky < kernel; ++ky) {
          for (int64_t i = 0; i < kernel * channels; ++i) {
            copied[at++] = pixels[((image * height + y + ky) * width + x) * channels + i];
          }
        }
      }
    }
  }
  const Shape s{.m = patches.rows(), .k = patches.columns(), .n = n};
  const FlushScope flush;
  MatrixUnit<float> unit;
  std::vector<float> out(s.m * s.n);
  unit.Multiply(patches, b.data(), n, out.data(), n);
  EXPECT_EQ(BitsOf(out.data(), out.size()), ByDefinition(copied, b, s, kArrayRows));
}

// A bf16 product is exact in f32, so a fused and an unfused step agree while the product is a
// normal number. For smaller products they differ, so targets without FMA check for these products.
TEST(MatrixUnitTest, UnfusedStepEqualsFusedStepWhileTheProductIsNormal) {
  const FlushScope flush;
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    const auto pair = RandomOperands(2, Values::kOrdinary, random);
    const float a = Bf16ToFloat(pair[0]), b = Bf16ToFloat(pair[1]);
    const float c = static_cast<float>(static_cast<int32_t>(random())) * 1e-9f;
    ASSERT_EQ(std::bit_cast<uint32_t>(std::fma(a, b, c)), std::bit_cast<uint32_t>(a * b + c));
  }
  const float smallest_normal = std::ldexp(1.0f, -126), tiny = std::ldexp(1.0f, -65);
  volatile float product = tiny * tiny;  // Flushed to 0.
  EXPECT_EQ(product + smallest_normal, smallest_normal);
  EXPECT_GT(std::fma(tiny, tiny, smallest_normal), smallest_normal);
}

// The two products are just outside the normal numbers. 2^-127 is added to 2^-126. 2.25 * 2^127 is
// added to -2^127. An unfused step would lose the small product and make the large one infinite.
TEST(MatrixUnitTest, ProductsJustOutsideTheNormalNumbersEqualTheDefinition) {
  const struct {
    float a[2], b[2], want;
  } cases[] = {{{0x1p-63f, 0x1p-64f}, {0x1p-63f, 0x1p-63f}, 0x1.8p-126f},
               {{-0x1p63f, 0x1.8p63f}, {0x1p64f, 0x1.8p64f}, 0x1.4p127f}};
  for (const auto& c : cases) {
    DeviceArray<uint16_t> a(2), b(2);
    for (int64_t i = 0; i < 2; ++i) {
      a[i] = RoundToBf16Flush(c.a[i]);
      b[i] = RoundToBf16Flush(c.b[i]);
    }
    const std::vector<uint32_t> want = {std::bit_cast<uint32_t>(c.want)};
    EXPECT_EQ(ByDefinition(a, b, {.m = 1, .k = 2, .n = 1}, kArrayRows), want);
    for (const std::string& target : SupportedSimdTargets()) {
      ASSERT_THAT(ForceSimdTarget(target), IsOk());
      EXPECT_EQ(ByMatrixUnit(a, b, {.m = 1, .k = 2, .n = 1}), want) << target;
    }
    ASSERT_THAT(ForceSimdTarget(""), IsOk());
  }
}

TEST(FlushScopeTest, FlushesSubnormalsInsideTheScopeAndKeepsThemAfterIt) {
  volatile float smallest_normal = std::ldexp(1.0f, -126);
  {
    const FlushScope flush;
    volatile float half = smallest_normal * 0.5f;
    EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(half)), 0u);
  }
  volatile float half = smallest_normal * 0.5f;
  EXPECT_NE(std::bit_cast<uint32_t>(static_cast<float>(half)), 0u);
}

}  // namespace
}  // namespace systole::emulator
