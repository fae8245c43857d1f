// Compresses what is appended and passes it to another sink. Zstandard is written in small frames,
// so that a read at any offset decompresses only one frame. Gzip and zlib are written as one
// stream, as their readers expect.
//
// Thread-compatible. Owns the other sink.
#ifndef SYSTOLE_CORE_COMPRESSION_COMPRESSING_SINK_H_
#define SYSTOLE_CORE_COMPRESSION_COMPRESSING_SINK_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "core/compression/compression.h"
#include "core/storage/byte_sink.h"

namespace systole {

// Uncompressed bytes of a frame; the last frame may have fewer. Larger frames compress a little
// better.
inline constexpr size_t kZstdFrameBytes = 64 << 10;

// Returns `sink` itself if compression is kNone. ResourceExhausted if there is no memory. REQUIRES:
// compression is not kDetect.
absl::StatusOr<std::unique_ptr<ByteSink>> CompressingSink(std::unique_ptr<ByteSink> sink,
                                                          Compression compression);

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_COMPRESSING_SINK_H_
