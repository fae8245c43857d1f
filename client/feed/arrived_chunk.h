// A message of a stream on its way into a step: a piece of a tensor, which comes with the message,
// or a whole slice, which lies in memory that the server shares.
//
// Thread-compatible. Borrows what it is made of.
#ifndef SYSTOLE_CLIENT_FEED_ARRIVED_CHUNK_H_
#define SYSTOLE_CLIENT_FEED_ARRIVED_CHUNK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/feed/lane_cursor.h"
#include "client/feed/server_link.h"
#include "client/feed/slot_reader.h"
#include "client/feed/step.h"
#include "client/feed/step_finisher.h"
#include "proto/framing/chunk.h"

namespace systole {

class ArrivedChunk {
 public:
  // `slots` as for ChunkListener::OnChunk().
  ArrivedChunk(const absl::StatusOr<ReceivedChunk>& chunk, SlotReader* slots);

  // Whether it is a chunk, and its header what the server wrote. REQUIRED by all below.
  const absl::Status& intact() const { return intact_; }
  const ChunkHeader& header() const { return chunk_->header(); }
  // Whether it stands for a slice in shared memory.
  bool in_slot() const { return in_slot_; }

  // Moves `cursor` over it; see LaneCursor.
  absl::StatusOr<ChunkPlace> Accept(LaneCursor& cursor) const;
  // Bytes of tensors that it brings to a step of `shape`, padding between tensors not counted.
  int64_t payload_bytes(const StepShape& shape) const;
  // Why it came with the message though its server is on this machine, with the server's address;
  // empty if the server is elsewhere. A server gives its reason with the first chunk of a slice.
  std::string WhyNotShared(const ServerLink& link) const;
  // Puts what it brings into `step`, a step of `shape`. `finisher` is that of a stream that travels
  // compactly, else null; it also completes the step. Errors of SlotReader::CopyOut() and of
  // ReceivedChunk::CopyTo().
  absl::Status PutInto(uint8_t* step, const ChunkPlace& place, const StepShape& shape,
                       const StepFinisher* finisher) const;

 private:
  const absl::StatusOr<ReceivedChunk>& chunk_;
  SlotReader* const slots_;
  const absl::Status intact_;
  const bool in_slot_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_ARRIVED_CHUNK_H_
