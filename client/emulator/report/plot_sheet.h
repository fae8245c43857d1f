// A plot in one size, as inline SVG. Marks have CSS classes, never colours. The page's style sheet
// gives each class a colour for the light page and one for the dark page. A series is a word such
// as "compute", and its marks have the class `s-compute`. A Plot draws on two PlotSheets. plot.h
// says what each call draws.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_SHEET_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_SHEET_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/emulator/report/axis.h"

namespace systole::emulator {

// A point, in the units of the axes.
struct Point {
  double x = 0;
  double y = 0;
};

struct PlotOptions {
  std::string id;           // The SVG element's id; unique on the page.
  std::string title;        // For screen readers: what the plot is.
  std::string description;  // For screen readers: what the plot shows.
  std::string x_label;
  double width = 560;  // In the SVG's own pixels. The page scales the SVG.
  double height = 280;
};

// The outline of a dot around the origin, about 9 px wide, as a path. `shape` is 0 for
// a disc, 1 for a square, 2 for a triangle and 3 for a diamond. Larger numbers repeat these shapes.
const char* ShapePath(int shape);

class PlotSheet {
 public:
  PlotSheet(const PlotOptions& options, Axis x, Axis y);

  void Line(absl::string_view series, absl::Span<const Point> points);
  void Band(absl::string_view series, absl::Span<const Point> lower, absl::Span<const Point> upper);
  void Bar(absl::string_view series, double left, double right, double bottom, double top);
  void Dot(absl::string_view series, Point at, int shape = 0);
  void Rule(Point from, Point to);
  void Note(Point at, absl::string_view text);
  void Tip(double left, double right, absl::string_view text);
  void TipAt(Point at, absl::string_view text);

  std::string ToSvg(absl::string_view css_class) const;

 private:
  bool IsFinite(const Point& point) const;
  std::string AtText(const Point& point) const;  // "12.5,80"
  // The x axis shows only every n-th label. Returns n: the first of 1, 2, 5, 10, 20 with which the
  // labels do not overlap, or the number of labels if 20 is too small.
  size_t LabelsApart() const;

  const PlotOptions options_;
  Axis x_, y_;
  double left_, right_, top_, bottom_;  // The frame, in pixels.
  std::string marks_;
  std::string tips_;  // Drawn above all marks.
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_PLOT_SHEET_H_
