#include "client/lanes/step_window.h"

#include <utility>

#include "core/status/check.h"

namespace systole {

void StepWindow::Put(int64_t step, StepBuffer buffer) {
  SYSTOLE_CHECK(Allows(step) && buffer != nullptr && SlotOf(step) == nullptr);
  SlotOf(step) = std::move(buffer);
}

std::optional<StepBuffer> StepWindow::TakeNext() {
  if (!HasNext()) return std::nullopt;
  StepBuffer buffer = std::exchange(SlotOf(next_), nullptr);
  ++next_;
  return buffer;
}

}  // namespace systole
