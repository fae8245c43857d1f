// Code that the operations for decoding image files share: checks of their parameters, and the
// decoding of whole images.
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

// The message of each error is the end of a sentence that begins with a transform's name.
//   InvalidArgument  the spec gives the output a shape.
absl::Status WantNoStoredShape(const OperationArguments& arguments);
//   InvalidArgument  `channels` is neither 1 nor 3.
absl::StatusOr<int> ChannelsOf(int channels);
//   InvalidArgument  `dct` is not a Dct.
absl::StatusOr<JpegDct> DctOf(v1::DecodeJpeg::Dct dct);

// Asks for memory whose size depends on the record (core/memory/scratch_scope.h): `more` bytes and
// twice the size of `type`, because a transform reads one value and writes another.
//   Cancelled  the thread was interrupted.
absl::Status NeedValues(const ValueType& type, int64_t more = 0);

// Decodes all pixels of a file. Errors: those of the decoder, and of CheckValueBytes() before
// memory is allocated.
absl::StatusOr<Value> DecodeWholeJpeg(absl::string_view jpeg, const JpegDecoderOptions& options);
absl::StatusOr<Value> DecodeWholePng(absl::string_view png, int channels);
// The most memory that DecodeWholePng() takes beside its result.
inline int64_t PngScratchBytes(int channels) { return channels == 1 ? kMaxValueBytes : 0; }

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_WHOLE_IMAGE_H_
