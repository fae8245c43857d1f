// The one place where the next chunk of a stream may go. The protocol fixes the order of chunks:
// steps, cores, tensors and offsets ascend without a gap. A chunk that is not the next one is
// refused before any of its bytes is written.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LANES_LANE_CURSOR_H_
#define SYSTOLE_CLIENT_LANES_LANE_CURSOR_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "client/step/step.h"
#include "proto/framing/chunk.h"

namespace systole {

// The place of a chunk's data.
struct ChunkPlace {
  int64_t step = 0;
  // From the start of the step's memory, in bytes.
  int64_t offset = 0;
  // Whether this chunk completes the step.
  bool ends_step = false;
};

class LaneCursor {
 public:
  // Begins at the first byte of `first_step`. The stream must hold the steps first_step,
  // first_step + stride, .. below `end_step`. REQUIRES: stride > 0.
  LaneCursor(std::shared_ptr<const StepShape> shape, int64_t first_step, int64_t end_step,
             int64_t stride);

  // Replaces the shape of the steps. REQUIRES: no chunk was accepted yet.
  void Reshape(std::shared_ptr<const StepShape> shape) { shape_ = std::move(shape); }

  // The step of the next chunk.
  int64_t step() const { return step_; }
  // Whether no further chunk is expected.
  bool at_end() const { return step_ >= end_step_; }

  // Moves over a chunk of `data_bytes` bytes.
  //   Internal  the chunk does not belong here; names the field, its value and the value wanted.
  absl::StatusOr<ChunkPlace> Accept(const ChunkHeader& header, int64_t data_bytes);
  // Moves over a whole slice, which comes in a slot of shared memory (header.slot is not 0).
  // Returns the place of the slice's first tensor. Errors of Accept().
  absl::StatusOr<ChunkPlace> AcceptSlice(const ChunkHeader& header);

 private:
  absl::Status CheckPlace(const ChunkHeader& header) const;
  // Moves to the next core. Returns whether that ends the step.
  bool NextCore();

  std::shared_ptr<const StepShape> shape_;
  const int64_t end_step_;
  const int64_t stride_;
  int64_t step_;
  int core_;
  int tensor_ = 0;
  int64_t offset_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_LANE_CURSOR_H_
