// Compares the numerics `fast` with `exact`: how far their results may differ. Also tests that
// `fast` gives the same bits each time, and how many threads it uses.
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "client/emulator/array/device_array.h"
#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/array/numerics.h"
#include "client/emulator/array/onednn_gemm.h"
#include "client/emulator/array/patch_matrix.h"
#include "core/concurrency/worker_pool.h"
#include "core/numeric/bf16.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

extern "C" int omp_get_max_threads();  // From libgomp, as in onednn_gemm.cc.

namespace systole::emulator {
namespace {

using Patches = PatchMatrix<uint16_t>;
using testing::Each;
using testing::Pointwise;

// Random numbers between -`scale` and `scale`.
DeviceArray<uint16_t> RandomOperands(int64_t size, std::mt19937& random, float scale = 1.0f) {
  DeviceArray<uint16_t> out(size);
  for (int64_t i = 0; i < size; ++i) {
    const float value = static_cast<float>(random() % 20001) / 10000.0f - 1.0f;
    out[i] = RoundToBf16Flush(random() % 16 == 0 ? 0.0f : value * scale);
  }
  return out;
}

// Images whose 3 x 3 patches make a matrix [images * height * width, 9 * channels].
struct Pictures {
  int64_t images, height, width, channels;
  DeviceArray<uint16_t> pixels;

  Pictures(int64_t images, int64_t height, int64_t width, int64_t channels, std::mt19937& random)
      : images(images),
        height(height),
        width(width),
        channels(channels),
        pixels(RandomOperands(images * (height + 2) * (width + 2) * channels, random)) {}

  Patches patches() const {
    return {.data = pixels.data(),
            .images = images,
            .height = height,
            .width = width,
            .image_stride = (height + 2) * (width + 2) * channels,
            .y_stride = (width + 2) * channels,
            .x_stride = channels,
            .runs = 3,
            .run_length = 3 * channels,
            .run_stride = (width + 2) * channels};
  }
  // The middle pixels of the patches: a matrix [images * height * width, channels] with gaps.
  Patches centres() const {
    Patches p = patches();
    p.data += (width + 2 + 1) * channels;
    p.runs = 1;
    p.run_length = channels;
    return p;
  }
};

// The absolute values of the matrix `p`, from which sums of absolute products are computed. They
// are stored in `storage`.
Patches Absolute(const Patches& p, DeviceArray<uint16_t>& storage) {
  storage = DeviceArray<uint16_t>(p.rows() * p.columns());
  RowWalk<uint16_t> walk(p, 0);
  int64_t at = 0;
  for (int64_t r = 0; r < p.rows(); ++r) {
    const uint16_t* row = walk.Next();
    for (int64_t c = 0; c < p.columns(); ++c) {
      storage[at++] = row[c / p.run_length * p.run_stride + c % p.run_length] & 0x7fff;
    }
  }
  return Patches::Dense(storage.data(), p.rows(), p.columns());
}

std::vector<float> Product(Numerics numerics, const Patches& a, const uint16_t* b, int64_t n) {
  const FlushScope flush;
  MatrixUnit<float> unit(numerics);
  std::vector<float> out(a.rows() * n, std::numeric_limits<float>::quiet_NaN());
  unit.Multiply(a, b, n, out.data(), n);
  return out;
}

std::vector<float> TransposedProduct(Numerics numerics, const Patches& a, const Patches& b) {
  const FlushScope flush;
  MatrixUnit<float> unit(numerics);
  std::vector<float> out(a.columns() * b.columns(), std::numeric_limits<float>::quiet_NaN());
  unit.MultiplyTransposed(a, b, out.data(), b.columns());
  return out;
}

// Expects |fast - exact| <= 8 * 2^-24 * sum |a * b| for each element.
void ExpectWithinTolerance(const std::vector<float>& fast, const std::vector<float>& exact,
                           const std::vector<float>& absolute_sums) {
  ASSERT_EQ(fast.size(), exact.size());
  for (size_t i = 0; i < fast.size(); ++i) {
    ASSERT_LE(std::abs(double{fast[i]} - double{exact[i]}), 8 * 0x1p-24 * double{absolute_sums[i]})
        << "element " << i << ": fast " << fast[i] << ", exact " << exact[i];
  }
}

void CheckProduct(const Patches& a, const DeviceArray<uint16_t>& b, int64_t n) {
  DeviceArray<uint16_t> a_storage, b_storage;
  const Patches absolute_a = Absolute(a, a_storage);
  const Patches absolute_b = Absolute(Patches::Dense(b.data(), a.columns(), n), b_storage);
  ExpectWithinTolerance(Product(Numerics::kFast, a, b.data(), n),
                        Product(Numerics::kExact, a, b.data(), n),
                        Product(Numerics::kExact, absolute_a, absolute_b.data, n));
}

void CheckTransposedProduct(const Patches& a, const Patches& b) {
  DeviceArray<uint16_t> a_storage, b_storage;
  const Patches absolute_a = Absolute(a, a_storage), absolute_b = Absolute(b, b_storage);
  ExpectWithinTolerance(TransposedProduct(Numerics::kFast, a, b),
                        TransposedProduct(Numerics::kExact, a, b),
                        TransposedProduct(Numerics::kExact, absolute_a, absolute_b));
}

int64_t UpTo(int64_t n, std::mt19937& random) { return 1 + static_cast<int64_t>(random() % n); }

TEST(FastMatrixUnitTest, RandomProductsAreWithinTheTolerance) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const int64_t m = UpTo(90, random), k = UpTo(700, random), n = UpTo(120, random);
    SCOPED_TRACE(testing::Message() << "m k n " << m << " " << k << " " << n);
    const auto a = RandomOperands(m * k, random), b = RandomOperands(k * n, random);
    CheckProduct(Patches::Dense(a.data(), m, k), b, n);
    const auto turned = RandomOperands(k * m, random);
    CheckTransposedProduct(Patches::Dense(turned.data(), k, m), Patches::Dense(b.data(), k, n));
  }
}

TEST(FastMatrixUnitTest, ProductsWithADimensionOfOneAreWithinTheTolerance) {
  std::mt19937 random(2);
  for (const int64_t m : {1, 7}) {
    for (const int64_t k : {1, 200}) {
      for (const int64_t n : {1, 33}) {
        SCOPED_TRACE(testing::Message() << "m k n " << m << " " << k << " " << n);
        const auto a = RandomOperands(m * k, random), b = RandomOperands(k * n, random);
        CheckProduct(Patches::Dense(a.data(), m, k), b, n);
        CheckTransposedProduct(Patches::Dense(a.data(), k, m), Patches::Dense(b.data(), k, n));
      }
    }
  }
}

TEST(FastMatrixUnitTest, ProductWithAnEmptyInnerDimensionIsZero) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    const DeviceArray<uint16_t> none(0);
    EXPECT_THAT(Product(numerics, Patches::Dense(none.data(), 3, 0), none.data(), 5), Each(0.0f));
    EXPECT_THAT(TransposedProduct(numerics, Patches::Dense(none.data(), 0, 3),
                                  Patches::Dense(none.data(), 0, 5)),
                Each(0.0f));
  }
}

// A product of the last size is computed in more than one block.
TEST(FastMatrixUnitTest, ProductsOfPatchesAreWithinTheTolerance) {
  std::mt19937 random(3);
  const Pictures sizes[] = {
      {2, 4, 5, 5, random}, {1, 1, 1, 3, random}, {3, 1, 6, 2, random}, {8, 32, 32, 16, random}};
  for (const Pictures& pictures : sizes) {
    const Patches patches = pictures.patches();
    SCOPED_TRACE(testing::Message() << patches.rows() << " x " << patches.columns());
    const int64_t n = 20;
    CheckProduct(patches, RandomOperands(patches.columns() * n, random), n);
    // The two operands come from different pictures. If they came from the same picture, some sums
    // would have only squares, so that nothing would cancel out.
    const Pictures other(pictures.images, pictures.height, pictures.width, 6, random);
    CheckTransposedProduct(other.centres(), patches);
    const auto dense = RandomOperands(patches.rows() * n, random);
    CheckTransposedProduct(Patches::Dense(dense.data(), patches.rows(), n), patches);
    CheckTransposedProduct(patches, other.centres());
  }
}

// The first operand and the result have gaps between their rows. The result's gaps must not change.
TEST(FastMatrixUnitTest, ProductsWithGapsBetweenRowsLeaveTheGapsUnchanged) {
  std::mt19937 random(4);
  const int64_t m = 9, k = 40, n = 24, gap = 7;
  const auto a = RandomOperands(m * (k + gap), random), b = RandomOperands(k * n, random);
  const Patches rows = {
      .data = a.data(), .images = m, .image_stride = k + gap, .runs = 1, .run_length = k};
  CheckProduct(rows, b, n);
  const FlushScope flush;
  MatrixUnit<float> unit(Numerics::kFast);
  std::vector<float> out(m * (n + gap), 77.0f);
  unit.Multiply(rows, b.data(), n, out.data(), n + gap);
  const std::vector<float> want = Product(Numerics::kFast, rows, b.data(), n);
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < n; ++c) EXPECT_NEAR(out[r * (n + gap) + c], want[r * n + c], 1e-4);
    for (int64_t c = n; c < n + gap; ++c) EXPECT_EQ(out[r * (n + gap) + c], 77.0f);
  }
}

TEST(FastMatrixUnitTest, LargeNumbersAreWithinTheToleranceAndTinyProductsAreFlushed) {
  std::mt19937 random(5);
  const int64_t m = 20, k = 300, n = 30;
  const auto large_a = RandomOperands(m * k, random, 0x1p58f);
  const auto large_b = RandomOperands(k * n, random, 0x1p58f);
  CheckProduct(Patches::Dense(large_a.data(), m, k), large_b, n);
  const auto tiny_a = RandomOperands(m * k, random, 0x1p-80f);
  const auto tiny_b = RandomOperands(k * n, random, 0x1p-80f);
  EXPECT_THAT(Product(Numerics::kFast, Patches::Dense(tiny_a.data(), m, k), tiny_b.data(), n),
              Each(0.0f));
}

TEST(FastMatrixUnitTest, OverflowInfinityAndNanComeOutAsInExact) {
  const uint16_t one = RoundToBf16(1.0f), huge = RoundToBf16(0x1p100f),
                 infinity = RoundToBf16(std::numeric_limits<float>::infinity()), nan = 0x7fc0;
  // The sums, row by row: 2^200 + 2^100 (more than a float can hold), inf + 2^100, nan + 2^100,
  // inf - inf, -inf + 2^100.
  DeviceArray<uint16_t> a(10), b(2);
  const uint16_t values[] = {huge,
                             one,
                             infinity,
                             one,
                             nan,
                             one,
                             infinity,
                             static_cast<uint16_t>(infinity | 0x8000),
                             static_cast<uint16_t>(infinity | 0x8000),
                             one};
  std::copy(std::begin(values), std::end(values), a.data());
  b[0] = b[1] = huge;
  const float inf = std::numeric_limits<float>::infinity(),
              not_a_number = std::numeric_limits<float>::quiet_NaN();
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    EXPECT_THAT(
        Product(numerics, Patches::Dense(a.data(), 5, 2), b.data(), 1),
        Pointwise(testing::NanSensitiveFloatEq(), {inf, inf, not_a_number, not_a_number, -inf}));
  }
}

TEST(FastMatrixUnitTest, TheSameProductGivesTheSameBitsAgain) {
  std::mt19937 random(6);
  const Pictures pictures(2, 20, 20, 8, random);
  const auto b = RandomOperands(72 * 33, random);
  const std::vector<float> want = Product(Numerics::kFast, pictures.patches(), b.data(), 33);
  const std::vector<float> transposed =
      TransposedProduct(Numerics::kFast, pictures.centres(), pictures.patches());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Product(Numerics::kFast, pictures.patches(), b.data(), 33), want);
    EXPECT_EQ(TransposedProduct(Numerics::kFast, pictures.centres(), pictures.patches()),
              transposed);
  }
}

// Uses the units as the shards of a network do: several units multiply at once, and each time a
// unit may run in another thread.
TEST(FastMatrixUnitTest, UnitsMayBeHandedFromThreadToThread) {
  std::mt19937 random(7);
  const Pictures pictures(2, 16, 16, 8, random);
  const auto b = RandomOperands(72 * 40, random), dense = RandomOperands(128 * 72, random);
  const Patches small = Patches::Dense(dense.data(), 128, 72), large = pictures.patches();
  const std::vector<float> want_small = Product(Numerics::kFast, small, b.data(), 40);
  const std::vector<float> want_large = Product(Numerics::kFast, large, b.data(), 40);
  std::vector<MatrixUnit<float>> units;
  for (int i = 0; i < 8; ++i) units.emplace_back(Numerics::kFast);
  std::vector<std::vector<float>> out(8, std::vector<float>(want_large.size()));
  WorkerPool pool(4);
  for (int round = 0; round < 20; ++round) {
    const bool is_small = round % 2 == 0;
    const std::vector<float>& want = is_small ? want_small : want_large;
    ParallelFor(pool, 8, [&](int64_t i) {
      const FlushScope flush;
      out[i].assign(want.size(), -1.0f);
      units[i].Multiply(is_small ? small : large, b.data(), 40, out[i].data(), 40);
    });
    EXPECT_THAT(out, Each(want));
  }
}

// CMakeLists.txt sets OMP_NUM_THREADS=4 for this test. If MatrixUnit set no limit, oneDNN would
// start three threads.
TEST(FastMatrixUnitTest, AProductStartsNoThread) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  std::mt19937 random(8);
  const auto a = RandomOperands(512 * 512, random), b = RandomOperands(512 * 512, random);
  const auto before = threads();
  Product(Numerics::kFast, Patches::Dense(a.data(), 512, 512), b.data(), 512);
  TransposedProduct(Numerics::kFast, Patches::Dense(a.data(), 512, 512),
                    Patches::Dense(b.data(), 512, 512));
  EXPECT_EQ(threads(), before);
}

// The caller may also run OpenMP code of its own.
TEST(FastMatrixUnitTest, TheCallersNumberOfThreadsIsRestored) {
  std::mt19937 random(9);
  const auto a = RandomOperands(64 * 64, random), b = RandomOperands(64 * 64, random);
  ASSERT_EQ(omp_get_max_threads(), 4);
  Product(Numerics::kFast, Patches::Dense(a.data(), 64, 64), b.data(), 64);
  EXPECT_EQ(omp_get_max_threads(), 4);
}

}  // namespace
}  // namespace systole::emulator
