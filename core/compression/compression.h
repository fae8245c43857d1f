// How a shard's bytes are compressed: as TensorFlow's compression_type, and Zstandard.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_COMPRESSION_COMPRESSION_H_
#define SYSTOLE_CORE_COMPRESSION_COMPRESSION_H_

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

enum class Compression {
  kDetect,  // By what the file begins with.
  kNone,
  kGzip,  // RFC 1952, any number of members.
  kZlib,  // RFC 1950, one stream.
  kZstd,  // RFC 8878, any number of frames.
};

// How much of a file's beginning CompressionOf() looks at.
inline constexpr size_t kCompressionMagicBytes = 4;

// What a file that begins with `begin` is compressed with, by its first bytes; kNone if they are
// none of the three's. A plain file can begin so too: look for what it should hold first.
Compression CompressionOf(absl::string_view begin);

// "detect", "none", "gzip", "zlib", "zstd".
absl::string_view CompressionName(Compression compression);
// In any case of letters; nullopt for any other name.
std::optional<Compression> CompressionNamed(absl::string_view name);
// For messages and help texts: all of the names.
absl::Span<const absl::string_view> CompressionNames();

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_COMPRESSION_H_
