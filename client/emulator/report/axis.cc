#include "client/emulator/report/axis.h"

#include <algorithm>
#include <cmath>

#include "core/numeric/math.h"

namespace systole::emulator {
namespace {

// The largest power of ten that is at most `value`. REQUIRES: value > 0, finite.
double PowerOfTenBelow(double value) {
  double power = 1;
  while (power * 10 <= value) power *= 10;
  while (power > value) power /= 10;
  return power;
}

// The distance between ticks: 1, 2 or 5 times a power of ten. About `ticks` of these distances fill
// `span`. REQUIRES: span > 0.
double NiceStep(double span, int ticks, bool integral) {
  const double wanted = span / ticks;
  const double power = PowerOfTenBelow(wanted);
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= 0.999 * wanted) step = factor * power;
  }
  return integral ? std::max(step, 1.0) : step;
}

struct Span {
  double from, to;
};

Span Sane(double from, double to) {
  if (!std::isfinite(from) || !std::isfinite(to) || from > to) return {0, 1};
  if (from == to) return {from, from == 0 ? 1 : from + std::abs(from)};
  return {from, to};
}

}  // namespace

Axis Axis::LinearExact(double from, double to, Unit unit, int ticks, bool integral) {
  const Span span = Sane(from, to);
  Axis axis(span.from, span.to, /*log=*/false);
  const double step = NiceStep(span.to - span.from, ticks, integral);
  const double slack = 1e-6 * step;
  const double largest = std::max(std::abs(span.from), std::abs(span.to));
  // A tick is `i` times the step, because repeated addition of, say, 0.1 would drift. Adding 0
  // turns -0 into 0, which is shown without a sign.
  for (double i = std::ceil((span.from - slack) / step) + 0.0; i * step <= span.to + slack; ++i) {
    axis.ticks_.push_back({i * step, TickText(i * step, step, largest, unit)});
  }
  return axis;
}

Axis Axis::Linear(double from, double to, Unit unit, int ticks, bool integral) {
  const Span span = Sane(from, to);
  const double step = NiceStep(span.to - span.from, ticks, integral);
  return LinearExact(step * std::floor(span.from / step + 1e-9),
                     step * std::ceil(span.to / step - 1e-9), unit, ticks, integral);
}

Axis Axis::Log(double from, double to, Unit unit) {
  Span span = Sane(from, to);
  if (!(span.from > 0)) span = {1, 10};
  const double bottom = PowerOfTenBelow(span.from);
  double top = bottom;
  while (top < 0.999999 * span.to) top *= 10;
  if (top == bottom) top *= 10;
  Axis axis(bottom, top, /*log=*/true);
  for (double decade = bottom; decade <= 1.000001 * top; decade *= 10) {
    axis.ticks_.push_back({decade, TickText(decade, decade, decade, unit)});
    for (int i = 2; i < 10 && decade < 0.5 * top; ++i) axis.ticks_.push_back({i * decade, ""});
  }
  return axis;
}

double Axis::At(double value) const {
  const double inside = std::clamp(value, from_, to_);
  const auto log = [](double x) {
    return static_cast<double>(systole::Log(static_cast<float>(x)));
  };
  const double share = log_ ? (log(inside) - log(from_)) / (log(to_) - log(from_))
                            : (inside - from_) / (to_ - from_);
  return begin_ + share * (end_ - begin_);
}

}  // namespace systole::emulator
