#include "client/feed/step_window.h"

#include <utility>

#include "core/status/check.h"

namespace systole {

StepWindow::Slot& StepWindow::SlotOf(int64_t step) {
  SYSTOLE_CHECK(Allows(step));
  return slots_[static_cast<size_t>(step % size())];
}

std::optional<StepBuffer> StepWindow::TakeNext() {
  Slot& slot = SlotOf(next_);
  if (!slot.complete) return std::nullopt;
  StepBuffer buffer = std::move(slot.buffer);
  slot = Slot();
  ++next_;
  return buffer;
}

}  // namespace systole
