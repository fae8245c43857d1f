// Holds at most W complete steps of a client. It is a ring, in which step t has the place t mod W.
//
//          next                     next + W
//   taken  | there | missing | ..   |  not read yet
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LANES_STEP_WINDOW_H_
#define SYSTOLE_CLIENT_LANES_STEP_WINDOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "client/step/step.h"

namespace systole {

class StepWindow {
 public:
  // REQUIRES: first_step >= 0, slots > 0.
  StepWindow(int64_t first_step, int64_t slots)
      : next_(first_step), slots_(static_cast<size_t>(slots)) {}

  // The first step not taken yet.
  int64_t next_step() const { return next_; }
  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  // Whether there is a place for `step` now. Steps already taken have no place.
  bool Allows(int64_t step) const { return step >= next_ && step - next_ < size(); }

  // Keeps a complete step. REQUIRES: Allows(step), `buffer` is not null, `step` is not there yet.
  void Put(int64_t step, StepBuffer buffer);

  // Whether the next step is there.
  bool HasNext() const { return slots_[static_cast<size_t>(next_ % size())] != nullptr; }
  // The memory of the next step, if it is there. Taking it makes room for another step.
  std::optional<StepBuffer> TakeNext();

  // How many complete steps wait here.
  int64_t complete_steps() const { return complete_; }
  // How many complete steps can be taken one after the other, from next_step() on. Looks at each of
  // these steps.
  int64_t CountReady() const;

 private:
  StepBuffer& SlotOf(int64_t step) { return slots_[static_cast<size_t>(step % size())]; }

  int64_t next_;
  int64_t complete_ = 0;
  std::vector<StepBuffer> slots_;  // Null: the step is not there.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_STEP_WINDOW_H_
