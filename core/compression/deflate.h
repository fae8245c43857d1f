// Gzip and zlib streams (RFC 1950 to 1952): finds their restart points (restart_points.h), and
// decompresses from a restart point on.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_COMPRESSION_DEFLATE_H_
#define SYSTOLE_CORE_COMPRESSION_DEFLATE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/compression.h"
#include "core/compression/restart_points.h"
#include "core/storage/byte_source.h"

namespace systole {

// Decompresses all of `file` and offers the ends of its blocks to `scan`. Gzip members may follow
// each other. No bytes may follow a zlib stream.
//   DataLoss   the file does not begin like a stream of `compression`, or the stream is damaged or
//              cut short. If the stream is damaged or cut short, the message names a byte of the
//              file near the damage.
//   Otherwise errors of `file` and of `scan`.
// REQUIRES: compression is kGzip or kZlib.
absl::Status ScanDeflate(const ByteSource& file, Compression compression, RestartScan& scan);

// Fills `out` with the bytes decompressed from `point` on. Returns how many bytes were
// decompressed: fewer than out.size() if the stream ends or is damaged. Returns errors of `file`.
// REQUIRES: `window` has kWindowBytes bytes, or `point` is the beginning of the file and `window`
// is empty.
absl::StatusOr<size_t> InflateAt(const ByteSource& file, Compression compression,
                                 const RestartPoint& point, absl::string_view window,
                                 absl::Span<char> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_DEFLATE_H_
