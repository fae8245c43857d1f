#include "client/emulator/report/roofline_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "client/emulator/report/html_table.h"
#include "client/emulator/report/plot.h"

namespace systole::emulator {
namespace {

// What a layer can be bound by: its words, colour and shape.
struct Bound {
  const char* name;
  const char* label;
  const char* series;
};
constexpr Bound kBounds[] = {{"mxu", "Bound by the matrix units", "mxu"},
                             {"hbm", "Bound by memory", "hbm"},
                             {"vpu", "Bound by the vector unit", "vpu"}};
constexpr int kOther = 3;

int BoundOf(const LayerPoint& layer) {
  for (int i = 0; i < kOther; ++i) {
    if (layer.bound_by == kBounds[i].name) return i;
  }
  return kOther;
}
const char* SeriesOf(int bound) { return bound == kOther ? "other" : kBounds[bound].series; }
const char* LabelOf(int bound) { return bound == kOther ? "Bound by else" : kBounds[bound].label; }

bool HasPlace(const LayerPoint& layer) {
  const double x = layer.flops_per_byte(), y = layer.flops_per_second();
  return std::isfinite(x) && std::isfinite(y) && x > 0 && y > 0;
}

HtmlTable LayerTable(const Roofline& roofline) {
  HtmlTable table(
      "Layers", {"Layer", "FLOP", "Bytes", "Intensity", "Time", "Reached", "Of peak", "Bound by"});
  for (size_t i = 0; i < roofline.layers.size(); ++i) {
    const LayerPoint& layer = roofline.layers[i];
    const std::string key = absl::StrCat("roofline.layers.", i, ".");
    table.AddRow(
        {EscapeHtml(layer.name), NumberHtml(key + "flops", layer.flops, Unit::kFlops),
         NumberHtml(key + "bytes", layer.bytes, Unit::kBytes),
         NumberHtml(key + "flops_per_byte", layer.flops_per_byte(), Unit::kFlopsPerByte),
         NumberHtml(key + "seconds", layer.seconds, Unit::kSeconds),
         NumberHtml(key + "flops_per_second", layer.flops_per_second(), Unit::kFlopsPerSecond),
         NumberText(layer.flops_per_second() / roofline.peak_flops_per_second, Unit::kFraction),
         EscapeHtml(layer.bound_by)});
  }
  return table;
}

}  // namespace

std::vector<Figure> RooflineFigures(const RunReport& report) {
  if (!report.roofline.has_value() || report.roofline->layers.empty()) return {};
  const Roofline& roofline = *report.roofline;
  const double peak = roofline.peak_flops_per_second;
  const double ridge = peak / roofline.bytes_per_second;  // FLOP/B above which memory keeps up.
  double from = ridge, to = ridge, lowest = peak;
  size_t placed = 0;
  bool seen[kOther + 1] = {};
  for (const LayerPoint& layer : roofline.layers) {
    if (!HasPlace(layer)) continue;
    ++placed;
    seen[BoundOf(layer)] = true;
    from = std::min(from, layer.flops_per_byte());
    to = std::max(to, layer.flops_per_byte());
    lowest = std::min(lowest, layer.flops_per_second());
  }
  const Axis x = Axis::Log(from, 1.05 * to, Unit::kFlopsPerByte);
  // The roof's foot at the left edge is part of the picture.
  const Axis y = Axis::Log(std::min(lowest, x.from() * roofline.bytes_per_second), 1.3 * peak,
                           Unit::kFlopsPerSecond);
  Plot plot({.id = "plot-roofline",
             .title = "Roofline of the layers",
             .description = absl::StrCat(
                 placed, " layers under a roof of ", NumberText(peak, Unit::kFlopsPerSecond),
                 " and ", NumberText(roofline.bytes_per_second, Unit::kBytesPerSecond),
                 ", which meet at ", NumberText(ridge, Unit::kFlopsPerByte), "."),
             .x_label = "Arithmetic intensity: FLOP computed for each byte of memory traffic",
             .width = kWidePx,
             .height = 400},
            x, y);
  plot.Line("roof",
            {{x.from(), x.from() * roofline.bytes_per_second}, {ridge, peak}, {x.to(), peak}});
  plot.Rule({ridge, y.from()}, {ridge, peak});
  plot.Note({x.to(), peak}, absl::StrCat("peak ", NumberText(peak, Unit::kFlopsPerSecond)));
  for (const LayerPoint& layer : roofline.layers) {
    if (!HasPlace(layer)) continue;
    const Point at = {layer.flops_per_byte(), layer.flops_per_second()};
    const int bound = BoundOf(layer);
    plot.Dot(SeriesOf(bound), at, bound);
    plot.TipAt(
        at, absl::StrCat(layer.name, "\n", NumberText(at.y, Unit::kFlopsPerSecond), ", ",
                         NumberText(at.y / peak, Unit::kFraction), " of peak\n",
                         NumberText(at.x, Unit::kFlopsPerByte), "\n",
                         NumberText(layer.seconds, Unit::kSeconds), ", bound by ", layer.bound_by));
  }
  const HtmlTable table = LayerTable(roofline);
  Figure figure = {
      .title = "Roofline of the layers",
      .remark = absl::StrCat("One core: ", NumberText(peak, Unit::kFlopsPerSecond), " and ",
                             NumberText(roofline.bytes_per_second, Unit::kBytesPerSecond),
                             " meet at ", NumberText(ridge, Unit::kFlopsPerByte), "."),
      .legend = {{"roof", "Roof"}},
      .svg = plot.ToSvg(),
      .table = table.ToHtml(),
      .table_is_long = table.is_long(),
      .wide = true};
  for (int bound = 0; bound <= kOther; ++bound) {
    if (seen[bound]) figure.legend.push_back({SeriesOf(bound), LabelOf(bound), bound});
  }
  if (placed < roofline.layers.size()) {
    absl::StrAppend(&figure.remark, " In the table only, for they compute or move nothing: ",
                    roofline.layers.size() - placed, " of ", roofline.layers.size(), " layers.");
  }
  return {figure};
}

}  // namespace systole::emulator
