// Changes of float images that need no more than a few rows at a time. A program makes several of
// them together while the rows are in the cache (core/operations/row_changes.h).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_ROW_CHANGE_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_ROW_CHANGE_H_

#include <array>
#include <cstddef>
#include <functional>

#include "absl/types/span.h"
#include "core/numeric/normalise.h"

namespace systole {

// Changes some whole rows of an image of 1 or 3 channels in place. The calls cover all rows from
// the first to the last, each row once.
using RowChange = std::function<void(absl::Span<float> rows)>;

// Whether an operation changes each row of a float32 image in place, without reading other rows.
enum class ByRow {
  kNo,
  kYes,
  kAfterReadingAll,  // The operation reads the whole image first, for example to compute a mean.
};

// One number per channel, repeated. The pattern fits for 1 and for 3 channels, because 48 is a
// multiple of 3. Compilers vectorise loops of this fixed length.
using ChannelPattern = std::array<float, 48>;

// REQUIRES: `by_channel` has 1 or 3 numbers.
inline ChannelPattern PatternOf(absl::Span<const float> by_channel) {
  ChannelPattern pattern;
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = by_channel[i % by_channel.size()];
  return pattern;
}

// Replaces each value by compute(value, j). Entry j of a ChannelPattern belongs to the value's
// channel. REQUIRES: the first value belongs to the first channel. `compute` must not read memory
// that may overlap `values`, because compilers would then not vectorise the loop.
template <typename Compute>
void ApplyByPattern(const Compute& compute, absl::Span<float> values) {
  constexpr size_t kLength = std::tuple_size_v<ChannelPattern>;
  size_t i = 0;
  for (; i + kLength <= values.size(); i += kLength) {
    float* const part = values.data() + i;
    for (size_t j = 0; j < kLength; ++j) part[j] = compute(part[j], j);
  }
  for (size_t j = 0; i < values.size(); ++i, ++j) values[i] = compute(values[i], j);
}

// x * scale + bias, as core/numeric/normalise.h computes it. REQUIRES: 1 or 3 factors of each kind.
inline RowChange NormaliseRows(const NormaliseFactors& factors) {
  return [scales = PatternOf(factors.scale),
          biases = PatternOf(factors.bias)](absl::Span<float> rows) {
    const ChannelPattern scale = scales;
    const ChannelPattern bias = biases;
    ApplyByPattern([&](float x, size_t j) { return x * scale[j] + bias[j]; }, rows);
  };
}

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_ROW_CHANGE_H_
