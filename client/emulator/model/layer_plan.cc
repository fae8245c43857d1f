#include "client/emulator/model/layer_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace systole::emulator {

std::string Shape::DebugString() const {
  return absl::StrCat("[", height, ",", width, ",", channels, "]");
}

bool LayerPlan::needs_input_gradient() const {
  return std::any_of(inputs.begin(), inputs.end(), [](int64_t input) { return input >= 0; });
}

}  // namespace systole::emulator
