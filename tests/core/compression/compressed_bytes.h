// Compressed bytes for tests, made by the libraries themselves.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_COMPRESSION_COMPRESSED_BYTES_H_
#define SYSTOLE_TESTS_CORE_COMPRESSION_COMPRESSED_BYTES_H_

#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "core/status/check.h"

namespace systole {

// The window bits of zlib's deflateInit2() select the format.
inline constexpr int kGzipStream = MAX_WBITS + 16;
inline constexpr int kZlibStream = MAX_WBITS;

inline std::string Deflate(absl::string_view bytes, int window_bits, int level = 6) {
  z_stream stream = {};
  SYSTOLE_CHECK(deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) ==
                Z_OK);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  SYSTOLE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Makes one frame, or one for each `frame_bytes` bytes.
inline std::string Zstd(absl::string_view bytes, size_t frame_bytes = SIZE_MAX) {
  std::string out;
  do {
    const absl::string_view frame = bytes.substr(0, frame_bytes);
    std::string compressed(ZSTD_compressBound(frame.size()), '\0');
    const size_t size =
        ZSTD_compress(compressed.data(), compressed.size(), frame.data(), frame.size(), 3);
    SYSTOLE_CHECK(ZSTD_isError(size) == 0);
    out.append(compressed, 0, size);
    bytes.remove_prefix(frame.size());
  } while (!bytes.empty());
  return out;
}

// Makes one frame with a checksum of its content.
inline std::string ZstdWithChecksum(absl::string_view bytes) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  SYSTOLE_CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)) == 0);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size());
  SYSTOLE_CHECK(ZSTD_isError(size) == 0);
  ZSTD_freeCCtx(context);
  out.resize(size);
  return out;
}

// Makes bytes that compress in part: runs of one byte, repeated pieces, and noise. The same seed
// gives the same bytes.
inline std::string MixedBytes(size_t size, uint64_t seed) {
  std::string bytes;
  uint64_t state = seed * 2 + 1;
  while (bytes.size() < size) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t draw = state >> 33;
    if (draw % 3 == 0) {
      bytes.append(draw % 300, static_cast<char>(draw >> 8));
    } else if (draw % 3 == 1 && bytes.size() > 40'000) {
      bytes.append(bytes.substr(bytes.size() - 1 - (draw >> 9) % 32'000, 3 + draw % 200));
    } else {
      for (int i = 0; i < 40; ++i) bytes.push_back(static_cast<char>((draw * (2 * i + 1)) >> 7));
    }
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_COMPRESSION_COMPRESSED_BYTES_H_
