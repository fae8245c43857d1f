#include "core/operations/ops/sized_crop.h"

#include <utility>

#include "core/image/resize/fast_resampler.h"
#include "core/operations/ops/plain_image.h"
#include "core/operations/ops/resize_method.h"
#include "core/status/status_macros.h"

namespace systole {

SizedCrop::SizedCrop(Rule rule, int height, int width, const ResampleOptions& options)
    : rule_(std::move(rule)), height_(height), width_(width), options_(options) {}

absl::StatusOr<ValueType> SizedCrop::TypeOf(const ValueType& input) const {
  SYSTOLE_RETURN_IF_ERROR(WantImage(input));
  return ValueType{.element = ResampledElement(options_, input.element),
                   .shape = {height_, width_, input.shape[2]}};
}

absl::StatusOr<Value> SizedCrop::Apply(Value input, const ExampleKey& example) const {
  const CropRect rect = RectOf(input, example);
  if (options_ == ResampleOptions{}) return ResizePlainly(input, rect, height_, width_);
  return ResamplePlainly(input, rect, options_, WholeImage(height_, width_), height_, width_);
}

absl::StatusOr<Value> SizedCrop::Run(Value input, const ExampleKey& example) const {
  const CropRect rect = RectOf(input, example);
  if (options_ == ResampleOptions{}) return ResizeFast(input, rect, height_, width_);
  return ResampleFast(input, rect, options_, WholeImage(height_, width_), height_, width_);
}

CropRect SizedCrop::RectOf(const Value& input, const ExampleKey& example) const {
  return rule_(static_cast<int>(input.height()), static_cast<int>(input.width()), example);
}

int64_t SizedCrop::Work(const ValueType& input, const ValueType& output) const {
  return ResampleWork(options_, input, output);
}

std::vector<OperationPart> SizedCrop::Parts() const {
  if (options_ == ResampleOptions{}) {
    return {WindowPart{.window = rule_}, ResizePart{.height = height_, .width = width_}};
  }
  return {WindowPart{.window = rule_}, ResamplePart{.options = options_,
                                                    .height = height_,
                                                    .width = width_,
                                                    .gives_rows = GivesRows(options_)}};
}

}  // namespace systole
