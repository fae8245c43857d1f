// One step of a feed in the trainer's memory, in one block. StepPlacement says where the tensors
// stand in the block.
//
// Thread-compatible. A Step owns its memory, and gives the memory back to the client when the Step
// is destroyed. A Step may outlive the client.
#ifndef SYSTOLE_CLIENT_STEP_STEP_H_
#define SYSTOLE_CLIENT_STEP_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/batch/slice_layout.h"
#include "core/tensor/tensor.h"

namespace systole {

// Functions that give the memory for steps, for example pinned or shared memory. Set both functions
// or neither. Without them, steps are in plain memory on 64-byte boundaries. The client's
// and gRPC's threads call the functions, several at a time. The functions must not throw.
struct StepMemory {
  // Returns `bytes` bytes on a 64-byte boundary, or nullptr if there is not that much memory.
  // Called seldom, because buffers are reused.
  std::function<uint8_t*(int64_t bytes)> allocate;
  // Takes back what `allocate` gave. The last call comes when both the client and the last Step
  // are gone.
  std::function<void(uint8_t* memory, int64_t bytes)> free;
};

// How the tensors of a step's cores stand in the step's memory.
enum class StepPlacement {
  // A slice for each core (core/batch/slice_layout.h):
  //   [core a: tensor 0][pad][tensor 1][pad] .. [core a+1: tensor 0] ..
  kCoreMajor,
  // A block for each tensor, which holds the cores' parts without a gap:
  //   [tensor 0: core a][core a+1] .. [pad][tensor 1: core a] ..
  // Each block begins on a 64-byte boundary, but a core's part may begin anywhere. If the tensor's
  // first dimension counts the examples, a block is one tensor with the examples of all cores.
  kTensorMajor,
};

// The properties that all steps of a client share.
struct StepShape {
  SliceLayout layout;
  int core_begin = 0;  // Cores core_begin .. core_end - 1 of the cores of the spec.
  int core_end = 0;
  StepPlacement placement = StepPlacement::kCoreMajor;

  int num_cores() const { return core_end - core_begin; }
  int64_t bytes() const;
  // Where tensor `index` of `core` begins, in bytes from the start of the step's memory.
  int64_t OffsetOf(int core, int index) const;
};

// Copies `slice`, laid out as shape.layout says, to the places of the tensors of `core` in `step`.
void PutSlice(const StepShape& shape, int core, const uint8_t* slice, uint8_t* step);

// A block of memory on a 64-byte boundary. The block goes back to its owner when the last reference
// is gone.
using StepBuffer = std::shared_ptr<uint8_t>;

class Step {
 public:
  // REQUIRES: `buffer` holds shape->bytes() bytes on a 64-byte boundary.
  Step(int64_t number, std::shared_ptr<const StepShape> shape, StepBuffer buffer);
  Step(Step&&) = default;
  Step& operator=(Step&&) = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // The number of the step's global batch, counted from 0 over all epochs.
  int64_t number() const { return number_; }
  int core_begin() const { return shape_->core_begin; }
  int core_end() const { return shape_->core_end; }
  const SliceLayout& layout() const { return shape_->layout; }

  // The slice of `core`, a number among the cores of the spec: layout().slice_bytes() bytes. The
  // padding between tensors may have any content. REQUIRES: the placement is kCoreMajor, and
  // core_begin() <= core < core_end().
  const uint8_t* slice(int core) const;
  // Tensor `index` of layout().tensors(). Valid as long as this Step, as is every view below.
  TensorView Tensor(int core, int index) const;
  // The tensor called `name`. REQUIRES: there is one.
  TensorView Tensor(int core, absl::string_view name) const;

  // To use views of this step after the Step is destroyed, keep copies of both of these pointers.
  // The copies share the step's memory.
  std::shared_ptr<const StepShape> shape() const { return shape_; }
  std::shared_ptr<const uint8_t> memory() const { return buffer_; }

 private:
  int64_t number_;
  std::shared_ptr<const StepShape> shape_;
  StepBuffer buffer_;
};

// SliceDigest (core/batch/slice_layout.h) of one core's slice, whatever the placement.
std::string StepDigest(const Step& step, int core);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_STEP_H_
