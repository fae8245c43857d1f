#include "client/emulator/report/timing_figures.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "client/emulator/report/html_table.h"
#include "client/emulator/report/plot.h"

namespace systole::emulator {
namespace {

struct TimePart {
  const char* series;
  const char* label;
  const char* key;  // The JSON's key for the sum of this part.
  absl::Duration StepRow::*of_row;
};

std::vector<TimePart> TimeParts(const RunReport& report) {
  std::vector<TimePart> parts = {
      {"compute", "Compute", "history.total_compute_seconds", &StepRow::compute},
      {"stall", "Infeed stall", "history.total_infeed_stall_seconds", &StepRow::infeed_stall}};
  if (report.has_barrier()) {
    parts.push_back({"barrier", "Barrier", "history.total_barrier_seconds", &StepRow::barrier});
  }
  return parts;
}

double MeanSeconds(const StepRow& row, absl::Duration StepRow::*part) {
  return absl::ToDoubleSeconds(row.*part) / static_cast<double>(row.steps);
}

// The top of an axis for `values`: the largest value, but at most 2.5 times the 95th percentile.
// Otherwise a few outliers would flatten all other values.
double TopOf(std::vector<double> values) {
  const double largest = *std::max_element(values.begin(), values.end());
  const auto at = values.begin() + static_cast<int64_t>(values.size() * 95 / 100);
  std::nth_element(values.begin(), at, values.end());
  return *at > 0 ? std::min(largest, 2.5 * *at) : largest;
}

// Draws the row as a column, whose parts stand on top of each other. The column has a tooltip.
void DrawRow(const StepRow& row, const std::vector<TimePart>& parts, double gap, Plot& plot) {
  const double left = static_cast<double>(row.first_step), right = EndOf(row);
  std::string tip = absl::StrCat(StepsText(row), "\nbegan at ",
                                 NumberText(absl::ToDoubleSeconds(row.start), Unit::kSeconds));
  double height = 0;
  for (const TimePart& part : parts) {
    const double seconds = MeanSeconds(row, part.of_row);
    plot.Bar(part.series, left + gap, right - gap, height, height + seconds);
    height += seconds;
    absl::StrAppend(&tip, "\n", part.label, " ", NumberText(seconds, Unit::kSeconds));
  }
  if (row.steps > 1) {
    const double longest = absl::ToDoubleSeconds(row.longest);
    plot.Rule({left, longest}, {right, longest});
    absl::StrAppend(&tip, "\nLongest step ", NumberText(longest, Unit::kSeconds));
  }
  plot.Tip(left, right, tip);
}

HtmlTable StepTable(const StepRow& total, const std::vector<TimePart>& parts) {
  HtmlTable table("Step time", {"Spent on", "Sum", "Share"});
  const double all = absl::ToDoubleSeconds(total.compute + total.infeed_stall + total.barrier);
  for (const TimePart& part : parts) {
    const double seconds = absl::ToDoubleSeconds(total.*part.of_row);
    table.AddRow({part.label, NumberHtml(part.key, total.*part.of_row),
                  NumberText(all > 0 ? seconds / all : 0, Unit::kFraction)});
  }
  table.AddRow({"Longest step", NumberHtml("history.longest_step_seconds", total.longest), ""});
  return table;
}

std::string StepRemark(const RunReport& report, int64_t steps_per_column, double top) {
  std::string remark =
      steps_per_column > 1
          ? absl::StrCat("Each column is the mean of ",
                         NumberText(static_cast<double>(steps_per_column), Unit::kCount),
                         " steps; the thin line shows the longest of these steps.")
          : "One column for each step.";
  if (absl::ToDoubleSeconds(report.steps.Total().longest) > top) {
    absl::StrAppend(&remark, " Columns and lines are cut off at ", NumberText(top, Unit::kSeconds),
                    ".");
  }
  if (report.has_barrier()) remark += " Waits are means over the cores.";
  return remark;
}

Figure StepTimes(const RunReport& report) {
  const std::vector<StepRow> rows = MergeRows(report.steps.rows(), kMaxBars);
  const std::vector<TimePart> parts = TimeParts(report);
  const int64_t steps_per_column = rows.front().steps;
  const StepRow total = report.steps.Total();
  std::vector<double> longest;
  for (const StepRow& row : rows) longest.push_back(absl::ToDoubleSeconds(row.longest));
  const Axis y = Axis::Linear(0, TopOf(longest), Unit::kSeconds);
  const auto mean = [&](absl::Duration StepRow::*part) {
    return NumberText(MeanSeconds(total, part), Unit::kSeconds);
  };
  Plot plot(
      {.id = "plot-steps",
       .title = "Time of each step, by what it was spent on",
       .description = absl::StrCat(
           "Means over ", NumberText(static_cast<double>(total.steps), Unit::kCount),
           " steps: a step computes for ", mean(&StepRow::compute), " and waits for data for ",
           mean(&StepRow::infeed_stall), ". The longest step takes ",
           NumberText(absl::ToDoubleSeconds(total.longest), Unit::kSeconds), "."),
       .x_label = "Step",
       .width = kWidePx,
       .height = 300},
      StepAxis(rows, 10), y);
  // If there are few columns, they have gaps between them. If there are many, they overlap a
  // little, because otherwise the page's background would show between them.
  const double gap = (rows.size() <= 120 ? 0.06 : -0.06) * static_cast<double>(steps_per_column);
  for (const StepRow& row : rows) DrawRow(row, parts, gap, plot);
  Figure figure = {.title = "Step time",
                   .remark = StepRemark(report, steps_per_column, y.to()),
                   .svg = plot.ToSvg(),
                   .table = StepTable(total, parts).ToHtml(),
                   .wide = true};
  for (const TimePart& part : parts) figure.legend.push_back({part.series, part.label});
  return figure;
}

HtmlTable CoreTable(const RunReport& report) {
  std::vector<size_t> order(report.cores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (order.size() > kMaxCoreRows) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return report.cores[a].infeed_stall > report.cores[b].infeed_stall;
    });
    order.resize(kMaxCoreRows);
  }
  std::vector<std::string> header = {"Core", "Infeed stall"};
  if (report.has_barrier()) header.push_back("Barrier");
  HtmlTable table(order.size() < report.cores.size()
                      ? absl::StrCat("The ", kMaxCoreRows, " cores that waited longest for data")
                      : std::string("Cores"),
                  header);
  for (const size_t core : order) {
    std::vector<std::string> cells = {
        absl::StrCat(core),
        NumberHtml(absl::StrCat("infeed_stall_seconds.", core), report.cores[core].infeed_stall)};
    if (report.has_barrier()) {
      cells.push_back(
          NumberHtml(absl::StrCat("barrier_seconds.", core), report.cores[core].barrier));
    }
    table.AddRow(cells);
  }
  return table;
}

Figure CoreStalls(const RunReport& report) {
  const size_t count = report.cores.size();
  const size_t merged = (count + kMaxBars - 1) / kMaxBars;  // Cores per bar.
  double top = 0;
  for (const CoreTimes& core : report.cores) {
    top = std::max(top, absl::ToDoubleSeconds(core.infeed_stall + core.barrier));
  }
  const auto by_stall = [](const CoreTimes& a, const CoreTimes& b) {
    return a.infeed_stall < b.infeed_stall;
  };
  const auto [least, most] =
      std::minmax_element(report.cores.begin(), report.cores.end(), by_stall);
  Plot plot({.id = "plot-cores",
             .title = "Waiting time of each core",
             .description = absl::StrCat(
                 "Time that each of the ", count, " cores waited for data: between ",
                 NumberText(absl::ToDoubleSeconds(least->infeed_stall), Unit::kSeconds), " and ",
                 NumberText(absl::ToDoubleSeconds(most->infeed_stall), Unit::kSeconds), "."),
             .x_label = "Core",
             .width = kWidePx,
             .height = 260},
            Axis::LinearExact(-0.5, static_cast<double>(count) - 0.5, Unit::kCount, 16,
                              /*integral=*/true),
            Axis::Linear(0, top, Unit::kSeconds, 4));
  for (size_t begin = 0; begin < count; begin += merged) {
    const size_t end = std::min(begin + merged, count);
    // A bar for several cores shows the core with the longest infeed stall, because a mean would
    // hide this core.
    const CoreTimes& core =
        *std::max_element(report.cores.begin() + static_cast<int64_t>(begin),
                          report.cores.begin() + static_cast<int64_t>(end), by_stall);
    const double left = static_cast<double>(begin) - 0.5, right = static_cast<double>(end) - 0.5;
    const double gap = 0.14 * (right - left);
    const double stall = absl::ToDoubleSeconds(core.infeed_stall);
    const double barrier = absl::ToDoubleSeconds(core.barrier);
    plot.Bar("stall", left + gap, right - gap, 0, stall);
    plot.Bar("barrier", left + gap, right - gap, stall, stall + barrier);
    std::string tip = end - begin == 1 ? absl::StrCat("Core ", begin)
                                       : absl::StrCat("Cores ", begin, " to ", end - 1);
    absl::StrAppend(&tip, "\nInfeed stall ", NumberText(stall, Unit::kSeconds));
    if (report.has_barrier()) {
      absl::StrAppend(&tip, "\nBarrier ", NumberText(barrier, Unit::kSeconds));
    }
    plot.Tip(left, right, tip);
  }
  const HtmlTable table = CoreTable(report);
  Figure figure = {.title = "Waiting, by core",
                   .remark = "Over the whole run, without its first step.",
                   .legend = {{"stall", "Infeed stall"}},
                   .svg = plot.ToSvg(),
                   .table = table.ToHtml(),
                   .table_is_long = table.is_long(),
                   .wide = true};
  if (report.has_barrier()) figure.legend.push_back({"barrier", "Barrier"});
  if (merged > 1) {
    absl::StrAppend(&figure.remark, " Each bar stands for ", merged,
                    " neighbouring cores and shows the core that waited longest for data.");
  }
  return figure;
}

}  // namespace

std::vector<Figure> TimingFigures(const RunReport& report) {
  std::vector<Figure> figures;
  if (report.steps.steps() > 0) figures.push_back(StepTimes(report));
  if (!report.cores.empty()) figures.push_back(CoreStalls(report));
  return figures;
}

}  // namespace systole::emulator
