#include "core/credentials/ini_file.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

bool IsComment(absl::string_view trimmed) { return trimmed[0] == '#' || trimmed[0] == ';'; }

// `value` without the comment after it.
absl::string_view WithoutComment(absl::string_view value) {
  if (value.empty() || IsComment(value)) return "";
  for (size_t i = 1; i < value.size(); ++i) {
    if ((value[i] == '#' || value[i] == ';') && absl::ascii_isblank(value[i - 1])) {
      return absl::StripTrailingAsciiWhitespace(value.substr(0, i));
    }
  }
  return value;
}

}  // namespace

absl::StatusOr<IniFile> ParseIni(absl::string_view text, absl::string_view source) {
  if (text.size() > kMaxIniBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(ForeignText(source), " has ", text.size(),
                                                     " bytes, want at most ", kMaxIniBytes));
  }
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");  // Editors of Windows mark UTF-8 with these bytes.
  IniFile file;
  IniSection* section = nullptr;
  size_t key_indent = std::string::npos;  // The indent of the last key; npos: no key yet.
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const auto damaged = [&](absl::string_view why) {
      return absl::DataLossError(absl::StrCat(ForeignText(source), ":", number, ": ", why));
    };
    const absl::string_view trimmed = absl::StripAsciiWhitespace(line);
    if (trimmed.empty() || IsComment(trimmed)) continue;
    const size_t indent = static_cast<size_t>(trimmed.data() - line.data());
    if (key_indent != std::string::npos && indent > key_indent) continue;
    if (trimmed[0] == '[') {
      const size_t end = trimmed.find(']');
      const absl::string_view rest =
          end == absl::string_view::npos
              ? trimmed
              : absl::StripLeadingAsciiWhitespace(trimmed.substr(end + 1));
      if (!rest.empty() && !IsComment(rest)) {
        return damaged("a section must be [NAME], alone on its line");
      }
      section = &file[std::string(absl::StripAsciiWhitespace(trimmed.substr(1, end - 1)))];
      key_indent = std::string::npos;
      continue;
    }
    const size_t sign = trimmed.find_first_of("=:");
    if (sign == absl::string_view::npos || sign == 0) {
      return damaged("a line must be KEY = VALUE, [SECTION] or # COMMENT");
    }
    if (section == nullptr) return damaged("a value stands before the first [SECTION]");
    key_indent = indent;
    (*section)[absl::AsciiStrToLower(absl::StripAsciiWhitespace(trimmed.substr(0, sign)))] =
        std::string(WithoutComment(absl::StripAsciiWhitespace(trimmed.substr(sign + 1))));
  }
  return file;
}

}  // namespace systole
