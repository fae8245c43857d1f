// The multiplications and additions of a resample and nothing else: no tables, no conversion, all
// in the processor's nearest cache. The ceiling of what resamples with products and sums that are
// rounded one by one, as our bytes need them.
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

// Makes `rows` rows of `row_values` values, each the sum of `taps` products. If `taps` is no whole
// number, it is the mean over the rows.
struct TapsPass {
  int64_t rows = 0;
  int64_t row_values = 0;
  double taps = 1;

  friend bool operator==(const TapsPass&, const TapsPass&) = default;
};

// The passes of a resample of 3 channels, in the order that the references fix: the default method
// makes columns first and each row of the input once; the other methods make rows first, of all
// columns that some output pixel needs. REQUIRES: a method other than kNearest and kArea.
std::vector<TapsPass> PassesOf(const ResampleOptions& options, ImageSize in, ImageSize out);

class TapsLoop {
 public:
  // REQUIRES: taps >= 1.
  void Run(const TapsPass& pass);

  // What the last row was made of and what it became, for tests: value i is the sum of
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
