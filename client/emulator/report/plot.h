// One plot as inline SVG: a frame of two axes with their grid and labels, and marks on it. Marks
// carry classes, never colours: the page's style sheet paints them, for light and dark alike. A
// series is a word such as "compute"; its marks have the class `s-compute`.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/emulator/report/axis.h"

namespace systole::emulator {

// In the axes' units.
struct Point {
  double x = 0;
  double y = 0;
};

struct PlotOptions {
  std::string id;           // Of the SVG element; unique on the page.
  std::string title;        // For who cannot see it: what the plot is ..
  std::string description;  // .. and what there is to see.
  std::string x_label;
  double width = 560;  // In pixels of its own; the page scales it.
  double height = 280;
};

// The outline of a dot around the origin, about 9 px wide, as a path. `shape`: 0 disc, 1 square,
// 2 triangle, 3 diamond; further ones begin again.
const char* ShapePath(int shape);

class Plot {
 public:
  Plot(const PlotOptions& options, Axis x, Axis y);

  // Through the points, interrupted where one is not finite. A point between two such is a dot.
  void Line(absl::string_view series, absl::Span<const Point> points);
  // Between lower and upper, which have the same x. Not finite: as above.
  void Band(absl::string_view series, absl::Span<const Point> lower, absl::Span<const Point> upper);
  // From (left, bottom) to (right, top), at least a hair wide.
  void Bar(absl::string_view series, double left, double right, double bottom, double top);
  void Dot(absl::string_view series, Point at, int shape = 0);
  // A thin line, such as an epoch's end.
  void Rule(Point from, Point to);
  void Note(Point at, absl::string_view text);  // Right-aligned, above the point.
  // What to tell a pointer between two x, or near a point. Lines of text apart by \n.
  void Tip(double left, double right, absl::string_view text);
  void TipAt(Point at, absl::string_view text);

  std::string ToSvg() const;

 private:
  bool IsFinite(const Point& point) const;
  std::string AtText(const Point& point) const;  // "12.5,80"

  const PlotOptions options_;
  Axis x_, y_;
  double left_, right_, top_, bottom_;  // Of the frame, in pixels.
  std::string marks_;
  std::string tips_;  // Above all marks.
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_H_
