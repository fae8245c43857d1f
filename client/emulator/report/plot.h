// One plot as inline SVG: a frame of two axes with their grid and labels, and marks on it. The plot
// is drawn twice, for a wide screen and for a phone, because a wide plot that is scaled down would
// be too small to read. The style sheet shows the plot that fits.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/emulator/report/axis.h"
#include "client/emulator/report/plot_sheet.h"

namespace systole::emulator {

class Plot {
 public:
  // The id of the narrow plot is `options.id` + "-narrow".
  Plot(const PlotOptions& options, const Axis& x, const Axis& y);

  // A line through the points, with gaps at points that are not finite. A point without a finite
  // neighbour is drawn as a dot.
  void Line(absl::string_view series, absl::Span<const Point> points);
  // A band between `lower` and `upper`, which have the same x. It has gaps at points that are not
  // finite.
  void Band(absl::string_view series, absl::Span<const Point> lower, absl::Span<const Point> upper);
  // A bar from (left, bottom) to (right, top), never too narrow to see.
  void Bar(absl::string_view series, double left, double right, double bottom, double top);
  void Dot(absl::string_view series, Point at, int shape = 0);
  // A thin line, such as an epoch's end.
  void Rule(Point from, Point to);
  void Note(Point at, absl::string_view text);  // Right-aligned, above the point.
  // A tooltip for a range of x. TipAt() makes a tooltip near a point. \n separates the lines of
  // `text`.
  void Tip(double left, double right, absl::string_view text);
  void TipAt(Point at, absl::string_view text);

  // Both plots, wide and narrow.
  std::string ToSvg() const;

 private:
  PlotSheet wide_, narrow_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_H_
