#include "client/emulator/array/matrix_unit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "client/emulator/array/divide_up.h"
#include "client/emulator/array/tile_limits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "client/emulator/array/matrix_unit.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

// How a product is cut: the dimension that is summed over is cut into slabs of kArrayRows. `b` is
// cut into panels of kTileColumns columns, so that one slab of a panel stays in the L1 cache. `a`
// is cut into blocks of kBlockRows rows, so that one slab of a block stays in L2. A tile of
// kTileRows x kTileColumns sums is held in registers. Packing widens bf16 to f32, so the inner loop
// is one broadcast and kTileVectors fused multiply-adds per row.

HWY_BEFORE_NAMESPACE();
namespace systole::emulator {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Scratch = MatrixUnit<float>::Scratch;
using Patches = PatchMatrix<uint16_t>;

const hn::CappedTag<float, 16> df;
using F32 = hn::Vec<decltype(df)>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(df));
constexpr int kTileVectors = 2;
constexpr int kTileColumns = kTileVectors * kLanes;
// 12 x 2 vectors of sums fit into 32 vector registers, and 6 x 2 fit into 16.
constexpr int kTileRows = kLanes == 16 ? 12 : 6;
constexpr int64_t kBlockRows = 192;
static_assert(kBlockRows % kTileRows == 0);
static_assert(kTileRows <= kMostTileRows && kMostTileRows % kTileRows == 0);
static_assert(kTileColumns <= kMostTileColumns && kBlockRows <= kMostBlockRows);

// Widens n bf16 values. Reads and writes up to kLanes - 1 elements more.
HWY_INLINE void Widen(const uint16_t* in, int64_t n, float* out) {
  const hn::Rebind<uint16_t, decltype(df)> du16;
  const hn::Rebind<uint32_t, decltype(df)> du32;
  for (int64_t i = 0; i < n; i += kLanes) {
    const auto wide = hn::ShiftLeft<16>(hn::PromoteTo(du32, hn::LoadU(du16, in + i)));
    hn::StoreU(hn::BitCast(df, wide), df, out + i);
  }
}

// Widens columns [begin, end) of the row that starts at `row`. Runs are written in ascending order,
// so that the next run overwrites what a run writes beyond its end.
HWY_INLINE void WidenRow(const Patches& p, const uint16_t* row, int64_t begin, int64_t end,
                         float* out) {
  if (p.runs == 1) {
    Widen(row + begin, end - begin, out);
    return;
  }
  int64_t run = begin / p.run_length;
  int64_t offset = begin - run * p.run_length;
  for (int64_t k = begin; k < end;) {
    const int64_t n = std::min(p.run_length - offset, end - k);
    Widen(row + run * p.run_stride + offset, n, out + (k - begin));
    k += n;
    offset = 0;
    ++run;
  }
}

// c (kTileRows x kVectors vectors, rows `c_stride` apart) += one slab's sums, which start from +0.
// Element (r, k) of `a` lies at a[r * kArrayRows + k], or at a[k * a_stride + r] if kKMajor.
template <int kVectors, bool kKMajor>
HWY_INLINE void Tile(const float* HWY_RESTRICT a, int64_t a_stride, const float* HWY_RESTRICT b,
                     int64_t depth, float* HWY_RESTRICT c, int64_t c_stride) {
  F32 sum[kTileRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(df);
  }
  for (int64_t k = 0; k < depth; ++k) {
    F32 b_row[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) b_row[v] = hn::Load(df, b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      const F32 a_value = hn::Set(df, kKMajor ? a[r] : a[r * kArrayRows]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(a_value, b_row[v], sum[r][v]);
    }
    a += kKMajor ? a_stride : 1;
    b += kTileColumns;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    float* row = c + r * c_stride;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(hn::Add(hn::LoadU(df, row + v * kLanes), sum[r][v]), df, row + v * kLanes);
    }
  }
}

#if HWY_NATIVE_FMA
constexpr bool kNeedsRangeCheck = false;
#else
constexpr bool kNeedsRangeCheck = true;
#endif

// Without a fused instruction MulAdd is a product and a sum. A product of two bf16 numbers is exact
// in f32, so the result is the same, unless the product alone is outside f32's range of normal
// numbers. The smallest and largest exponents of the packed operands show whether a product can be.
struct ExponentRange {
  int smallest = 255, largest = 0;  // Biased exponents of the numbers that are not zero.

  void Include(const float* values, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      uint32_t bits;
      std::memcpy(&bits, values + i, sizeof(bits));
      const int exponent = static_cast<int>(bits >> 23) & 255;
      if (exponent == 0) continue;
      smallest = std::min(smallest, exponent);
      largest = std::max(largest, exponent);
    }
  }
  // If two numbers have the biased exponents e1 and e2, their product has e1 + e2 - 127 or one
  // more. The product is normal if its biased exponent lies in [1, 254].
  static bool ProductsAreNormal(const ExponentRange& x, const ExponentRange& y) {
    return x.smallest + y.smallest >= 128 && x.largest + y.largest + 1 <= 381;
  }
};

// Computes the sums of Tile() one by one with the C library's fma, which is correctly rounded on
// every CPU.
template <bool kKMajor>
void TileOneByOne(const float* a, int64_t a_stride, const float* b, int64_t depth, float* c,
                  int64_t c_stride) {
  for (int64_t r = 0; r < kTileRows; ++r) {
    for (int64_t n = 0; n < kTileColumns; ++n) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        const float a_value = kKMajor ? a[k * a_stride + r] : a[r * kArrayRows + k];
        sum = std::fma(a_value, b[k * kTileColumns + n], sum);
      }
      c[r * c_stride + n] += sum;
    }
  }
}

// Adds one tile to c. At the lower or right edge, c has room for only `rows` x `columns` of the
// tile's sums.
template <bool kKMajor>
void EdgeOrTile(const float* a, int64_t a_stride, const float* b, int64_t depth, float* c,
                int64_t c_stride, int64_t rows, int64_t columns, bool products_are_normal,
                float* tile) {
  const bool is_edge = rows < kTileRows || columns < kTileColumns;
  if (products_are_normal && rows >= kTileRows) {
    if (!is_edge) return Tile<kTileVectors, kKMajor>(a, a_stride, b, depth, c, c_stride);
    if (columns == kLanes) return Tile<1, kKMajor>(a, a_stride, b, depth, c, c_stride);
  }
  rows = std::min<int64_t>(rows, kTileRows);
  columns = std::min<int64_t>(columns, kTileColumns);
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(tile + r * kTileColumns, c + r * c_stride, columns * sizeof(float));
  }
  if (!products_are_normal) {
    TileOneByOne<kKMajor>(a, a_stride, b, depth, tile, kTileColumns);
  } else if (columns <= kLanes) {
    Tile<1, kKMajor>(a, a_stride, b, depth, tile, kTileColumns);
  } else {
    Tile<kTileVectors, kKMajor>(a, a_stride, b, depth, tile, kTileColumns);
  }
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(c + r * c_stride, tile + r * kTileColumns, columns * sizeof(float));
  }
}

void Reserve(DeviceArray<float>& array, int64_t size) {
  if (array.size() < size) array = DeviceArray<float>(size);
}

void ClearOutput(int64_t rows, int64_t columns, float* out, int64_t out_stride) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(out + r * out_stride, columns, 0.0f);
}

void Multiply(const Patches& a, const uint16_t* b, int64_t n, float* out, int64_t out_stride,
              Scratch& scratch) {
  const int64_t m = a.rows(), depth = a.columns();
  const int64_t panels = DivideUp<int64_t>(n, kTileColumns);
  Reserve(scratch.b, panels * depth * kTileColumns);
  Reserve(scratch.a, kBlockRows * kArrayRows);
  Reserve(scratch.tile, kTileRows * kTileColumns);
  // scratch.b holds [slab depth][kTileColumns] numbers for each panel of each slab. Columns beyond
  // n hold numbers of the next row of `b`; their sums are never stored.
  ExponentRange b_range;
  for (int64_t k0 = 0; k0 < depth; k0 += kArrayRows) {
    const int64_t slab = std::min(kArrayRows, depth - k0);
    for (int64_t p = 0; p < panels; ++p) {
      float* panel = scratch.b.data() + k0 * panels * kTileColumns + p * slab * kTileColumns;
      for (int64_t k = 0; k < slab; ++k) {
        Widen(b + (k0 + k) * n + p * kTileColumns, kTileColumns, panel + k * kTileColumns);
      }
      if (kNeedsRangeCheck) b_range.Include(panel, slab * kTileColumns);
    }
  }
  ClearOutput(m, n, out, out_stride);
  for (int64_t m0 = 0; m0 < m; m0 += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, m - m0);
    for (int64_t k0 = 0; k0 < depth; k0 += kArrayRows) {
      const int64_t slab = std::min(kArrayRows, depth - k0);
      ExponentRange a_range;
      RowWalk<uint16_t> walk(a, m0);
      for (int64_t r = 0; r < rows; ++r) {
        float* packed = scratch.a.data() + r * kArrayRows;
        WidenRow(a, walk.Next(), k0, k0 + slab, packed);
        if (kNeedsRangeCheck) a_range.Include(packed, slab);
      }
      const bool normal = !kNeedsRangeCheck || ExponentRange::ProductsAreNormal(a_range, b_range);
      for (int64_t p = 0; p < panels; ++p) {
        const float* panel =
            scratch.b.data() + k0 * panels * kTileColumns + p * slab * kTileColumns;
        for (int64_t r = 0; r < rows; r += kTileRows) {
          EdgeOrTile<false>(scratch.a.data() + r * kArrayRows, 0, panel, slab,
                            out + (m0 + r) * out_stride + p * kTileColumns, out_stride, rows - r,
                            n - p * kTileColumns, normal, scratch.tile.data());
        }
      }
    }
  }
}

void MultiplyTransposed(const Patches& a, const Patches& b, float* out, int64_t out_stride,
                        Scratch& scratch) {
  const int64_t depth = a.rows(), m = a.columns(), n = b.columns();
  const int64_t panels = DivideUp<int64_t>(n, kTileColumns);
  const int64_t a_stride = RoundUp<int64_t>(m, kTileRows);
  Reserve(scratch.a, kArrayRows * a_stride);
  Reserve(scratch.b, panels * kArrayRows * kTileColumns);
  Reserve(scratch.row, panels * kTileColumns);
  Reserve(scratch.tile, kTileRows * kTileColumns);
  ClearOutput(m, n, out, out_stride);
  RowWalk<uint16_t> a_walk(a, 0), b_walk(b, 0);
  for (int64_t k0 = 0; k0 < depth; k0 += kArrayRows) {
    const int64_t slab = std::min(kArrayRows, depth - k0);
    ExponentRange a_range, b_range;
    for (int64_t k = 0; k < slab; ++k) {
      float* a_row = scratch.a.data() + k * a_stride;
      WidenRow(a, a_walk.Next(), 0, m, a_row);
      WidenRow(b, b_walk.Next(), 0, n, scratch.row.data());
      for (int64_t p = 0; p < panels; ++p) {
        float* to = scratch.b.data() + (p * kArrayRows + k) * kTileColumns;
        const float* from = scratch.row.data() + p * kTileColumns;
        for (int v = 0; v < kTileVectors; ++v) {
          hn::Store(hn::Load(df, from + v * kLanes), df, to + v * kLanes);
        }
      }
      if (kNeedsRangeCheck) {
        a_range.Include(a_row, m);
        b_range.Include(scratch.row.data(), n);
      }
    }
    const bool normal = !kNeedsRangeCheck || ExponentRange::ProductsAreNormal(a_range, b_range);
    for (int64_t p = 0; p < panels; ++p) {
      const float* panel = scratch.b.data() + p * kArrayRows * kTileColumns;
      for (int64_t r = 0; r < m; r += kTileRows) {
        EdgeOrTile<true>(scratch.a.data() + r, a_stride, panel, slab,
                         out + r * out_stride + p * kTileColumns, out_stride, m - r,
                         n - p * kTileColumns, normal, scratch.tile.data());
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace systole::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::emulator {

HWY_EXPORT(Multiply);
HWY_EXPORT(MultiplyTransposed);

void MatrixUnit<float>::Multiply(const PatchMatrix<uint16_t>& a, const uint16_t* b, int64_t n,
                                 float* out, int64_t out_stride) {
  if (numerics_ == Numerics::kFast && fast_.Multiply(a, b, n, out, out_stride)) return;
  HWY_DYNAMIC_DISPATCH(Multiply)(a, b, n, out, out_stride, scratch_);
}

void MatrixUnit<float>::MultiplyTransposed(const PatchMatrix<uint16_t>& a,
                                           const PatchMatrix<uint16_t>& b, float* out,
                                           int64_t out_stride) {
  if (numerics_ == Numerics::kFast && fast_.MultiplyTransposed(a, b, out, out_stride)) return;
  HWY_DYNAMIC_DISPATCH(MultiplyTransposed)(a, b, out, out_stride, scratch_);
}

}  // namespace systole::emulator
#endif  // HWY_ONCE
