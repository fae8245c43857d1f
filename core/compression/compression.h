// How a shard's bytes are compressed: with a compression_type of TensorFlow, or with Zstandard.
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
  kDetect,  // Any of the others: the file's first bytes show which.
  kNone,
  kGzip,  // RFC 1952, any number of members.
  kZlib,  // RFC 1950, one stream.
  kZstd,  // RFC 8878, any number of frames.
};

// CompressionOf() looks at this many bytes of a file's beginning.
inline constexpr size_t kCompressionMagicBytes = 4;

// The compression of a file that begins with `begin`. kNone if no compressed file begins like this.
// A plain file can begin like a compressed one. So check first whether the file begins like a plain
// file of the expected kind.
Compression CompressionOf(absl::string_view begin);

// "detect", "none", "gzip", "zlib", "zstd".
absl::string_view CompressionName(Compression compression);
// The compression of this name, in upper or lower case; nullopt for any other name.
std::optional<Compression> CompressionNamed(absl::string_view name);
// All of the names, for messages and help texts.
absl::Span<const absl::string_view> CompressionNames();

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_COMPRESSION_H_
