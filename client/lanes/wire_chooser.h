// Decides for one lane in which form its tensors travel (v1::Wire). The server tells two times for
// each slice: how long the stream waited for it, and how long sending it took.
//
//   waited |#####|       sent |###############|      the network limits: COMPACT
//   waited |###############|  sent |#####|           the server limits: FINISHED would do
//
// A change drops what is on the way. So it takes several steps in a row, and twice as many after
// each change: a feed at the edge between the two forms settles. Only counts of steps and the
// server's numbers decide. The chooser has no clock.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_LANES_WIRE_CHOOSER_H_
#define SYSTOLE_CLIENT_LANES_WIRE_CHOOSER_H_

#include <cstdint>

#include "systole/v1/feed.pb.h"

namespace systole {

class WireChooser {
 public:
  // A decision takes at most this many steps. A stream must be longer: its first does not count.
  static constexpr int64_t kMaxWantedSteps = 512;

  // Always FINISHED.
  WireChooser() = default;
  // As the spec says. `ratio`: how many times more bytes FINISHED has than COMPACT.
  WireChooser(v1::Wire wire, double ratio)
      : automatic_(wire == v1::AUTO), ratio_(ratio), compact_(wire == v1::COMPACT) {}

  // The form for the next stream.
  bool compact() const { return compact_; }

  // A stream begins. What is known of the one before does not hold for it. Its first step does not
  // count either, because everything has to start up for it.
  void StreamBegins();

  // The two times in the first chunk of a slice, in microseconds.
  void SliceBegins(int64_t waited_us, int64_t sent_us);

  // A step is complete. `held`: the client itself stopped reading during the step, because it had
  // no room. Then the times of this step and of the next one say nothing about the network. Returns
  // true if compact() has changed.
  bool StepEnds(bool held);

 private:
  void Forget();

  bool automatic_ = false;
  double ratio_ = 1;
  bool compact_ = false;
  int64_t wanted_steps_ = 8;
  // Since the last change or interruption.
  int64_t steps_ = 0;
  double waited_us_ = 0;
  double sent_us_ = 0;
  bool unknown_ = true;  // The times of the step under way are not counted.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_WIRE_CHOOSER_H_
