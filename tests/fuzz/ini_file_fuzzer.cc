// Reads any bytes as a configuration file of AWS's tools. In an accepted file, keys are in lower
// case and values have no white space around them. The file stays the same when it is written and
// read again. A refusal names the line and does not show its text.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/ini_file.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(ini_file, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<IniFile> file = ParseIni(text, "file");
  if (!file.ok()) {
    SYSTOLE_CHECK(absl::StartsWith(file.status().message(), "file:"));
    SYSTOLE_CHECK(file.status().message().size() < 100);
    return 0;
  }
  std::string again;
  for (const auto& [title, section] : *file) {
    absl::StrAppend(&again, "[", title, "]\n");
    for (const auto& [key, value] : section) {
      SYSTOLE_CHECK(!key.empty() && key == absl::AsciiStrToLower(key));
      SYSTOLE_CHECK(value == absl::StripAsciiWhitespace(value) &&
                    value.find('\n') == std::string::npos);
      absl::StrAppend(&again, key, "=", value, "\n");
    }
  }
  const absl::StatusOr<IniFile> same = ParseIni(again, "again");
  SYSTOLE_CHECK(again.size() > kMaxIniBytes || (same.ok() && *same == *file));
  return 0;
}
