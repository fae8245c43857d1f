#include "client/lanes/lane_cursor.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

absl::Status Misplaced(absl::string_view field, int64_t seen, int64_t wanted,
                       const ChunkHeader& header) {
  return absl::InternalError(absl::StrCat(
      "a chunk has ", field, " ", seen, ", want ", wanted, " (step ", header.step, ", core ",
      header.core, ", tensor ", header.tensor, ", offset ", header.offset, ")"));
}

}  // namespace

LaneCursor::LaneCursor(std::shared_ptr<const StepShape> shape, int64_t first_step, int64_t end_step,
                       int64_t stride)
    : shape_(std::move(shape)),
      end_step_(end_step),
      stride_(stride),
      step_(first_step),
      core_(shape_->core_begin) {}

absl::Status LaneCursor::CheckPlace(const ChunkHeader& header) const {
  if (at_end()) {
    return absl::InternalError(absl::StrCat(
        "a chunk of step ", header.step, " came after the last step asked for, ", step_ - stride_));
  }
  if (header.step != step_) return Misplaced("step", header.step, step_, header);
  if (header.core != core_) return Misplaced("core", header.core, core_, header);
  if (header.tensor != tensor_) return Misplaced("tensor", header.tensor, tensor_, header);
  if (header.offset != offset_) return Misplaced("offset", header.offset, offset_, header);
  return absl::OkStatus();
}

absl::StatusOr<ChunkPlace> LaneCursor::Accept(const ChunkHeader& header, int64_t data_bytes) {
  SYSTOLE_RETURN_IF_ERROR(CheckPlace(header));
  const SliceLayout& layout = shape_->layout;
  const SliceTensor& tensor = layout.tensors()[static_cast<size_t>(tensor_)];
  const int64_t tensor_bytes = tensor.spec.num_bytes();
  if (data_bytes <= 0 || data_bytes > tensor_bytes - offset_) {
    return absl::InternalError(absl::StrCat(
        "a chunk of step ", step_, ", core ", core_, " holds ", data_bytes, " bytes at offset ",
        offset_, " of ", tensor.spec.DebugString(), ", want 1 to ", tensor_bytes - offset_));
  }
  ChunkPlace place = {.step = step_, .offset = shape_->OffsetOf(core_, tensor_) + offset_};
  offset_ += data_bytes;
  if (offset_ < tensor_bytes) return place;
  offset_ = 0;
  if (++tensor_ < static_cast<int>(layout.tensors().size())) return place;
  place.ends_step = NextCore();
  return place;
}

absl::StatusOr<ChunkPlace> LaneCursor::AcceptSlice(const ChunkHeader& header) {
  // A slot holds a whole slice, so it may not come after some chunks of the slice.
  SYSTOLE_RETURN_IF_ERROR(CheckPlace(header));
  if (tensor_ != 0 || offset_ != 0) {
    return absl::InternalError(absl::StrCat("a slot came at tensor ", tensor_, ", offset ", offset_,
                                            " of step ", step_, ", core ", core_,
                                            "; want it at the beginning of a slice"));
  }
  const int64_t slice_bytes = shape_->layout.slice_bytes();
  if (header.slot_bytes != slice_bytes) {
    return Misplaced("slot_bytes", header.slot_bytes, slice_bytes, header);
  }
  ChunkPlace place = {.step = step_, .offset = shape_->OffsetOf(core_, 0)};
  place.ends_step = NextCore();
  return place;
}

bool LaneCursor::NextCore() {
  tensor_ = 0;
  if (++core_ < shape_->core_end) return false;
  core_ = shape_->core_begin;
  step_ += stride_;
  return true;
}

}  // namespace systole
