// A summary of an output's values over many examples: smallest, largest, mean, and the share that
// is NaN or infinite.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_LOOK_TENSOR_SUMMARY_H_
#define SYSTOLE_CLIENT_LOOK_TENSOR_SUMMARY_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/tensor/dtype.h"

namespace systole {

// The value in a few digits: "3", "-0.1235", "1.235e+30", "nan". An integer is written with all its
// digits.
std::string ValueText(DType dtype, const uint8_t* at);

class TensorSummary {
 public:
  explicit TensorSummary(DType dtype) : dtype_(dtype) {}

  // Counts the values of the examples that are `valid`. `values` is where `tensor` begins.
  // REQUIRES: `tensor` is of `dtype`; `valid` has an entry for each example.
  void Add(const SliceTensor& tensor, const uint8_t* values, absl::Span<const uint8_t> valid);

  // Texts like those of ValueText; "–" if there is no finite value.
  std::string MinText() const;
  std::string MaxText() const;
  std::string MeanText() const;

  bool all_finite() const { return not_finite_ == 0; }
  // The share of values that are NaN or infinite, such as "0.5 %". The text is "0 %" only if no
  // value is NaN or infinite.
  std::string NotFiniteText() const;

 private:
  const DType dtype_;
  int64_t finite_ = 0;
  int64_t not_finite_ = 0;
  double sum_ = 0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  // Smallest and largest of integers, which a double would round.
  int64_t least_ = std::numeric_limits<int64_t>::max();
  int64_t most_ = std::numeric_limits<int64_t>::min();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_TENSOR_SUMMARY_H_
