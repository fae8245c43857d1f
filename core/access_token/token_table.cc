#include "core/access_token/token_table.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr absl::string_view kHexDigits = "0123456789abcdef";

std::string HexOf(const TokenHash& hash) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()));
}

absl::StatusOr<TokenEntry> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 2 && words.size() != 3) {
    return absl::InvalidArgumentError("want NAME SHA-256 [YYYY-MM-DD], with single spaces between");
  }
  if (!IsTokenName(words[0])) {
    return absl::InvalidArgumentError("the name: want 1 to 128 letters, digits, '_', '-' or '.'");
  }
  TokenEntry entry = {.name = std::string(words[0])};
  if (words[1].size() != 2 * entry.hash.size() ||
      words[1].find_first_not_of(kHexDigits) != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        "the hash: want 64 lower-case hex digits, as `systole token` writes them; "
        "the file must not hold the token itself");
  }
  // Newer releases of abseil deprecate HexStringToBytes() in the form that Debian 12's release has.
  for (size_t i = 0; i < entry.hash.size(); ++i) {
    if (uint32_t byte = 0; absl::SimpleHexAtoi(words[1].substr(2 * i, 2), &byte)) {
      entry.hash[i] = static_cast<uint8_t>(byte);
    }
  }
  if (words.size() == 3) {
    SYSTOLE_ASSIGN_OR_RETURN(entry.last_day, ParseDay(words[2]));
  }
  return entry;
}

}  // namespace

TokenHash HashOfToken(absl::string_view token) {
  TokenHash hash;
  SHA256(reinterpret_cast<const uint8_t*>(token.data()), token.size(), hash.data());
  return hash;
}

bool IsTokenName(absl::string_view name) {
  return !name.empty() && name.size() <= 128 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789_.-") == absl::string_view::npos;
}

absl::StatusOr<absl::CivilDay> ParseDay(absl::string_view text) {
  absl::CivilDay day;
  // If formatting gives the same text back, the text has 4, 2 and 2 digits and its day exists.
  if (text.size() != 10 || !absl::ParseCivilTime(text, &day) ||
      absl::FormatCivilTime(day) != text) {
    return absl::InvalidArgumentError("the last day: want YYYY-MM-DD, such as 2030-01-31");
  }
  return day;
}

std::string TokenLine(const TokenEntry& entry) {
  const std::string last_day =
      entry.last_day.has_value() ? absl::StrCat(" ", absl::FormatCivilTime(*entry.last_day)) : "";
  return absl::StrCat(entry.name, " ", HexOf(entry.hash), last_day, "\n");
}

absl::StatusOr<TokenTable> TokenTable::Parse(absl::string_view text) {
  if (text.size() > kMaxTokenFileBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it has ", text.size(), " bytes; at most ", kMaxTokenFileBytes, " are read"));
  }
  TokenTable table;
  std::set<TokenHash> hashes;
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    absl::StatusOr<TokenEntry> entry = ParseLine(line);
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", entry.status().message()));
    }
    if (!hashes.insert(entry->hash).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": an earlier line has the same hash; remove one"));
    }
    if (table.entries_.size() == kMaxTokens) {
      return absl::ResourceExhaustedError(absl::StrCat("line ", number, ": at most ", kMaxTokens,
                                                       " tokens are read; remove old ones"));
    }
    table.entries_.push_back(*std::move(entry));
  }
  return table;
}

const TokenEntry* TokenTable::Find(const TokenHash& hash, absl::Time now) const {
  const TokenEntry* found = nullptr;
  for (const TokenEntry& entry : entries_) {
    if (CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) found = &entry;
  }
  return found != nullptr && found->IsGoodAt(now) ? found : nullptr;
}

}  // namespace systole
