#include "client/lanes/arrived_chunk.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "proto/slots/not_shared.h"

namespace systole {

ArrivedChunk::ArrivedChunk(const absl::StatusOr<ReceivedChunk>& chunk, SlotReader* slots)
    : chunk_(chunk),
      slots_(slots),
      intact_(chunk.ok() ? chunk->CheckHeader() : chunk.status()),
      in_slot_(slots != nullptr && intact_.ok() && chunk->header().slot != 0) {}

absl::StatusOr<ChunkPlace> ArrivedChunk::Accept(LaneCursor& cursor) const {
  return in_slot_ ? cursor.AcceptSlice(header()) : cursor.Accept(header(), chunk_->data_bytes());
}

int64_t ArrivedChunk::payload_bytes(const StepShape& shape) const {
  return in_slot_ ? shape.layout.payload_bytes() : chunk_->data_bytes();
}

std::string ArrivedChunk::WhyNotShared(const ServerLink& link) const {
  if (!link.is_same_host()) return "";
  return absl::StrCat(slots_ == nullptr ? link.not_shared() : NotSharedText(header().not_shared),
                      " [server ", link.address(), "]");
}

absl::Status ArrivedChunk::PutInto(uint8_t* step, const ChunkPlace& place, const StepShape& shape,
                                   const StepFinisher* finisher) const {
  if (in_slot_) {
    return slots_->CopyOut(header().slot, shape.layout.slice_bytes(), [&](const uint8_t* slice) {
      PutSlice(shape, header().core, slice, step);
    });
  }
  const absl::Status put =
      finisher != nullptr ? finisher->Place(*chunk_, step)
                          : chunk_->CopyTo(absl::MakeSpan(
                                step + place.offset, static_cast<size_t>(chunk_->data_bytes())));
  if (finisher != nullptr && put.ok() && place.ends_step) finisher->Complete(step);
  return put;
}

}  // namespace systole
