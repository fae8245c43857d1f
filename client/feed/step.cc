#include "client/feed/step.h"

#include <utility>

#include "core/status/check.h"

namespace systole {

Step::Step(int64_t number, std::shared_ptr<const StepShape> shape, StepBuffer buffer)
    : number_(number), shape_(std::move(shape)), buffer_(std::move(buffer)) {}

const uint8_t* Step::slice(int core) const {
  SYSTOLE_CHECK(core >= core_begin() && core < core_end());
  return buffer_.get() + layout().slice_bytes() * (core - core_begin());
}

TensorView Step::Tensor(int core, int index) const { return layout().View(index, slice(core)); }

TensorView Step::Tensor(int core, absl::string_view name) const {
  const int index = layout().IndexOf(name);
  SYSTOLE_CHECK(index >= 0);
  return Tensor(core, index);
}

}  // namespace systole
