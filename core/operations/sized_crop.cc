#include "core/operations/sized_crop.h"

#include <utility>

#include "core/operations/plain_image.h"
#include "core/status/status_macros.h"

namespace systole {

SizedCrop::SizedCrop(Rule rule, int height, int width)
    : rule_(std::move(rule)), height_(height), width_(width) {}

absl::StatusOr<ValueType> SizedCrop::TypeOf(const ValueType& input) const {
  SYSTOLE_RETURN_IF_ERROR(WantImage(input));
  return ValueType{.element = ElementType::kFloat32, .shape = {height_, width_, input.shape[2]}};
}

absl::StatusOr<Value> SizedCrop::Apply(Value input, const ExampleKey& example) const {
  const CropRect rect =
      rule_(static_cast<int>(input.height()), static_cast<int>(input.width()), example);
  return ResizePlainly(input, rect, height_, width_);
}

std::vector<OperationPart> SizedCrop::Parts() const {
  return {WindowPart{.window = rule_}, ResizePart{.height = height_, .width = width_}};
}

}  // namespace systole
