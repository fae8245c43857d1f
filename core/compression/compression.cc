#include "core/compression/compression.h"

#include <cstdint>

#include "absl/strings/match.h"

namespace systole {
namespace {

constexpr absl::string_view kNames[] = {"detect", "none", "gzip", "zlib", "zstd"};

// A zlib header names deflate with a window of 32 KiB. The header's two bytes, read as one number,
// are a multiple of 31.
bool IsZlib(absl::string_view begin) {
  if (begin.size() < 2) return false;
  const auto method = static_cast<uint8_t>(begin[0]);
  const auto flags = static_cast<uint8_t>(begin[1]);
  return method == 0x78 && (method * 256 + flags) % 31 == 0;
}

}  // namespace

Compression CompressionOf(absl::string_view begin) {
  if (absl::StartsWith(begin, "\x1f\x8b\x08")) return Compression::kGzip;
  if (absl::StartsWith(begin, "\x28\xb5\x2f\xfd")) return Compression::kZstd;
  return IsZlib(begin) ? Compression::kZlib : Compression::kNone;
}

absl::string_view CompressionName(Compression compression) {
  return kNames[static_cast<size_t>(compression)];
}

std::optional<Compression> CompressionNamed(absl::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (absl::EqualsIgnoreCase(name, kNames[i])) return static_cast<Compression>(i);
  }
  return std::nullopt;
}

absl::Span<const absl::string_view> CompressionNames() { return kNames; }

}  // namespace systole
