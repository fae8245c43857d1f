// The casts of bf16.h, float16.h and normalise.h on whole Highway vectors, for kernels that end in
// a cast. A .cc that uses hwy/foreach_target.h includes this file once per SIMD target. The results
// are bit-equal to those of the scalar functions.
//
// Thread-safe: no state.
#if defined(SYSTOLE_CORE_NUMERIC_CAST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SYSTOLE_CORE_NUMERIC_CAST_INL_H_
#undef SYSTOLE_CORE_NUMERIC_CAST_INL_H_
#else
#define SYSTOLE_CORE_NUMERIC_CAST_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {

// Three forms of RoundToBf16 (D: a uint32_t tag). `bits` are the bits of floats. The code rounds
// with integer operations, because Highway's DemoteTo(bfloat16_t) truncates in version 1.0.
//   RoundNumberToUpperBits  not for NaN; the result is in the upper 16 bits of each lane, and the
//                           lower bits are undefined
//   RoundNumberToBf16Bits   not for NaN; the result is in the low 16 bits of each lane
//   RoundToBf16Bits         for NaN, too; the result is in the low 16 bits of each lane
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> RoundNumberToUpperBits(D d, hwy::HWY_NAMESPACE::Vec<D> bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
  return hn::Add(hn::Add(bits, hn::Set(d, 0x7fffu)), odd);
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> RoundNumberToBf16Bits(D d, hwy::HWY_NAMESPACE::Vec<D> bits) {
  return hwy::HWY_NAMESPACE::ShiftRight<16>(RoundNumberToUpperBits(d, bits));
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> RoundToBf16Bits(D d, hwy::HWY_NAMESPACE::Vec<D> bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto rounded = RoundNumberToBf16Bits(d, bits);
  // The comparison is signed, because every target has signed comparisons. The result is right,
  // because the magnitude's top bit is clear.
  const hn::RebindToSigned<D> di;
  const auto magnitude = hn::BitCast(di, hn::And(bits, hn::Set(d, 0x7fffffffu)));
  const auto is_nan = hn::RebindMask(d, hn::Gt(magnitude, hn::Set(di, 0x7f800000)));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d, 0x0040u));
  return hn::IfThenElse(is_nan, quiet, rounded);
}

// RoundToBf16Flush of the floats whose bits are `bits`.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> RoundToBf16FlushBits(D d, hwy::HWY_NAMESPACE::Vec<D> bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto is_small = hn::Eq(hn::And(bits, hn::Set(d, 0x7f800000u)), hn::Zero(d));
  const auto zero = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
  return hn::IfThenElse(is_small, zero, RoundToBf16Bits(d, bits));
}

// RoundToFloat16 of the floats whose bits are `bits`.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> RoundToFloat16Bits(D d, hwy::HWY_NAMESPACE::Vec<D> bits) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToFloat<D> df;
  const hn::RebindToSigned<D> di;
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7fffffffu));
  const auto signed_magnitude = hn::BitCast(di, magnitude);
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1u));
  const auto halfway = hn::Set(d, 0xfffu - (112u << 23));
  const auto rounded = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, halfway), odd));
  // The last bit of a float just above 0.5 has the value 2^-24, like the last bit of a subnormal
  // float16. So adding 0.5 rounds half to even.
  const auto half = hn::Set(df, 0.5f);
  const auto small =
      hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(d, half));
  const auto quiet = hn::Or(hn::ShiftRight<13>(magnitude), hn::Set(d, 0x7e00u));
  const auto above = [&](uint32_t bound) HWY_ATTR {
    return hn::RebindMask(d, hn::Gt(signed_magnitude, hn::Set(di, static_cast<int32_t>(bound))));
  };
  auto result = hn::IfThenElse(above(0x387fffffu), rounded, small);
  result = hn::IfThenElse(above(0x477fffffu), hn::Set(d, 0x7c00u), result);
  result = hn::IfThenElse(above(0x7f800000u), hn::And(quiet, hn::Set(d, 0x7fffu)), result);
  return hn::Or(sign, result);
}

// RoundToUint8 of each lane (D: a float tag). The result is in the low 8 bits of each 32-bit lane.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::RebindToUnsigned<D>> RoundToUint8Bits(
    D d, hwy::HWY_NAMESPACE::Vec<D> value) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const auto positive = hn::IfThenElseZero(hn::Gt(value, hn::Zero(d)), value);  // NaN gives 0.
  const auto clamped = hn::Min(positive, hn::Set(d, 255.0f));
  // A float of 2^23 or more has no fraction bits, so adding 2^23 rounds half to even.
  const auto shifted = hn::BitCast(du, hn::Add(clamped, hn::Set(d, 8388608.0f)));
  return hn::And(shifted, hn::Set(du, 0xffu));
}

// hn::StoreU for unaligned pointers. On the scalar target hn::StoreU is a plain assignment, which
// needs the type's own alignment.
template <class D>
HWY_INLINE void StoreAnywhere(hwy::HWY_NAMESPACE::Vec<D> value, D d,
                              hwy::HWY_NAMESPACE::TFromD<D>* out) {
#if HWY_TARGET == HWY_SCALAR
  (void)d;
  std::memcpy(static_cast<void*>(out), &value.raw, sizeof(value.raw));
#else
  hwy::HWY_NAMESPACE::StoreU(value, d, out);
#endif
}

// Stores two vectors one after the other: for types where narrowing both vectors at once is not
// faster, and for the scalar target, which cannot narrow both at once.
template <class Store, class D>
HWY_INLINE void StoreOneByOne(const Store& store, D d, hwy::HWY_NAMESPACE::Vec<D> low,
                              hwy::HWY_NAMESPACE::Vec<D> high, typename Store::Value* out) {
  store(d, low, out);
  store(d, high, out + hwy::HWY_NAMESPACE::Lanes(d));
}

// Each struct below casts one vector of floats (D: a float tag), and stores the result at `out`, at
// any alignment. Given two vectors, all structs but StoreBf16 store the second result after the
// first. StoreUint8 and StoreNumberBf16 narrow both vectors at once, which is faster than narrowing
// one after the other.
struct StoreUint8 {
  using Value = uint8_t;
  template <class D>
  HWY_INLINE void operator()(D d, hwy::HWY_NAMESPACE::Vec<D> value, Value* out) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Rebind<uint8_t, D> d8;
    StoreAnywhere(hn::TruncateTo(d8, RoundToUint8Bits(d, value)), d8, out);
  }
  template <class D>
  HWY_INLINE void operator()(D d, hwy::HWY_NAMESPACE::Vec<D> low, hwy::HWY_NAMESPACE::Vec<D> high,
                             Value* out) const {
#if HWY_TARGET == HWY_SCALAR
    StoreOneByOne(*this, d, low, high, out);
#else
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Repartition<uint16_t, D> d16;
    const hn::Rebind<uint8_t, decltype(d16)> d8;
    const auto both = hn::ConcatEven(d16, hn::BitCast(d16, RoundToUint8Bits(d, high)),
                                     hn::BitCast(d16, RoundToUint8Bits(d, low)));
    StoreAnywhere(hn::TruncateTo(d8, both), d8, out);
#endif
  }
};
struct StoreFloat32 {
  using Value = float;
  template <class D>
  HWY_INLINE void operator()(D d, hwy::HWY_NAMESPACE::Vec<D> value, Value* out) const {
    StoreAnywhere(value, d, out);
  }
  template <class D>
  HWY_INLINE void operator()(D d, hwy::HWY_NAMESPACE::Vec<D> low, hwy::HWY_NAMESPACE::Vec<D> high,
                             Value* out) const {
    StoreOneByOne(*this, d, low, high, out);
  }
};
struct StoreBf16 {
  using Value = uint16_t;
  template <class D>
  HWY_INLINE void operator()(D /*d*/, hwy::HWY_NAMESPACE::Vec<D> value, Value* out) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint16_t, D> d16;
    StoreAnywhere(hn::TruncateTo(d16, RoundToBf16Bits(du, hn::BitCast(du, value))), d16, out);
  }
};
struct StoreFloat16 {
  using Value = uint16_t;
  template <class D>
  HWY_INLINE void operator()(D /*d*/, hwy::HWY_NAMESPACE::Vec<D> value, Value* out) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint16_t, D> d16;
    StoreAnywhere(hn::TruncateTo(d16, RoundToFloat16Bits(du, hn::BitCast(du, value))), d16, out);
  }
  template <class D>
  HWY_INLINE void operator()(D d, hwy::HWY_NAMESPACE::Vec<D> low, hwy::HWY_NAMESPACE::Vec<D> high,
                             Value* out) const {
    StoreOneByOne(*this, d, low, high, out);
  }
};
// For values that cannot be NaN.
struct StoreNumberBf16 {
  using Value = uint16_t;
  template <class D>
  HWY_INLINE void operator()(D /*d*/, hwy::HWY_NAMESPACE::Vec<D> value, Value* out) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint16_t, D> d16;
    StoreAnywhere(hn::TruncateTo(d16, RoundNumberToBf16Bits(du, hn::BitCast(du, value))), d16, out);
  }
  template <class D>
  HWY_INLINE void operator()(D d, hwy::HWY_NAMESPACE::Vec<D> low, hwy::HWY_NAMESPACE::Vec<D> high,
                             Value* out) const {
#if HWY_TARGET == HWY_SCALAR
    StoreOneByOne(*this, d, low, high, out);
#else
    namespace hn = hwy::HWY_NAMESPACE;
    (void)d;
    const hn::RebindToUnsigned<D> du;
    const hn::Repartition<uint16_t, D> d16;
    const auto low_bits = RoundNumberToUpperBits(du, hn::BitCast(du, low));
    const auto high_bits = RoundNumberToUpperBits(du, hn::BitCast(du, high));
    const auto both = hn::ConcatOdd(d16, hn::BitCast(d16, high_bits), hn::BitCast(d16, low_bits));
    StoreAnywhere(both, d16, out);
#endif
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#endif  // SYSTOLE_CORE_NUMERIC_CAST_INL_H_
