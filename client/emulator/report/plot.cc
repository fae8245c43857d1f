#include "client/emulator/report/plot.h"

#include <algorithm>

namespace systole::emulator {
namespace {

// The width in pixels of a phone's screen, 400, less the margins around a figure.
constexpr double kNarrowWidth = 352;
constexpr double kMaxNarrowHeight = 280;

PlotOptions Narrow(PlotOptions options) {
  options.id += "-narrow";
  options.width = std::min(options.width, kNarrowWidth);
  options.height = std::min(options.height, kMaxNarrowHeight);
  return options;
}

}  // namespace

Plot::Plot(const PlotOptions& options, const Axis& x, const Axis& y)
    : wide_(options, x, y), narrow_(Narrow(options), x, y) {}

void Plot::Line(absl::string_view series, absl::Span<const Point> points) {
  for (PlotSheet* sheet : {&wide_, &narrow_}) sheet->Line(series, points);
}

void Plot::Band(absl::string_view series, absl::Span<const Point> lower,
                absl::Span<const Point> upper) {
  for (PlotSheet* sheet : {&wide_, &narrow_}) sheet->Band(series, lower, upper);
}

void Plot::Bar(absl::string_view series, double left, double right, double bottom, double top) {
  for (PlotSheet* sheet : {&wide_, &narrow_}) sheet->Bar(series, left, right, bottom, top);
}

void Plot::Dot(absl::string_view series, Point at, int shape) {
  for (PlotSheet* sheet : {&wide_, &narrow_}) sheet->Dot(series, at, shape);
}

void Plot::Rule(Point from, Point to) {
  for (PlotSheet* sheet : {&wide_, &narrow_}) sheet->Rule(from, to);
}

void Plot::Note(Point at, absl::string_view text) {
  for (PlotSheet* sheet : {&wide_, &narrow_}) sheet->Note(at, text);
}

void Plot::Tip(double left, double right, absl::string_view text) {
  for (PlotSheet* sheet : {&wide_, &narrow_}) sheet->Tip(left, right, text);
}

void Plot::TipAt(Point at, absl::string_view text) {
  for (PlotSheet* sheet : {&wide_, &narrow_}) sheet->TipAt(at, text);
}

std::string Plot::ToSvg() const { return wide_.ToSvg("at-wide") + narrow_.ToSvg("at-narrow"); }

}  // namespace systole::emulator
