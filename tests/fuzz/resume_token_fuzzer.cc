// Reads any text as a resume token: as it is, and with a good checksum. An accepted token is
// written back equal.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/checksum/crc32c.h"
#include "core/order/resume_token.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

namespace {

void Check(absl::string_view text) {
  using namespace systole;
  const absl::StatusOr<ResumeToken> token = ResumeToken::Decode(text);
  if (token.ok()) SYSTOLE_CHECK(token->Encode() == text);
}

}  // namespace

SYSTOLE_FUZZER(resume_token, const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Check(text);
  Check(absl::StrCat(text, absl::Hex(systole::Crc32c(text), absl::kZeroPad8)));
  return 0;
}
