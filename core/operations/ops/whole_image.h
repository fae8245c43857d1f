// What the operations that decode image files share: parameters, and whole images of a size that
// the file tells.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_WHOLE_IMAGE_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_WHOLE_IMAGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/operations/ops/operation_row.h"
#include "core/operations/ops/value.h"

namespace systole {

// uint8 [any height, any width, channels].
ValueType ImageOfAnySize(int channels);

// InvalidArgument, as the end of a sentence that names a transform: for an output with a shape; for
// channels other than 1 and 3; for a number that is no dct.
absl::Status WantNoStoredShape(const OperationArguments& arguments);
absl::StatusOr<int> ChannelsOf(int channels);
absl::StatusOr<JpegDct> DctOf(v1::DecodeJpeg::Dct dct);

// Counts twice the memory of `type`, and `more` bytes: a transform reads one value and writes
// another. The size of `type` comes from the record. Cancelled: the thread was interrupted
// (core/memory/scratch_scope.h).
absl::Status NeedValues(const ValueType& type, int64_t more = 0);

// All pixels of a file. Errors of the decoder, and of CheckValueBytes() before anything is made.
absl::StatusOr<Value> DecodeWholeJpeg(absl::string_view jpeg, const JpegDecoderOptions& options);
absl::StatusOr<Value> DecodeWholePng(absl::string_view png, int channels);
// Memory that DecodeWholePng() takes beside its result, at most.
inline int64_t PngScratchBytes(int channels) { return channels == 1 ? kMaxValueBytes : 0; }

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_WHOLE_IMAGE_H_
