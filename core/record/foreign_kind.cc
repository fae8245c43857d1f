#include "core/record/foreign_kind.h"

#include <cstdint>

#include "absl/strings/match.h"

namespace systole {
namespace {

struct Kind {
  absl::string_view magic;
  const char* text;
};

constexpr Kind kKinds[] = {
    {"\x1f\x8b", "it is compressed with gzip; uncompress it with `gzip -d < FILE > NEW`"},
    {"\x28\xb5\x2f\xfd", "it is compressed with zstd; uncompress it with `zstd -d < FILE > NEW`"},
    {"\xff\xd8\xff", "it looks like a JPEG file; pack such files with `systole pack`"},
    {"\x89PNG\r\n\x1a\n",
     "it looks like a PNG file; make JPEG files of such images, and pack them with `systole pack`"},
};

// The two bytes in front of a zlib stream: deflate with a window of at most 32 KiB, and a check.
bool IsZlib(absl::string_view begin) {
  if (begin.size() < 2) return false;
  const auto method = static_cast<uint8_t>(begin[0]);
  const auto flags = static_cast<uint8_t>(begin[1]);
  return method == 0x78 && (method * 256 + flags) % 31 == 0;
}

}  // namespace

std::string ForeignKind(absl::string_view begin) {
  for (const Kind& kind : kKinds) {
    if (absl::StartsWith(begin, kind.magic)) return kind.text;
  }
  if (IsZlib(begin)) {
    return "it is compressed with zlib; write it anew without compression";
  }
  return "";
}

}  // namespace systole
