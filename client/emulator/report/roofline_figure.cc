#include "client/emulator/report/roofline_figure.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/emulator/report/html_table.h"
#include "client/emulator/report/plot.h"
#include "core/text/markup_text.h"

namespace systole::emulator {
namespace {

// The labels of the bounds in the legend. BoundName() selects the colour of a bound's dots, and the
// value of the enum selects their shape.
constexpr struct {
  Bound bound;
  const char* label;
} kBounds[] = {{Bound::kMatrix, "Bound by the matrix units"},
               {Bound::kMemory, "Bound by memory"},
               {Bound::kVector, "Bound by the vector unit"}};

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
        {EscapeMarkup(layer.name), NumberHtml(key + "flops", layer.flops, Unit::kFlops),
         NumberHtml(key + "bytes", layer.bytes, Unit::kBytes),
         NumberHtml(key + "flops_per_byte", layer.flops_per_byte(), Unit::kFlopsPerByte),
         NumberHtml(key + "seconds", layer.seconds, Unit::kSeconds),
         NumberHtml(key + "flops_per_second", layer.flops_per_second(), Unit::kFlopsPerSecond),
         NumberText(layer.flops_per_second() / roofline.peak_flops_per_second, Unit::kFraction),
         std::string(BoundName(layer.bound))});
  }
  return table;
}

}  // namespace

std::vector<Figure> RooflineFigures(const RunReport& report) {
  if (!report.roofline.has_value() || report.roofline->layers.empty()) return {};
  const Roofline& roofline = *report.roofline;
  const double peak = roofline.peak_flops_per_second;
  // In FLOP/B. Above this, memory is not the limit.
  const double ridge = peak / roofline.bytes_per_second;
  double from = ridge, to = ridge, lowest = peak;
  size_t placed = 0;
  for (const LayerPoint& layer : roofline.layers) {
    if (!HasPlace(layer)) continue;
    ++placed;
    from = std::min(from, layer.flops_per_byte());
    to = std::max(to, layer.flops_per_byte());
    lowest = std::min(lowest, layer.flops_per_second());
  }
  const Axis x = Axis::Log(from, 1.05 * to, Unit::kFlopsPerByte);
  // The y axis begins so low that the roof is visible at the left edge.
  const Axis y = Axis::Log(std::min(lowest, x.from() * roofline.bytes_per_second), 1.3 * peak,
                           Unit::kFlopsPerSecond);
  Plot plot({.id = "plot-roofline",
             .title = "Roofline of the layers",
             .description = absl::StrCat(
                 placed, " layers under a roof of ", NumberText(peak, Unit::kFlopsPerSecond),
                 " and ", NumberText(roofline.bytes_per_second, Unit::kBytesPerSecond),
                 ", which meet at ", NumberText(ridge, Unit::kFlopsPerByte), "."),
             .x_label = "FLOP for each byte of memory traffic",
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
    plot.Dot(BoundName(layer.bound), at, static_cast<int>(layer.bound));
    plot.TipAt(at, absl::StrCat(layer.name, "\n", NumberText(at.y, Unit::kFlopsPerSecond), ", ",
                                NumberText(at.y / peak, Unit::kFraction), " of peak\n",
                                NumberText(at.x, Unit::kFlopsPerByte), "\n",
                                NumberText(layer.seconds, Unit::kSeconds), ", bound by ",
                                BoundName(layer.bound)));
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
  for (const auto& [bound, label] : kBounds) {
    const auto is_bound = [bound = bound](const LayerPoint& layer) {
      return layer.bound == bound && HasPlace(layer);
    };
    if (std::any_of(roofline.layers.begin(), roofline.layers.end(), is_bound)) {
      figure.legend.push_back({std::string(BoundName(bound)), label, static_cast<int>(bound)});
    }
  }
  if (placed < roofline.layers.size()) {
    absl::StrAppend(&figure.remark, " In the table only, because they compute or move nothing: ",
                    roofline.layers.size() - placed, " of ", roofline.layers.size(), " layers.");
  }
  return {figure};
}

}  // namespace systole::emulator
