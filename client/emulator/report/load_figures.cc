#include "client/emulator/report/load_figures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/emulator/report/html_table.h"
#include "client/emulator/report/plot.h"

namespace systole::emulator {
namespace {

// One curve of a figure. The figure's x axis is the number of trainers.
struct LevelCurve {
  std::string series;
  std::string label;
  std::function<double(const LevelReport&)> value_of;
};

// A level (the figures for one number of trainers), with its index in RunReport::levels. The JSON
// uses the same index.
using Numbered = std::pair<size_t, const LevelReport*>;

// The levels, sorted by number of trainers. They ran in another order: the search for the largest
// number of trainers that the servers can feed goes up and down.
std::vector<Numbered> Sorted(const RunReport& report) {
  std::vector<Numbered> levels;
  for (size_t i = 0; i < report.levels.size(); ++i) levels.emplace_back(i, &report.levels[i]);
  std::stable_sort(levels.begin(), levels.end(), [](const Numbered& a, const Numbered& b) {
    return a.second->trainers < b.second->trainers;
  });
  return levels;
}

std::string TrainersText(int64_t trainers) {
  return absl::StrCat(trainers, trainers == 1 ? " trainer" : " trainers");
}

// Draws the curves, and sets the x label and the description in `options`. REQUIRES: `levels` is
// not empty.
Figure Drawn(const std::vector<Numbered>& levels, const std::vector<LevelCurve>& curves, Unit unit,
             PlotOptions options) {
  double top = 0;
  for (const auto& [number, level] : levels) {
    for (const LevelCurve& curve : curves) {
      const double value = curve.value_of(*level);
      if (std::isfinite(value)) top = std::max(top, value);
    }
  }
  options.x_label = "Trainers";
  const auto most = static_cast<double>(levels.back().second->trainers);
  options.description = absl::StrCat("With ", TrainersText(levels.back().second->trainers), ": ");
  Figure figure = {.title = options.title};
  for (size_t c = 0; c < curves.size(); ++c) {
    figure.legend.push_back({curves[c].series, curves[c].label, static_cast<int>(c)});
    absl::StrAppend(&options.description, c == 0 ? "" : ", ", curves[c].label, " ",
                    NumberText(curves[c].value_of(*levels.back().second), unit));
  }
  Plot plot(options, Axis::LinearExact(0, most + 0.5, Unit::kCount, 8, /*integral=*/true),
            Axis::Linear(0, top, unit));
  for (size_t c = 0; c < curves.size(); ++c) {
    std::vector<Point> points;
    for (const auto& [number, level] : levels) {
      points.push_back({static_cast<double>(level->trainers), curves[c].value_of(*level)});
    }
    plot.Line(curves[c].series, points);
    for (const Point& point : points) plot.Dot(curves[c].series, point, static_cast<int>(c));
  }
  for (size_t i = 0; i < levels.size(); ++i) {
    const LevelReport& level = *levels[i].second;
    std::string tip = TrainersText(level.trainers);
    for (const LevelCurve& curve : curves) {
      absl::StrAppend(&tip, "\n", curve.label, " ", NumberText(curve.value_of(level), unit));
    }
    // The level's tooltip is shown for a range that reaches half of the way to each neighbouring
    // level.
    const auto at = static_cast<double>(level.trainers);
    const double left = i == 0 ? 0 : (static_cast<double>(levels[i - 1].second->trainers) + at) / 2;
    const double right = i + 1 == levels.size()
                             ? most + 0.5
                             : (static_cast<double>(levels[i + 1].second->trainers) + at) / 2;
    plot.Tip(left, right, tip);
  }
  figure.svg = plot.ToSvg();
  return figure;
}

HtmlTable LevelTable(const std::vector<Numbered>& levels) {
  std::vector<std::string> header = {"Trainers", "Fed", "Lowest AU", "Steps/s", "Examples/s"};
  for (const auto& [name, fraction] : kReportedPercentiles) {
    header.push_back(absl::StrCat("Wait, ", name));
  }
  for (const char* name : {"Longest wait", "Retries", "Server CPUs busy", "Server memory"}) {
    header.push_back(name);
  }
  HtmlTable table("Numbers of trainers", header);
  for (const auto& [number, level] : levels) {
    const std::string key = absl::StrCat("levels.", number, ".");
    const auto count = [&key](const char* name, double value) {
      return NumberHtml(key + name, value, Unit::kCount);
    };
    std::vector<std::string> cells = {
        count("trainers", static_cast<double>(level->trainers)),
        level->fed ? "yes" : "no",
        NumberHtml(key + "lowest_au", level->lowest_au, Unit::kFraction),
        count("steps_per_second", level->steps_per_second),
        count("examples_per_second", level->examples_per_second),
    };
    for (const auto& [name, fraction] : kReportedPercentiles) {
      cells.push_back(NumberHtml(absl::StrCat(key, "step_arrival_seconds.", name),
                                 level->waits.Percentile(fraction)));
    }
    cells.push_back(NumberHtml(key + "step_arrival_seconds.max", level->waits.max()));
    cells.push_back(count("retries", static_cast<double>(level->retries)));
    cells.push_back(count("server_cpus_busy", level->server_cpus_busy));
    cells.push_back(NumberHtml(key + "server_resident_bytes",
                               level->server_resident_bytes.has_value()
                                   ? static_cast<double>(*level->server_resident_bytes)
                                   : std::numeric_limits<double>::quiet_NaN(),
                               Unit::kBytes));
    table.AddRow(cells);
  }
  return table;
}

Figure Waits(const std::vector<Numbered>& levels) {
  std::vector<LevelCurve> curves;
  for (const auto& [name, fraction] : kReportedPercentiles) {
    curves.push_back({name, name, [fraction = fraction](const LevelReport& level) {
                        return absl::ToDoubleSeconds(level.waits.Percentile(fraction));
                      }});
  }
  curves.push_back({"max", "Longest", [](const LevelReport& level) {
                      return absl::ToDoubleSeconds(level.waits.max());
                    }});
  Figure figure =
      Drawn(levels, curves, Unit::kSeconds,
            {.id = "plot-waits", .title = "Wait for a step", .width = kWidePx, .height = 300});
  figure.remark =
      "The time from the moment a trainer needs a step until the step arrives, for the steps of "
      "all trainers.";
  const HtmlTable table = LevelTable(levels);
  figure.table = table.ToHtml();
  figure.table_is_long = table.is_long();
  figure.wide = true;
  return figure;
}

Figure Rates(const std::vector<Numbered>& levels) {
  Figure figure = Drawn(
      levels,
      {{"wanted", "Wanted", [](const LevelReport& level) { return level.wanted_steps_per_second; }},
       {"arrived", "Arrived", [](const LevelReport& level) { return level.steps_per_second; }}},
      Unit::kCount, {.id = "plot-rates", .title = "Steps a second"});
  figure.remark =
      "All trainers together. Wanted: the rate at which the trainers take steps if they never "
      "wait. Arrived may be higher at first, because clients fetch steps ahead.";
  return figure;
}

Figure Processors(const std::vector<Numbered>& levels) {
  Figure figure = Drawn(levels,
                        {{"cpus", "Server CPUs busy",
                          [](const LevelReport& level) { return level.server_cpus_busy; }}},
                        Unit::kCount, {.id = "plot-cpus", .title = "Processors of the servers"});
  figure.remark = absl::StrCat("The average number of busy processors, of ",
                               levels.back().second->server_cpus, " that the servers may use.");
  return figure;
}

}  // namespace

std::vector<Figure> LoadFigures(const RunReport& report) {
  if (report.levels.empty()) return {};
  const std::vector<Numbered> levels = Sorted(report);
  std::vector<Figure> figures = {Waits(levels), Rates(levels)};
  if (std::any_of(levels.begin(), levels.end(), [](const Numbered& level) {
        return std::isfinite(level.second->server_cpus_busy);
      })) {
    figures.push_back(Processors(levels));
  }
  return figures;
}

}  // namespace systole::emulator
