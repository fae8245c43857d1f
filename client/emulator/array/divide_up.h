// Division and multiples, rounded up: how many whole tiles cover a length, and how long these tiles
// are together. Not for negative numbers.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_DIVIDE_UP_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_DIVIDE_UP_H_

namespace systole::emulator {

// a / b, rounded up. REQUIRES: a >= 0, b > 0.
template <typename Integer>
constexpr Integer DivideUp(Integer a, Integer b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

// The smallest multiple of `multiple` that is not below n. REQUIRES: n >= 0, multiple > 0, and the
// result fits into Integer.
template <typename Integer>
constexpr Integer RoundUp(Integer n, Integer multiple) {
  return DivideUp(n, multiple) * multiple;
}

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_DIVIDE_UP_H_
