// Reads any bytes as a token file. An accepted file is bounded and is written back equal.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/access_token/token_table.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(token_file, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::StatusOr<TokenTable> table =
      TokenTable::Parse(absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!table.ok()) return 0;
  SYSTOLE_CHECK(table->entries().size() <= kMaxTokens);
  std::string lines;
  for (const TokenEntry& entry : table->entries()) {
    lines += TokenLine(entry);
    const bool good = entry.IsGoodAt(absl::UnixEpoch());
    const TokenEntry* found = table->Find(entry.hash, absl::UnixEpoch());
    SYSTOLE_CHECK(found == (good ? &entry : nullptr));
  }
  const absl::StatusOr<TokenTable> again = TokenTable::Parse(lines);
  SYSTOLE_CHECK(again.ok() && again->entries().size() == table->entries().size());
  std::string same;
  for (const TokenEntry& entry : again->entries()) same += TokenLine(entry);
  SYSTOLE_CHECK(same == lines);
  return 0;
}
