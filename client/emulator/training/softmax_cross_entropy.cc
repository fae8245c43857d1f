#include "client/emulator/training/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/numeric/math.h"

namespace systole::emulator {
namespace {

float ExpOf(float x) { return Exp(x); }
float LogOf(float x) { return Log(x); }
// Double is for gradient checks only, because libm's bits differ between CPUs.
double ExpOf(double x) { return std::exp(x); }
double LogOf(double x) { return std::log(x); }

}  // namespace

template <typename T>
LossSums<T> SoftmaxCrossEntropy(const T* logits, int64_t classes, absl::Span<const int64_t> labels,
                                absl::Span<const uint8_t> valid, T smoothing, T divisor,
                                T* d_logits) {
  const T share = smoothing / static_cast<T>(classes), at_label = T{1} - smoothing;
  LossSums<T> sums;
  std::vector<T> powers(static_cast<size_t>(classes));
  for (size_t i = 0; i < labels.size(); ++i) {
    const T* row = logits + static_cast<int64_t>(i) * classes;
    T* d_row = d_logits == nullptr ? nullptr : d_logits + static_cast<int64_t>(i) * classes;
    if (valid[i] == 0) {
      if (d_row != nullptr) std::fill_n(d_row, classes, T{0});
      continue;
    }
    const int64_t best = std::max_element(row, row + classes) - row;
    T sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      powers[c] = ExpOf(row[c] - row[best]);
      sum += powers[c];
    }
    sums.loss += LogOf(sum) - at_label * (row[labels[i]] - row[best]);
    if (share > 0) {  // 0 times an infinity would be NaN.
      T all = 0;
      for (int64_t c = 0; c < classes; ++c) all += row[c] - row[best];
      sums.loss -= share * all;
    }
    sums.correct += best == labels[i] ? 1 : 0;
    if (d_row == nullptr) continue;
    for (int64_t c = 0; c < classes; ++c) {
      const T target = c == labels[i] ? at_label + share : share;
      d_row[c] = (powers[c] / sum - target) / divisor;
    }
  }
  return sums;
}

template LossSums<float> SoftmaxCrossEntropy(const float*, int64_t, absl::Span<const int64_t>,
                                             absl::Span<const uint8_t>, float, float, float*);
template LossSums<double> SoftmaxCrossEntropy(const double*, int64_t, absl::Span<const int64_t>,
                                              absl::Span<const uint8_t>, double, double, double*);

}  // namespace systole::emulator
