#include "client/lanes/step_window.h"

#include <utility>

#include "core/status/check.h"

namespace systole {

void StepWindow::Put(int64_t step, StepBuffer buffer) {
  SYSTOLE_CHECK(Allows(step) && buffer != nullptr && SlotOf(step) == nullptr);
  SlotOf(step) = std::move(buffer);
  ++complete_;
}

std::optional<StepBuffer> StepWindow::TakeNext() {
  if (!HasNext()) return std::nullopt;
  StepBuffer buffer = std::exchange(SlotOf(next_), nullptr);
  ++next_;
  --complete_;
  return buffer;
}

int64_t StepWindow::CountReady() const {
  int64_t ready = 0;
  while (ready < complete_ && slots_[static_cast<size_t>((next_ + ready) % size())] != nullptr) {
    ++ready;
  }
  return ready;
}

}  // namespace systole
