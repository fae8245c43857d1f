// One axis of a plot. It has the values that it spans, their places on the page, and its ticks.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_AXIS_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_AXIS_H_

#include <string>
#include <vector>

#include "client/emulator/report/unit.h"

namespace systole::emulator {

struct Tick {
  double value = 0;
  std::string label;  // Empty: the tick is only a grid line.
};

class Axis {
 public:
  // Spans [from, to], widened so that it begins and ends at a tick. There are about `ticks` ticks.
  // Their distance is 1, 2 or 5 times a power of ten and, if `integral`, at least 1. If `from` or
  // `to` is not finite, the axis spans [0, 1].
  static Axis Linear(double from, double to, Unit unit, int ticks = 5, bool integral = false);
  // Like Linear(), but not widened: the outermost ticks may be inside the span.
  static Axis LinearExact(double from, double to, Unit unit, int ticks = 5, bool integral = false);
  // Spans whole decades around [from, to], with ticks at powers of ten. A range that is not above 0
  // becomes [1, 10].
  static Axis Log(double from, double to, Unit unit);

  // Places the axis's smallest value at pixel `begin`, and its largest value at pixel `end`.
  void Place(double begin, double end) {
    begin_ = begin;
    end_ = end;
  }
  // Where `value` lies, in pixels. A value outside the span lies at the nearer end.
  double At(double value) const;

  double from() const { return from_; }
  double to() const { return to_; }
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  Axis(double from, double to, bool log) : from_(from), to_(to), log_(log) {}

  double from_, to_;
  bool log_;
  double begin_ = 0, end_ = 1;
  std::vector<Tick> ticks_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_AXIS_H_
