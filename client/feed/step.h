// One step of a feed in the trainer's memory: a slice per core, each in one block.
//
//   [core a: tensor 0][pad][tensor 1][pad] .. [core a+1: ..] ..   (core/batch/slice_layout.h)
//
// Thread-compatible. Owns its memory and gives it back to the client when destroyed; may outlive
// the client.
#ifndef SYSTOLE_CLIENT_FEED_STEP_H_
#define SYSTOLE_CLIENT_FEED_STEP_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/strings/string_view.h"
#include "core/batch/slice_layout.h"
#include "core/tensor/tensor.h"

namespace systole {

// Where the tensors land, for callers that want them in pinned or shared memory. Both are set or
// neither (then it is plain memory on 64-byte boundaries). Called from the client's and gRPC's
// threads, several at a time; must not throw.
struct StepMemory {
  // `bytes` on a 64-byte boundary, or nullptr if there is not that much. Buffers are reused, so few
  // calls are made.
  std::function<uint8_t*(int64_t bytes)> allocate;
  // Takes back what `allocate` gave. The last call comes when both the client and the last Step
  // are gone.
  std::function<void(uint8_t* memory, int64_t bytes)> free;
};

// What every step of a client has in common.
struct StepShape {
  SliceLayout layout;
  int core_begin = 0;  // Cores core_begin .. core_end - 1, absolute numbers.
  int core_end = 0;

  int num_cores() const { return core_end - core_begin; }
  int64_t bytes() const { return layout.slice_bytes() * num_cores(); }
};

// A block of memory on a 64-byte boundary that goes back to where it came from when the last
// reference is gone.
using StepBuffer = std::shared_ptr<uint8_t>;

class Step {
 public:
  // REQUIRES: `buffer` holds shape->bytes() bytes on a 64-byte boundary.
  Step(int64_t number, std::shared_ptr<const StepShape> shape, StepBuffer buffer);
  Step(Step&&) = default;
  Step& operator=(Step&&) = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Counts global batches from 0 over all epochs.
  int64_t number() const { return number_; }
  int core_begin() const { return shape_->core_begin; }
  int core_end() const { return shape_->core_end; }
  const SliceLayout& layout() const { return shape_->layout; }

  // The slice of `core` (its absolute number): layout().slice_bytes() bytes. The padding between
  // tensors holds whatever was there. REQUIRES: core_begin() <= core < core_end().
  const uint8_t* slice(int core) const;
  // Tensor `index` of layout().tensors(). Valid as long as this Step, as is every view below.
  TensorView Tensor(int core, int index) const;
  // The tensor called `name`. REQUIRES: there is one.
  TensorView Tensor(int core, absl::string_view name) const;

  // What keeps the views of this step alive when the Step itself is gone: shares the memory.
  std::shared_ptr<const StepShape> shape() const { return shape_; }
  std::shared_ptr<const uint8_t> memory() const { return buffer_; }

 private:
  int64_t number_;
  std::shared_ptr<const StepShape> shape_;
  StepBuffer buffer_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_STEP_H_
