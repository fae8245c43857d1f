// Zstandard files (RFC 8878). The restart points are the starts of frames.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_COMPRESSION_ZSTD_H_
#define SYSTOLE_CORE_COMPRESSION_ZSTD_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/restart_points.h"
#include "core/storage/byte_source.h"

namespace systole {

// Decompresses all of `file` and offers the ends of its frames to `scan`.
//   DataLoss   a frame is damaged or cut short. The message says at which byte of the file.
//   Otherwise errors of `file` and of `scan`.
absl::Status ScanZstd(const ByteSource& file, RestartScan& scan);

// Decompresses the frames in `compressed` into `out`. Returns the number of bytes. If a frame is
// damaged or cut short, its bytes do not count, and the number is less than out.size().
//   ResourceExhausted  no memory.
absl::StatusOr<size_t> DecompressZstd(absl::string_view compressed, absl::Span<char> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_ZSTD_H_
