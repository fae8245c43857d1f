#include "client/look/tensor_summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/picture/elements.h"

namespace systole {
namespace {

constexpr char kNothing[] = "–";

std::string NumberText(double value) { return absl::StrFormat("%.4g", value); }

}  // namespace

std::string ValueText(DType dtype, const uint8_t* at) {
  return IsInteger(dtype) ? absl::StrCat(IntegerAt(dtype, at)) : NumberText(NumberAt(dtype, at));
}

void TensorSummary::Add(const SliceTensor& tensor, const uint8_t* values,
                        absl::Span<const uint8_t> valid) {
  if (IsInteger(dtype_)) {
    ForEachValidElement(tensor, values, valid, [this](const uint8_t* at) {
      const int64_t value = IntegerAt(dtype_, at);
      least_ = std::min(least_, value);
      most_ = std::max(most_, value);
      sum_ += static_cast<double>(value);
      ++finite_;
    });
    return;
  }
  ForEachValidElement(tensor, values, valid, [this](const uint8_t* at) {
    const double value = NumberAt(dtype_, at);
    if (!std::isfinite(value)) {
      ++not_finite_;
      return;
    }
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    sum_ += value;
    ++finite_;
  });
}

std::string TensorSummary::MinText() const {
  if (finite_ == 0) return kNothing;
  return IsInteger(dtype_) ? absl::StrCat(least_) : NumberText(min_);
}

std::string TensorSummary::MaxText() const {
  if (finite_ == 0) return kNothing;
  return IsInteger(dtype_) ? absl::StrCat(most_) : NumberText(max_);
}

std::string TensorSummary::MeanText() const {
  return finite_ == 0 ? kNothing : NumberText(sum_ / static_cast<double>(finite_));
}

std::string TensorSummary::NotFiniteText() const {
  const double all = static_cast<double>(finite_ + not_finite_);
  return absl::StrFormat("%.2g %%", all == 0 ? 0 : 100 * static_cast<double>(not_finite_) / all);
}

}  // namespace systole
