// The tokens that a server knows. For each token the table has a name, the SHA-256 of the token's
// text, and perhaps the last day on which the token is good. The table does not have the text
// itself.
//
//   file := line*
//   line := NAME ' ' 64 lower-case hex digits [' ' YYYY-MM-DD] '\n' | '#' comment '\n' | '\n'
//
// A name may have several tokens. So a token can be replaced while the old token still works.
//
// Thread-compatible; immutable once made.
#ifndef SYSTOLE_CORE_ACCESS_TOKEN_TOKEN_TABLE_H_
#define SYSTOLE_CORE_ACCESS_TOKEN_TOKEN_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace systole {

using TokenHash = std::array<uint8_t, 32>;

// The SHA-256 of `token`.
TokenHash HashOfToken(absl::string_view token);

struct TokenEntry {
  std::string name;  // 1 to 128 letters, digits, '_', '-' or '.'.
  TokenHash hash = {};
  // The last day, in UTC, on which the token is good. nullopt: the token does not expire.
  std::optional<absl::CivilDay> last_day;

  bool IsGoodAt(absl::Time now) const {
    return !last_day.has_value() || absl::ToCivilDay(now, absl::UTCTimeZone()) <= *last_day;
  }
};

// Limited, because the token of every call is compared with every entry.
inline constexpr size_t kMaxTokens = 4096;
// Enough for kMaxTokens lines and for comments.
inline constexpr size_t kMaxTokenFileBytes = size_t{1} << 20;

bool IsTokenName(absl::string_view name);

// The day that `text` names as YYYY-MM-DD; InvalidArgument if `text` is anything else.
absl::StatusOr<absl::CivilDay> ParseDay(absl::string_view text);

// The entry's line in the file, with the newline.
std::string TokenLine(const TokenEntry& entry);

class TokenTable {
 public:
  // No tokens.
  TokenTable() = default;

  //   InvalidArgument    a line is malformed, or a hash occurs twice. The message names the
  //                      line's number. It never quotes the line, because the line may hold a token
  //                      that was put into the file in error.
  //   ResourceExhausted  more than kMaxTokens tokens or kMaxTokenFileBytes bytes.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // The entry of this hash; null if there is none, or if its token is not good at `now`. Compares
  // `hash` with every entry in constant time, so the time of a call reveals nothing about the
  // hashes. The pointer is valid as long as the table.
  const TokenEntry* Find(const TokenHash& hash, absl::Time now) const;

  const std::vector<TokenEntry>& entries() const { return entries_; }

 private:
  std::vector<TokenEntry> entries_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ACCESS_TOKEN_TOKEN_TABLE_H_
