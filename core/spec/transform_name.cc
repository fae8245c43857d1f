#include "core/spec/transform_name.h"

#include "google/protobuf/descriptor.h"

namespace systole {

std::string TransformName(const v1::Transform& transform) {
  const auto* const field =
      v1::Transform::descriptor()->FindFieldByNumber(static_cast<int>(transform.kind_case()));
  return field == nullptr ? "(empty)" : field->name();
}

std::string TransformName(const v1::FeedSpec& spec, absl::string_view output, int index) {
  for (const v1::Output& of : spec.outputs()) {
    if (of.name() != output) continue;
    return index >= 0 && index < of.transforms_size() ? TransformName(of.transforms(index)) : "";
  }
  return "";
}

}  // namespace systole
