#include "core/numeric/standardise.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/standardise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"

#ifndef SYSTOLE_CORE_NUMERIC_STANDARDISE_CC_ONCE_
#define SYSTOLE_CORE_NUMERIC_STANDARDISE_CC_ONCE_
namespace systole {
namespace {

// As many doubles as the widest vector of x86 has.
constexpr size_t kSums = 8;

}  // namespace
}  // namespace systole
#endif  // SYSTOLE_CORE_NUMERIC_STANDARDISE_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::CappedTag<double, kSums>;
using HalfFloats = hn::Rebind<float, Doubles>;  // As many lanes as Doubles.
using Floats = hn::ScalableTag<float>;

template <class D>
HWY_INLINE hn::Vec<D> LoadAsFloat(D d, const float* in) {
  return hn::LoadU(d, in);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAsFloat(D d, const uint8_t* in) {
  const hn::Rebind<uint8_t, D> d8;
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, in)));
}

// The sum of term(x) over all x. `term` turns a vector of floats into a vector of doubles.
template <class T, class Term>
HWY_INLINE double Sum(const T* HWY_RESTRICT in, size_t n, const Term& term) {
  const Doubles dd;
  const HalfFloats d;
  constexpr size_t kLanes = hn::MaxLanes(Doubles());
  constexpr size_t kVectors = kSums / kLanes;
  hn::Vec<Doubles> vectors[kVectors];
  for (size_t v = 0; v < kVectors; ++v) vectors[v] = hn::Zero(dd);
  size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (size_t v = 0; v < kVectors; ++v) {
      vectors[v] = hn::Add(vectors[v], term(LoadAsFloat(d, in + i + v * kLanes)));
    }
  }
  double sums[kSums];
  for (size_t v = 0; v < kVectors; ++v) hn::StoreU(vectors[v], dd, sums + v * kLanes);
  if (i < n) {
    T rest[kSums] = {};
    std::memcpy(rest, in + i, (n - i) * sizeof(T));
    double terms[kSums];
    for (size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(term(LoadAsFloat(d, rest + v * kLanes)), dd, terms + v * kLanes);
    }
    for (size_t j = 0; j < n - i; ++j) sums[j] += terms[j];
  }
  double sum = 0;
  for (const double one : sums) sum += one;
  return sum;
}

template <class T>
HWY_INLINE double PlainSum(const T* in, size_t n) {
  return Sum(in, n, [](hn::Vec<HalfFloats> x) HWY_ATTR { return hn::PromoteTo(Doubles(), x); });
}
double SumOfFloats(const float* in, size_t n) { return PlainSum(in, n); }
double SumOfUint8s(const uint8_t* in, size_t n) { return PlainSum(in, n); }

template <class T>
HWY_INLINE double Squares(const T* in, size_t n, float mean) {
  return Sum(in, n, [mean](hn::Vec<HalfFloats> x) HWY_ATTR {
    const auto difference = hn::PromoteTo(Doubles(), hn::Sub(x, hn::Set(HalfFloats(), mean)));
    return hn::Mul(difference, difference);
  });
}
double SquaresOfFloats(const float* in, size_t n, float mean) { return Squares(in, n, mean); }
double SquaresOfUint8s(const uint8_t* in, size_t n, float mean) { return Squares(in, n, mean); }

template <class T>
HWY_INLINE void Divide(const T* in, size_t n, float mean, float divisor, float* out) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  const auto one = [&](const T* from, float* to) HWY_ATTR {
    const auto difference = hn::Sub(LoadAsFloat(d, from), hn::Set(d, mean));
    hn::StoreU(hn::Div(difference, hn::Set(d, divisor)), d, to);
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) one(in + i, out + i);
  if (i < n) {
    T rest_in[hn::MaxLanes(Floats())] = {};
    float rest_out[hn::MaxLanes(Floats())];
    std::memcpy(rest_in, in + i, (n - i) * sizeof(T));
    one(rest_in, rest_out);
    std::memcpy(out + i, rest_out, (n - i) * sizeof(float));
  }
}
void DivideFloats(const float* in, size_t n, float mean, float divisor, float* out) {
  Divide(in, n, mean, divisor, out);
}
void DivideUint8s(const uint8_t* in, size_t n, float mean, float divisor, float* out) {
  Divide(in, n, mean, divisor, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(SumOfFloats);
HWY_EXPORT(SumOfUint8s);
HWY_EXPORT(SquaresOfFloats);
HWY_EXPORT(SquaresOfUint8s);
HWY_EXPORT(DivideFloats);
HWY_EXPORT(DivideUint8s);

}  // namespace

double SumOf(absl::Span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(SumOfFloats)(values.data(), values.size());
}
double SumOf(absl::Span<const uint8_t> values) {
  return HWY_DYNAMIC_DISPATCH(SumOfUint8s)(values.data(), values.size());
}

double SumOfSquares(absl::Span<const float> values, float mean) {
  return HWY_DYNAMIC_DISPATCH(SquaresOfFloats)(values.data(), values.size(), mean);
}
double SumOfSquares(absl::Span<const uint8_t> values, float mean) {
  return HWY_DYNAMIC_DISPATCH(SquaresOfUint8s)(values.data(), values.size(), mean);
}

void Standardise(absl::Span<const float> in, float mean, float divisor, absl::Span<float> out) {
  SYSTOLE_CHECK(out.size() == in.size());
  HWY_DYNAMIC_DISPATCH(DivideFloats)(in.data(), in.size(), mean, divisor, out.data());
}
void Standardise(absl::Span<const uint8_t> in, float mean, float divisor, absl::Span<float> out) {
  SYSTOLE_CHECK(out.size() == in.size());
  HWY_DYNAMIC_DISPATCH(DivideUint8s)(in.data(), in.size(), mean, divisor, out.data());
}

}  // namespace systole
#endif  // HWY_ONCE
