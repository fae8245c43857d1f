// Checks that our entropy decoder works with the libjpeg that this process has loaded. The loaded
// libjpeg may differ from the one that the program was compiled for.
//
// Thread-safe: the answer does not change.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_ENTROPY_CHECK_H_
#define SYSTOLE_CORE_IMAGE_JPEG_ENTROPY_CHECK_H_

#include "absl/status/status.h"

namespace systole {

// OK if this process decodes the entropy-coded part of JPEGs by our decoder. Otherwise
// FailedPrecondition with the reason. In that case libjpeg decodes that part: the pixels are the
// same, at about half the speed. The first call, or the first JpegDecoder, runs
// CheckJpegEntropyDecoding(), which takes some milliseconds.
const absl::Status& OwnJpegEntropyDecoding();

// Decodes built-in images of every sampling, whole and in part, by our entropy decoder and by
// libjpeg alone. FailedPrecondition if our decoder cannot replace libjpeg's, or if pixels differ.
absl::Status CheckJpegEntropyDecoding();

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_ENTROPY_CHECK_H_
