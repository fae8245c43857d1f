// Takes a PNG file apart into chunks.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_IMAGE_PNG_PNG_CHUNK_H_
#define SYSTOLE_CORE_IMAGE_PNG_PNG_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace systole {

// A PNG file begins with a signature of this many bytes. The first chunk follows it.
inline constexpr size_t kPngSignatureBytes = 8;

// The number in the four bytes at `at`, most significant first. REQUIRES: the bytes are there.
uint32_t BigEndian(absl::string_view bytes, size_t at);

// A chunk. The members are views of the file.
struct PngChunkView {
  // Whether the stored checksum is right. Cost: O(size).
  bool IsIntact() const;

  absl::string_view type;  // Four letters.
  absl::string_view data;
  absl::string_view rest;  // The bytes after the chunk in the file.
};

// The chunk that `file` begins with, or nullopt if it is cut short.
std::optional<PngChunkView> FirstPngChunk(absl::string_view file);

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_PNG_PNG_CHUNK_H_
