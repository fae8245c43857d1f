// Random operands at the limits of bf16 and f32, which the numerics of an array must get right.
#ifndef SYSTOLE_TESTS_CLIENT_EMULATOR_ARRAY_WILD_OPERANDS_H_
#define SYSTOLE_TESTS_CLIENT_EMULATOR_ARRAY_WILD_OPERANDS_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace systole::emulator {

enum class Wildness {
  kTame,        // Within a few powers of two of 1, so sums round.
  kAnything,    // Any finite bits, also subnormal ones, so products overflow and underflow.
  kFlushing,    // Around 2^-63, so products and sums are on both sides of the smallest normal.
  kInfinities,  // kTame with infinities, which also make NaNs.
};
inline constexpr int kWildnesses = 4;

// Random bf16 bits. A sixteenth of them are zeros of either sign.
inline std::vector<uint16_t> WildOperands(int64_t size, Wildness wildness, std::mt19937& random) {
  std::vector<uint16_t> operands(static_cast<size_t>(size));
  for (uint16_t& operand : operands) {
    const uint32_t draw = random();
    uint32_t exponent = 122 + draw / 256 % 10;
    if (wildness == Wildness::kAnything) exponent = draw / 256 % 255;
    if (wildness == Wildness::kFlushing) exponent = 58 + draw / 256 % 12;
    uint32_t rest = draw % 128;
    if (draw >> 24 < 16) exponent = rest = 0;
    if (wildness == Wildness::kInfinities && draw >> 26 == 63) exponent = 255, rest = 0;
    operand = static_cast<uint16_t>((draw & 128) << 8 | exponent << 7 | rest);
  }
  return operands;
}

// The bits of the value. All NaNs get the same bits.
inline uint32_t BitsOf(float value) {
  return std::isnan(value) ? 0x7fc00000u : std::bit_cast<uint32_t>(value);
}
inline std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(BitsOf(value));
  return bits;
}

}  // namespace systole::emulator

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_ARRAY_WILD_OPERANDS_H_
