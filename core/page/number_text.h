// Numbers as text for readers: three significant digits, a unit, commas between thousands.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PAGE_NUMBER_TEXT_H_
#define SYSTOLE_CORE_PAGE_NUMBER_TEXT_H_

#include <string>

namespace systole {

enum class NumberUnit {
  kNone,            // A plain number of up to six digits: 42, 0.125
  kCount,           // 12,345
  kSeconds,         // 12.3 ms
  kFraction,        // 0.918 is shown as 91.8 %
  kBytes,           // 1.13 GB, powers of 1000
  kBytesPerSecond,  // 700 GB/s
  kFlops,           // 8.18 GFLOP
  kFlopsPerSecond,  // 22.9 TFLOP/s
  kFlopsPerByte,    // 65.7 FLOP/B
};

// `value` as a text with its unit, rounded to the last digit that is shown; "n/a" if not finite.
std::string NumberText(double value, NumberUnit unit);

// A value of an axis whose ticks are `step` apart: "0 ms", "2.5 ms", "5.0 ms". All texts of one
// axis have the same prefix (m, k, ..): that of `largest`. REQUIRES: step > 0.
std::string TickText(double value, double step, double largest, NumberUnit unit);

}  // namespace systole

#endif  // SYSTOLE_CORE_PAGE_NUMBER_TEXT_H_
