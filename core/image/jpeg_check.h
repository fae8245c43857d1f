// Whether our entropy decoder fits into the libjpeg that is mapped, which need not be the one that
// this program was compiled for.
//
// Thread-safe: the answer does not change.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_CHECK_H_
#define SYSTOLE_CORE_IMAGE_JPEG_CHECK_H_

#include "absl/status/status.h"

namespace systole {

// OK if this process decodes the entropy-coded part of JPEGs itself. Otherwise why it leaves that
// to libjpeg: FailedPrecondition, the same pixels at about half the speed. Found out by the first
// call or the first JpegDecoder, within some milliseconds, by CheckJpegEntropyDecoding().
const absl::Status& OwnJpegEntropyDecoding();

// Decodes built-in images of every sampling, whole and in part, by our entropy decoder and by
// libjpeg alone. FailedPrecondition if it could not be put in libjpeg's place, or pixels differ.
absl::Status CheckJpegEntropyDecoding();

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_CHECK_H_
