// Remembers which steps of a feed have arrived, beginning with the step that the trainer takes
// next. The client has places for window() steps, from next() on.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_ARRIVED_STEPS_H_
#define SYSTOLE_CLIENT_SCHEDULE_ARRIVED_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "core/status/check.h"

namespace systole {

class ArrivedSteps {
 public:
  ArrivedSteps() = default;
  ArrivedSteps(int64_t first_step, int64_t window) : next_(first_step), window_(window) {}

  // The step that the trainer takes next.
  int64_t next() const { return next_; }
  int64_t window() const { return window_; }
  // Whether the step has a place, or had a place before the trainer took it.
  bool InWindow(int64_t step) const { return step < next_ + window_; }
  // Whether the step has arrived.
  bool Has(int64_t step) const {
    return step < next_ || (step - next_ < static_cast<int64_t>(arrived_.size()) &&
                            arrived_[static_cast<size_t>(step - next_)]);
  }
  int64_t FirstMissing() const {
    int64_t step = next_;
    while (Has(step)) ++step;
    return step;
  }

  // Notes that the step has arrived. REQUIRES: InWindow(step), not Has(step).
  void Add(int64_t step) {
    SYSTOLE_CHECK(InWindow(step) && !Has(step));
    const size_t place = static_cast<size_t>(step - next_);
    if (place >= arrived_.size()) arrived_.resize(place + 1);
    arrived_[place] = true;
  }
  // Notes that the trainer takes the step next(). REQUIRES: Has(next()).
  void Take() {
    SYSTOLE_CHECK(Has(next_));
    ++next_;
    arrived_.pop_front();
  }

 private:
  int64_t next_ = 0;
  int64_t window_ = 0;
  std::deque<bool> arrived_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_ARRIVED_STEPS_H_
