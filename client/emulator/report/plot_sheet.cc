#include "client/emulator/report/plot_sheet.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/text/markup_text.h"

namespace systole::emulator {
namespace {

// A position in pixels, rounded to a tenth, because a smaller difference cannot be seen.
std::string Px(double value) {
  std::string text = absl::StrFormat("%.1f", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// The approximate width of the widest label.
double LabelWidthPx(const std::vector<Tick>& ticks) {
  size_t longest = 0;
  for (const Tick& tick : ticks) longest = std::max(longest, tick.label.size());
  return 7.2 * static_cast<double>(longest);
}

}  // namespace

const char* ShapePath(int shape) {
  switch (shape % 4) {
    case 1:
      return "M-4-4H4V4H-4Z";
    case 2:
      return "M0-5.2L5.2 4H-5.2Z";
    case 3:
      return "M0-5.8L5.8 0L0 5.8L-5.8 0Z";
    default:
      return "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z";
  }
}

PlotSheet::PlotSheet(const PlotOptions& options, Axis x, Axis y)
    : options_(options),
      x_(std::move(x)),
      y_(std::move(y)),
      left_(20 + LabelWidthPx(y_.ticks())),
      right_(options.width - std::max(16.0, LabelWidthPx(x_.ticks()) / 2)),
      top_(14),
      bottom_(options.height - 46) {
  x_.Place(left_, right_);
  y_.Place(bottom_, top_);
}

bool PlotSheet::IsFinite(const Point& point) const {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

std::string PlotSheet::AtText(const Point& point) const {
  return absl::StrCat(Px(x_.At(point.x)), ",", Px(y_.At(point.y)));
}

void PlotSheet::Line(absl::string_view series, absl::Span<const Point> points) {
  std::string path;
  for (size_t i = 0; i < points.size(); ++i) {
    if (!IsFinite(points[i])) continue;
    const bool begins = i == 0 || !IsFinite(points[i - 1]);
    const bool ends = i + 1 == points.size() || !IsFinite(points[i + 1]);
    if (begins && ends) {
      Dot(series, points[i]);
    } else {
      absl::StrAppend(&path, begins ? "M" : "L", AtText(points[i]));
    }
  }
  if (path.empty()) return;
  absl::StrAppend(&marks_, "<path class=\"line s-", series, "\" d=\"", path, "\"/>\n");
}

void PlotSheet::Band(absl::string_view series, absl::Span<const Point> lower,
                     absl::Span<const Point> upper) {
  std::string path;
  for (size_t begin = 0; begin < lower.size();) {
    size_t end = begin;
    while (end < lower.size() && IsFinite(lower[end]) && IsFinite(upper[end])) ++end;
    for (size_t i = begin; i < end; ++i) {
      absl::StrAppend(&path, i == begin ? "M" : "L", AtText(upper[i]));
    }
    for (size_t i = end; i-- > begin;) absl::StrAppend(&path, "L", AtText(lower[i]));
    if (end > begin) path += "Z";
    begin = end + 1;
  }
  if (path.empty()) return;
  absl::StrAppend(&marks_, "<path class=\"band s-", series, "\" d=\"", path, "\"/>\n");
}

void PlotSheet::Bar(absl::string_view series, double left, double right, double bottom,
                    double top) {
  const double x = x_.At(left), y = y_.At(top);
  const double width = std::max(x_.At(right) - x, 0.5), height = y_.At(bottom) - y;
  if (!(height > 0)) return;
  absl::StrAppend(&marks_, "<rect class=\"bar s-", series, "\" x=\"", Px(x), "\" y=\"",
                  absl::StrFormat("%.2f", y), "\" width=\"", absl::StrFormat("%.2f", width),
                  "\" height=\"", absl::StrFormat("%.2f", height), "\"/>\n");
}

void PlotSheet::Dot(absl::string_view series, Point at, int shape) {
  if (!IsFinite(at)) return;
  absl::StrAppend(&marks_, "<path class=\"dot s-", series, "\" transform=\"translate(", AtText(at),
                  ")\" d=\"", ShapePath(shape), "\"/>\n");
}

void PlotSheet::Rule(Point from, Point to) {
  absl::StrAppend(&marks_, "<path class=\"rule\" d=\"M", AtText(from), "L", AtText(to), "\"/>\n");
}

void PlotSheet::Note(Point at, absl::string_view text) {
  absl::StrAppend(&marks_, "<text class=\"note\" x=\"", Px(x_.At(at.x)), "\" y=\"",
                  Px(y_.At(at.y) - 6), "\">", EscapeMarkup(text), "</text>\n");
}

void PlotSheet::Tip(double left, double right, absl::string_view text) {
  const double x = x_.At(left);
  absl::StrAppend(&tips_, "<rect class=\"tip-at\" x=\"", Px(x), "\" y=\"", Px(top_), "\" width=\"",
                  absl::StrFormat("%.2f", std::max(x_.At(right) - x, 0.5)), "\" height=\"",
                  Px(bottom_ - top_), "\" data-tip=\"", EscapeMarkup(text), "\"/>\n");
}

void PlotSheet::TipAt(Point at, absl::string_view text) {
  if (!IsFinite(at)) return;
  absl::StrAppend(&tips_, "<circle class=\"tip-at\" cx=\"", Px(x_.At(at.x)), "\" cy=\"",
                  Px(y_.At(at.y)), "\" r=\"9\" data-tip=\"", EscapeMarkup(text), "\"/>\n");
}

size_t PlotSheet::LabelsApart() const {
  double first = 0, last = 0;
  size_t labels = 0;
  for (const Tick& tick : x_.ticks()) {
    if (tick.label.empty()) continue;
    last = x_.At(tick.value);
    if (labels++ == 0) first = last;
  }
  if (labels < 2) return 1;
  const double each = (last - first) / static_cast<double>(labels - 1);
  const double wanted = (LabelWidthPx(x_.ticks()) + 8) / each;
  for (const size_t apart : {1, 2, 5, 10, 20}) {
    if (static_cast<double>(apart) >= wanted) return apart;
  }
  return labels;
}

std::string PlotSheet::ToSvg(absl::string_view css_class) const {
  const std::string& id = options_.id;
  std::string svg = absl::StrCat(
      "<svg class=\"", css_class, "\" id=\"", id, "\" viewBox=\"0 0 ", Px(options_.width), " ",
      Px(options_.height), "\" role=\"img\" aria-labelledby=\"", id, "-title ", id,
      "-desc\">\n<title id=\"", id, "-title\">", EscapeMarkup(options_.title),
      "</title><desc id=\"", id, "-desc\">", EscapeMarkup(options_.description), "</desc>\n");
  for (const Tick& tick : y_.ticks()) {
    const std::string y = Px(y_.At(tick.value));
    absl::StrAppend(&svg, "<path class=\"", tick.label.empty() ? "grid-line minor" : "grid-line",
                    "\" d=\"M", Px(left_), ",", y, "H", Px(right_), "\"/>");
    if (tick.label.empty()) continue;
    absl::StrAppend(&svg, "<text class=\"y-tick\" x=\"", Px(left_ - 8), "\" y=\"", y,
                    "\" dy=\".32em\">", EscapeMarkup(tick.label), "</text>\n");
  }
  const size_t labels_apart = LabelsApart();
  size_t labels = 0;
  for (const Tick& tick : x_.ticks()) {
    const std::string x = Px(x_.At(tick.value));
    absl::StrAppend(&svg, "<path class=\"", tick.label.empty() ? "grid-line minor" : "tick",
                    "\" d=\"M", x, ",", Px(tick.label.empty() ? top_ : bottom_), "V",
                    Px(tick.label.empty() ? bottom_ : bottom_ + 5), "\"/>");
    if (tick.label.empty() || labels++ % labels_apart != 0) continue;
    absl::StrAppend(&svg, "<text class=\"x-tick\" x=\"", x, "\" y=\"", Px(bottom_ + 18), "\">",
                    EscapeMarkup(tick.label), "</text>\n");
  }
  absl::StrAppend(&svg, "<text class=\"x-label\" x=\"", Px((left_ + right_) / 2), "\" y=\"",
                  Px(options_.height - 8), "\">", EscapeMarkup(options_.x_label), "</text>\n",
                  marks_, "<path class=\"axis\" d=\"M", Px(left_), ",", Px(bottom_), "H",
                  Px(right_), "\"/>\n", tips_, "</svg>\n");
  return svg;
}

}  // namespace systole::emulator
