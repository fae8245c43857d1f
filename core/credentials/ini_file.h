// Reads the text of AWS's configuration files: sections of "key = value".
//   [default]
//   region = eu-west-1
//   s3 =
//     max_concurrent_requests = 10      # Belongs to `s3`, and is skipped.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_INI_FILE_H_
#define SYSTOLE_CORE_CREDENTIALS_INI_FILE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

// The most bytes of a configuration file. Files that people write have a few KiB.
inline constexpr size_t kMaxIniBytes = size_t{1} << 20;

// Keys, in lower case, and their values. Blanks around keys and values are removed.
using IniSection = std::map<std::string, std::string>;
// The sections, by the text between their brackets, for instance "profile a".
using IniFile = std::map<std::string, IniSection>;

// Parses `text`. A second section with the same name continues the first one. The last value of a
// key counts. Lines that begin with '#' or ';' are comments. In a value, a '#' or ';' after a blank
// begins a comment. A line that is indented deeper than the key above it belongs to that key and is
// skipped.
//   DataLoss           "SOURCE:LINE: .." for any other line. The message never shows the line,
//                      because the line may hold a secret.
//   ResourceExhausted  more than kMaxIniBytes.
absl::StatusOr<IniFile> ParseIni(absl::string_view text, absl::string_view source);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_INI_FILE_H_
