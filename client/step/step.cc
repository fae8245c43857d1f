#include "client/step/step.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/memory/aligned_buffer.h"
#include "core/status/check.h"

namespace systole {

int64_t StepShape::bytes() const {
  if (placement == StepPlacement::kCoreMajor) return layout.slice_bytes() * num_cores();
  int64_t bytes = 0;
  for (const SliceTensor& tensor : layout.tensors()) {
    bytes += AlignUp(tensor.spec.num_bytes() * num_cores());
  }
  return bytes;
}

int64_t StepShape::OffsetOf(int core, int index) const {
  SYSTOLE_CHECK(core >= core_begin && core < core_end);
  const absl::Span<const SliceTensor> tensors = layout.tensors();
  const SliceTensor& tensor = tensors[static_cast<size_t>(index)];
  if (placement == StepPlacement::kCoreMajor) {
    return layout.slice_bytes() * (core - core_begin) + tensor.offset;
  }
  int64_t block = 0;
  for (int before = 0; before < index; ++before) {
    block += AlignUp(tensors[static_cast<size_t>(before)].spec.num_bytes() * num_cores());
  }
  return block + tensor.spec.num_bytes() * (core - core_begin);
}

void PutSlice(const StepShape& shape, int core, const uint8_t* slice, uint8_t* step) {
  if (shape.placement == StepPlacement::kCoreMajor) {
    std::memcpy(step + shape.OffsetOf(core, 0), slice,
                static_cast<size_t>(shape.layout.slice_bytes()));
    return;
  }
  int index = 0;
  for (const SliceTensor& tensor : shape.layout.tensors()) {
    std::memcpy(step + shape.OffsetOf(core, index++), slice + tensor.offset,
                static_cast<size_t>(tensor.spec.num_bytes()));
  }
}

Step::Step(int64_t number, std::shared_ptr<const StepShape> shape, StepBuffer buffer)
    : number_(number), shape_(std::move(shape)), buffer_(std::move(buffer)) {}

const uint8_t* Step::slice(int core) const {
  SYSTOLE_CHECK(shape_->placement == StepPlacement::kCoreMajor);
  return buffer_.get() + shape_->OffsetOf(core, 0);
}

TensorView Step::Tensor(int core, int index) const {
  const TensorSpec& spec = layout().tensors()[static_cast<size_t>(index)].spec;
  return {.dtype = spec.dtype,
          .shape = spec.shape,
          .data = buffer_.get() + shape_->OffsetOf(core, index)};
}

TensorView Step::Tensor(int core, absl::string_view name) const {
  const int index = layout().IndexOf(name);
  SYSTOLE_CHECK(index >= 0);
  return Tensor(core, index);
}

std::string StepDigest(const Step& step, int core) {
  const SliceLayout& layout = step.layout();
  if (step.shape()->placement == StepPlacement::kCoreMajor) {
    return SliceDigest(layout, step.slice(core));
  }
  std::vector<uint8_t> slice(static_cast<size_t>(layout.slice_bytes()));
  int index = 0;
  for (const SliceTensor& tensor : layout.tensors()) {
    const absl::Span<const uint8_t> bytes = step.Tensor(core, index++).bytes();
    std::memcpy(slice.data() + tensor.offset, bytes.data(), bytes.size());
  }
  return SliceDigest(layout, slice.data());
}

}  // namespace systole
