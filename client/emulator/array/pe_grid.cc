#include "client/emulator/array/pe_grid.h"

#include <algorithm>
#include <cstring>

#include "client/emulator/array/divide_up.h"
#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "client/emulator/array/pe_grid.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

// A cycle is computed in place, from the last row to the first and within a row from right to left.
// So a value is read before it is overwritten.

HWY_BEFORE_NAMESPACE();
namespace systole::emulator {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

const hn::CappedTag<float, 16> df;
constexpr int64_t kLanes = hn::MaxLanes(df);

// Moves the values of `a` one place to the right; a[-1] enters at the left. Then computes
// sum = fma(a, b, addend). `addend` may be `sum`.
HWY_INLINE void StepRow(int64_t n, float* a, const float* b, const float* addend, float* sum) {
#if HWY_NATIVE_FMA
  for (int64_t c = n - kLanes; c >= 0; c -= kLanes) {
    const auto from_left = hn::LoadU(df, a + c - 1);
    const auto total = hn::MulAdd(from_left, hn::Load(df, b + c), hn::Load(df, addend + c));
    hn::Store(from_left, df, a + c);
    hn::Store(total, df, sum + c);
  }
#else
  // In double the product is exact, because its significand has only 16 bits. The product's sum
  // with a float is rounded to 53 bits and then to 24. Both roundings together give the same as one
  // rounding to 24 bits, because 53 >= 2 * 24 + 2.
  std::memmove(a, a - 1, static_cast<size_t>(n) * sizeof(float));
  for (int64_t c = 0; c < n; ++c) {
    sum[c] = static_cast<float>(static_cast<double>(a[c]) * static_cast<double>(b[c]) +
                                static_cast<double>(addend[c]));
  }
#endif
}

HWY_INLINE void CopyRow(int64_t n, const float* from, float* to) {
  for (int64_t c = 0; c < n; c += kLanes) hn::Store(hn::Load(df, from + c), df, to + c);
}

// Row r of the shadow registers takes the values of the row above, in the columns whose shift depth
// is more than r.
HWY_INLINE void ShiftShadowRow(const PeGrid::Planes& p, int64_t r) {
  const hn::RebindToSigned<decltype(df)> di;
  const auto row = hn::Set(di, static_cast<int32_t>(r));
  float* shadow = p.shadow + r * p.stride;
  for (int64_t c = 0; c < p.columns; c += kLanes) {
    const auto shifts = hn::Gt(hn::Load(di, p.shift_depth + c), row);
    if (hn::AllFalse(di, shifts)) continue;
    const auto above = hn::Load(df, shadow + c - p.stride);
    hn::Store(hn::IfThenElse(hn::RebindMask(df, shifts), above, hn::Load(df, shadow + c)), df,
              shadow + c);
  }
}

void StreamCycle(const PeGrid::Planes& p, bool loading) {
  for (int64_t r = p.rows - 1; r >= 0; --r) {
    const int64_t at = r * p.stride;
    if (loading) ShiftShadowRow(p, r);
    StepRow(p.columns, p.a + at, p.b + at, p.sum + at - p.stride, p.sum + at);
  }
}

void AccumulateCycle(const PeGrid::Planes& p) {
  for (int64_t r = p.rows - 1; r >= 0; --r) {
    const int64_t at = r * p.stride;
    CopyRow(p.columns, p.b + at - p.stride, p.b + at);
    StepRow(p.columns, p.a + at, p.b + at, p.sum + at, p.sum + at);
  }
}

void DrainCycle(const PeGrid::Planes& p) {
  for (int64_t r = p.rows - 1; r >= 0; --r) {
    const int64_t at = r * p.stride;
    std::memmove(p.a + at, p.a + at - 1, static_cast<size_t>(p.columns) * sizeof(float));
    CopyRow(p.columns, p.b + at - p.stride, p.b + at);
    CopyRow(p.columns, p.sum + at - p.stride, p.sum + at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace systole::emulator
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::emulator {

HWY_EXPORT(StreamCycle);
HWY_EXPORT(AccumulateCycle);
HWY_EXPORT(DrainCycle);

namespace {

constexpr int64_t kWidestVector = 16;

}  // namespace

PeGrid::PeGrid(int64_t rows, int64_t columns)
    : rows_(rows), columns_(columns), stride_(RoundUp(columns, kWidestVector) + kMargin) {
  SYSTOLE_CHECK(rows > 0 && columns > 0);
  const int64_t size = (rows + 1) * stride_;
  a_ = DeviceArray<float>(size);
  b_ = DeviceArray<float>(size);
  shadow_ = DeviceArray<float>(size);
  sum_ = DeviceArray<float>(size);
  shift_depth_ = DeviceArray<int32_t>(RoundUp(columns, kWidestVector));
}

void PeGrid::Clear() {
  for (DeviceArray<float>* plane : {&a_, &b_, &shadow_, &sum_}) {
    std::fill_n(plane->data(), plane->size(), 0.0f);
  }
  std::fill_n(shift_depth_.data(), shift_depth_.size(), 0);
}

PeGrid::Planes PeGrid::planes() {
  return {.a = a_.data() + RowStart(0),
          .b = b_.data() + RowStart(0),
          .shadow = shadow_.data() + RowStart(0),
          .sum = sum_.data() + RowStart(0),
          .shift_depth = shift_depth_.data(),
          .rows = rows_,
          .columns = stride_ - kMargin,
          .stride = stride_};
}

PeGrid::Pe PeGrid::At(int64_t r, int64_t c) const {
  const int64_t at = RowStart(r) + c;
  return {.a = a_[at], .b = b_[at], .shadow = shadow_[at], .sum = sum_[at]};
}

void PeGrid::TakeShadow(int64_t diagonal) {
  const int64_t end = std::min(rows_, diagonal + 1);
  for (int64_t r = std::max<int64_t>(0, diagonal - columns_ + 1); r < end; ++r) {
    const int64_t at = RowStart(r) + diagonal - r;
    b_[at] = shadow_[at];
  }
}

void PeGrid::StreamCycle(bool loading) { HWY_DYNAMIC_DISPATCH(StreamCycle)(planes(), loading); }
void PeGrid::AccumulateCycle() { HWY_DYNAMIC_DISPATCH(AccumulateCycle)(planes()); }
void PeGrid::DrainCycle() { HWY_DYNAMIC_DISPATCH(DrainCycle)(planes()); }

}  // namespace systole::emulator
#endif  // HWY_ONCE
