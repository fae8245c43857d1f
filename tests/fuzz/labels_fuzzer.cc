// Reads any bytes as a labels.txt. Accepted classes are written as a text, and reading this text
// gives the same classes.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/record/images/class_labels.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(labels, const uint8_t* data, size_t size) {
  using namespace systole;
  const auto classes = ParseLabels({reinterpret_cast<const char*>(data), size});
  if (!classes.ok()) return 0;
  const absl::StatusOr<std::string> text = LabelsText(*classes);
  if (!text.ok()) {
    // LabelsText() refuses only a class with a carriage return at its end. A reader would take that
    // carriage return for a part of the line's end.
    SYSTOLE_CHECK(std::any_of(classes->begin(), classes->end(),
                              [](absl::string_view name) { return absl::EndsWith(name, "\r"); }));
    return 0;
  }
  const auto again = ParseLabels(*text);
  SYSTOLE_CHECK(again.ok());
  SYSTOLE_CHECK(*again == *classes);
  return 0;
}
