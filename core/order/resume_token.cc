#include "core/order/resume_token.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/checksum/crc32c.h"
#include "core/order/mixture.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr absl::string_view kName = "systole2";
// The first field in the tokens of older releases. Such a token counts steps, but does not say how
// many examples a step had, so it is refused.
constexpr absl::string_view kOlderName = "systole1";
// Far above what Encode() can write. Limits the work if the text is not a token.
constexpr size_t kMaxTextBytes = 2000;
constexpr size_t kFields = 7;

std::string Hex(uint64_t value) { return absl::StrCat(absl::Hex(value, absl::kZeroPad16)); }

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '+' || c == '-' ||
         c == '_';
}

std::string Escape(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (IsPlain(c)) {
      escaped.push_back(c);
    } else {
      absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return escaped;
}

// False if a '%' is not followed by two hex digits. Other mistakes need no check here, because
// Decode() encodes the token again and compares the texts.
bool Unescape(absl::string_view escaped, std::string* text) {
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '%') {
      text->push_back(escaped[i]);
      continue;
    }
    uint32_t byte = 0;
    if (i + 2 >= escaped.size() || !absl::SimpleHexAtoi(escaped.substr(i + 1, 2), &byte)) {
      return false;
    }
    text->push_back(static_cast<char>(byte));
    i += 2;
  }
  return true;
}

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("resume token ", what));
}

absl::Status ReadNumber(absl::string_view name, absl::string_view text, int64_t& number) {
  if (absl::SimpleAtoi(text, &number) && number >= 0) return absl::OkStatus();
  return Bad(absl::StrCat("has ", name, " \"", absl::CHexEscape(text), "\", want 0 to 2^63 - 1"));
}

// The token's field for the order's fingerprint.
std::string OrderText(const ResumeToken& token) {
  std::string text = Hex(token.order_fingerprint);
  for (const uint16_t change : token.weight_changes) {
    absl::StrAppend(&text, "+", absl::Hex(change, absl::kZeroPad4));
  }
  return text;
}

// Reads the field that OrderText() writes. False if `text` is not hex numbers with '+' between
// them, or has too many or too large ones. Decode() finds all other mistakes, as it does after
// Unescape().
bool ReadOrder(absl::string_view text, ResumeToken& token) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '+');
  if (!absl::SimpleHexAtoi(parts[0], &token.order_fingerprint)) return false;
  if (parts.size() - 1 > kMaxWeightChanges) return false;
  for (size_t i = 1; i < parts.size(); ++i) {
    uint32_t change = 0;
    if (!absl::SimpleHexAtoi(parts[i], &change) || change > 0xffff) return false;
    token.weight_changes.push_back(static_cast<uint16_t>(change));
  }
  return true;
}

}  // namespace

std::string ResumeToken::Encode() const {
  SYSTOLE_CHECK(position.epoch >= 0 && position.examples >= 0);
  SYSTOLE_CHECK(content_version.size() <= kMaxContentVersionBytes);
  SYSTOLE_CHECK(weight_changes.size() <= kMaxWeightChanges);
  std::string text =
      absl::StrCat(kName, ":", Hex(dataset_fingerprint), ":", OrderText(*this), ":", position.epoch,
                   ":", position.examples, ":", Escape(content_version), ":");
  absl::StrAppend(&text, absl::Hex(Crc32c(text), absl::kZeroPad8));
  return text;
}

absl::StatusOr<ResumeToken> ResumeToken::Decode(absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return Bad(absl::StrCat("has ", text.size(), " bytes, want at most ", kMaxTextBytes));
  }
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ':');
  if (fields[0] == kOlderName) {
    return Bad(absl::StrCat("is of an older release: its format is \"", kOlderName,
                            "\", this release reads \"", kName,
                            "\"; resume with the release that made it, or start the feed anew"));
  }
  if (fields[0] != kName) {
    if (absl::StartsWith(fields[0], "systole")) {
      return Bad(absl::StrCat("has format \"", absl::CHexEscape(fields[0]),
                              "\", this release reads \"", kName, "\""));
    }
    return Bad(absl::StrCat("begins with \"", absl::CHexEscape(text.substr(0, 20)), "\", want \"",
                            kName, ":\""));
  }
  if (fields.size() != kFields) {
    return Bad(absl::StrCat("has ", fields.size(), " fields separated by ':', want ", kFields,
                            ": was it cut short?"));
  }
  uint32_t stored = 0;
  const uint32_t actual = Crc32c(text.substr(0, text.size() - fields[6].size()));
  if (fields[6].size() != 8 || !absl::SimpleHexAtoi(fields[6], &stored) || stored != actual) {
    return Bad(absl::StrCat("ends with checksum \"", absl::CHexEscape(fields[6]),
                            "\", its text has ", absl::Hex(actual, absl::kZeroPad8),
                            ": a character is wrong or missing"));
  }
  // The checksum matches. So an error from here on means that Encode() did not write the token.
  ResumeToken token;
  if (!absl::SimpleHexAtoi(fields[1], &token.dataset_fingerprint) || !ReadOrder(fields[2], token)) {
    return Bad("has a fingerprint that is not 16 hex digits, or a wrong hash after it");
  }
  SYSTOLE_RETURN_IF_ERROR(ReadNumber("epoch", fields[3], token.position.epoch));
  SYSTOLE_RETURN_IF_ERROR(ReadNumber("examples", fields[4], token.position.examples));
  if (!Unescape(fields[5], &token.content_version) ||
      token.content_version.size() > kMaxContentVersionBytes) {
    return Bad("has a content version that is not text of at most 200 bytes, %-escaped");
  }
  // SimpleAtoi and SimpleHexAtoi allow blanks, signs, "0x" and additional zeros, so many texts give
  // this token. Only one of them is allowed.
  if (token.Encode() != text) return Bad("is not in the form that Encode() writes");
  return token;
}

}  // namespace systole
