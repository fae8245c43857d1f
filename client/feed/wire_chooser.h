// Decides for one lane in which form its tensors travel (v1::Wire), from what the server says of
// each slice: how long the stream waited for the making, and how long it took to send.
//
//   waited |#####|       sent |###############|      the way limits: COMPACT
//   waited |###############|  sent |#####|           the making limits: FINISHED would do
//
// A change costs what was under way, so it takes several steps in a row, and twice as many after
// each change: a feed at the edge between the two settles. Decided by counts of steps and the
// server's numbers alone, never by a clock of its own.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_FEED_WIRE_CHOOSER_H_
#define SYSTOLE_CLIENT_FEED_WIRE_CHOOSER_H_

#include <cstdint>

#include "systole/v1/feed.pb.h"

namespace systole {

class WireChooser {
 public:
  // A decision takes so many steps at most. A stream must have more, its first not counted.
  static constexpr int64_t kMaxWantedSteps = 512;

  // Always FINISHED.
  WireChooser() = default;
  // As the spec says. `ratio`: how many times more bytes FINISHED has than COMPACT.
  WireChooser(v1::Wire wire, double ratio)
      : automatic_(wire == v1::AUTO), ratio_(ratio), compact_(wire == v1::COMPACT) {}

  // The form for the next stream.
  bool compact() const { return compact_; }

  // A stream begins: what is known of the one before does not hold for it, nor does its first step,
  // for which everything has to start up.
  void StreamBegins();

  // The first chunk of a slice says so.
  void SliceBegins(int64_t waited_us, int64_t sent_us);

  // A step is complete. `held`: meanwhile the client itself did not read, having no room, so that
  // neither this step's times nor the next one's say anything about the way. True if compact() has
  // changed.
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

#endif  // SYSTOLE_CLIENT_FEED_WIRE_CHOOSER_H_
