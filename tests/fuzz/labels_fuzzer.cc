// Reads any bytes as a labels.txt. Accepted classes are written as a text that gives them again.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/record/images/class_labels.h"
#include "core/status/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace systole;
  const auto classes = ParseLabels({reinterpret_cast<const char*>(data), size});
  if (!classes.ok()) return 0;
  const absl::StatusOr<std::string> text = LabelsText(*classes);
  SYSTOLE_CHECK(text.ok());
  const auto again = ParseLabels(*text);
  // A carriage return at the end of a class is taken for a part of the line's end. So another class
  // may be empty, or equal to one above.
  if (!again.ok()) return 0;
  SYSTOLE_CHECK(again->size() == classes->size());
  for (size_t i = 0; i < classes->size(); ++i) {
    absl::string_view name = (*classes)[i];
    absl::ConsumeSuffix(&name, "\r");
    SYSTOLE_CHECK((*again)[i] == name);
  }
  return 0;
}
