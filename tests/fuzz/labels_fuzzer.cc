// Reads any bytes as a labels.txt. Accepted classes are written as a text that gives them again.
#include <cstddef>
#include <cstdint>

#include "core/record/images/class_labels.h"
#include "core/status/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace systole;
  const auto classes = ParseLabels({reinterpret_cast<const char*>(data), size});
  if (!classes.ok()) return 0;
  const absl::StatusOr<std::string> text = LabelsText(*classes);
  SYSTOLE_CHECK(text.ok());
  const auto again = ParseLabels(*text);
  // A carriage return at the end of a class is taken for a part of the line's end.
  SYSTOLE_CHECK(!again.ok() || again->size() == classes->size());
  return 0;
}
