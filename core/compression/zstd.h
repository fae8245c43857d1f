// Zstandard files (RFC 8878). Their restart points (restart_points.h) are the starts of frames.
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

// Decompresses the frames in `compressed` into `out`. Returns the number of bytes. Stops at the
// first frame that is damaged or cut short. The bytes of this frame do not count, so the number is
// less than out.size().
//   ResourceExhausted  no memory.
absl::StatusOr<size_t> DecompressZstd(absl::string_view compressed, absl::Span<char> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_ZSTD_H_
