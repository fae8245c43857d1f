// A chunk: one message that a stream has received. It carries a piece of a tensor, or names a slice
// (one core's part of a step) in memory that the server shares. PutInto() copies the chunk's data
// into the step.
//
// Thread-compatible. Borrows the constructor's arguments.
#ifndef SYSTOLE_CLIENT_LANES_ARRIVED_CHUNK_H_
#define SYSTOLE_CLIENT_LANES_ARRIVED_CHUNK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/lanes/lane_cursor.h"
#include "client/lanes/step_finisher.h"
#include "client/servers/server_link.h"
#include "client/servers/slot_reader.h"
#include "client/step/step.h"
#include "proto/framing/chunk.h"

namespace systole {

class ArrivedChunk {
 public:
  // For `slots` see ChunkListener::OnChunk().
  ArrivedChunk(const absl::StatusOr<ReceivedChunk>& chunk, SlotReader* slots);

  // OK if the message is a chunk and its header arrived undamaged. All functions below REQUIRE that
  // intact() is OK.
  const absl::Status& intact() const { return intact_; }
  const ChunkHeader& header() const { return chunk_->header(); }
  // Whether the chunk names a slice in shared memory.
  bool in_slot() const { return in_slot_; }
  // Whether the chunk is the first of its slice.
  bool begins_slice() const { return header().tensor == 0 && header().offset == 0; }

  // Moves `cursor` past the chunk, and returns the chunk's place in the step. Errors of
  // LaneCursor::Accept().
  absl::StatusOr<ChunkPlace> Accept(LaneCursor& cursor) const;
  // Bytes of tensors in the chunk, for a step of `shape`. Padding between tensors does not count.
  int64_t payload_bytes(const StepShape& shape) const;
  // Why the data came with the message and not in shared memory, and the server's address. Empty if
  // the server is on another machine. Only the first chunk of a slice carries the server's reason.
  std::string WhyNotShared(const ServerLink& link) const;
  // Copies the chunk's data into `step`, the memory of a step of `shape`. If the stream's tensors
  // come in their compact form (v1::CompactForm), `finisher` finishes the data, and completes the
  // step after the step's last chunk. Otherwise `finisher` is null. Errors of SlotReader::CopyOut()
  // and of ReceivedChunk::CopyTo().
  absl::Status PutInto(uint8_t* step, const ChunkPlace& place, const StepShape& shape,
                       const StepFinisher* finisher) const;

 private:
  const absl::StatusOr<ReceivedChunk>& chunk_;
  SlotReader* const slots_;
  const absl::Status intact_;
  const bool in_slot_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_ARRIVED_CHUNK_H_
