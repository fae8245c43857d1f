// Does only the multiplications and additions of a resample. It has no tables and no conversion,
// and all values stay in the processor's nearest cache. Our output is defined bit by bit: a
// resample must round each product and each sum. So no resample can be faster than this loop.
//
// Thread-compatible.
#ifndef SYSTOLE_BENCH_TAPS_LOOP_H_
#define SYSTOLE_BENCH_TAPS_LOOP_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/image/image_size.h"
#include "core/image/resize/resampler.h"

namespace systole::bench {

// Makes `rows` rows of `row_values` values, each the sum of `taps` products. `taps` need not be a
// whole number: it is the mean over the rows.
struct TapsPass {
  int64_t rows = 0;
  int64_t row_values = 0;
  double taps = 1;

  friend bool operator==(const TapsPass&, const TapsPass&) = default;
};

// The passes of a resample of 3 channels, in the order that the reference implementations fix. The
// default method resamples along rows first, once for each row that an output pixel needs. The
// other methods resample along columns first, but only those columns that an output pixel needs.
// REQUIRES: a method other than kNearest and kArea.
std::vector<TapsPass> PassesOf(const ResampleOptions& options, ImageSize in, ImageSize out);

class TapsLoop {
 public:
  // REQUIRES: taps >= 1.
  void Run(const TapsPass& pass);

  // For tests: the inputs, the weights and the values of the last row. Value i is the sum of
  // weights()[k] * in()[i + k].
  absl::Span<const float> in() const { return in_; }
  absl::Span<const float> weights() const { return weights_; }
  absl::Span<const float> row() const { return row_; }

 private:
  std::vector<float> in_;
  std::vector<float> weights_;
  std::vector<float> row_;
};

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_TAPS_LOOP_H_
