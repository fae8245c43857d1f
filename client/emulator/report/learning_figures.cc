#include "client/emulator/report/learning_figures.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/emulator/report/plot.h"

namespace systole::emulator {
namespace {

double Middle(const StepRow& row) {
  return static_cast<double>(row.first_step) + static_cast<double>(row.steps) / 2;
}

// The smallest and the largest of the finite values that were added.
struct Range {
  double from = std::numeric_limits<double>::infinity();
  double to = -std::numeric_limits<double>::infinity();
  void Add(double value) {
    if (!std::isfinite(value)) return;
    from = std::min(from, value);
    to = std::max(to, value);
  }
};

// What a learning curve shows: loss or accuracy.
struct Curve {
  std::string id, name;
  Spread StepRow::*of_step;
  double Score::*of_epoch;
  Unit unit;
};

Figure LearningCurve(const RunReport& report, const Curve& curve) {
  const std::vector<StepRow> rows = MergeRows(report.steps.rows(), kMaxLinePoints);
  std::vector<Point> mean, low, high, validation;
  Range range;
  for (const StepRow& row : rows) {
    const Spread& spread = row.*curve.of_step;
    mean.push_back({Middle(row), spread.mean});
    low.push_back({Middle(row), spread.min});
    high.push_back({Middle(row), spread.max});
    range.Add(spread.min);
    range.Add(spread.max);
  }
  std::vector<double> epoch_ends;
  // If the run continued from a checkpoint, the report has the epochs before the checkpoint, but
  // not their steps. These epochs are not drawn.
  double at = 0;
  for (const EpochReport& epoch : report.epochs) {
    at += static_cast<double>(epoch.steps);
    if (at <= static_cast<double>(rows.front().first_step)) continue;
    epoch_ends.push_back(at);
    if (!epoch.validation.has_value()) continue;
    validation.push_back({at, (*epoch.validation).*curve.of_epoch});
    range.Add(validation.back().y);
  }
  // The axis of a fraction begins at 0. Any other axis begins at 0, too, unless the whole curve
  // would then lie in the upper half of the plot.
  const bool share = curve.unit == Unit::kFraction;
  const double bottom = share || range.from < 0.5 * range.to ? 0 : range.from;
  const Axis y = Axis::Linear(bottom, share ? 1 : range.to, curve.unit);
  const double first = mean.front().y, last = mean.back().y;
  Plot plot({.id = absl::StrCat("plot-", curve.id),
             .title = absl::StrCat(curve.name, " over the steps"),
             .description = absl::StrCat(
                 "Training ", curve.id, " begins at ", NumberText(first, curve.unit),
                 " and ends at ", NumberText(last, curve.unit),
                 validation.empty() ? std::string(".")
                                    : absl::StrCat("; in validation it is ",
                                                   NumberText(validation.back().y, curve.unit),
                                                   " after the last epoch.")),
             .x_label = "Step"},
            StepAxis(rows, 6), y);
  // More than 40 vertical lines would look like hatching.
  if (epoch_ends.size() <= 40) {
    for (const double end : epoch_ends) plot.Rule({end, y.from()}, {end, y.to()});
  }
  const int64_t merged = rows.front().steps;
  if (merged > 1) plot.Band("training", low, high);
  plot.Line("training", mean);
  plot.Line("validation", validation);
  for (const StepRow& row : rows) {
    const Spread& spread = row.*curve.of_step;
    std::string tip =
        absl::StrCat(StepsText(row), "\n", curve.id, " ", NumberText(spread.mean, curve.unit));
    if (merged > 1) {
      absl::StrAppend(&tip, "\n", NumberText(spread.min, curve.unit), " to ",
                      NumberText(spread.max, curve.unit));
    }
    plot.Tip(static_cast<double>(row.first_step), EndOf(row), tip);
  }
  for (size_t i = 0; i < validation.size(); ++i) {
    plot.Dot("validation", validation[i]);
    plot.TipAt(validation[i], absl::StrCat("Validation after step ", validation[i].x, "\n",
                                           curve.id, " ", NumberText(validation[i].y, curve.unit)));
  }
  Figure figure = {.title = curve.name, .legend = {{"training", "Training"}}};
  if (merged > 1) {
    figure.remark = absl::StrCat("Line: the mean of every ",
                                 NumberText(static_cast<double>(merged), Unit::kCount),
                                 " steps. Band: from their smallest to their largest value.");
  } else {
    figure.remark = "One point for each step.";
  }
  if (!validation.empty()) figure.legend.push_back({"validation", "Validation", 0});
  figure.svg = plot.ToSvg();
  return figure;
}

// The learning rate over the steps. Empty if the rate never changes, because a plot of one number
// is of no use.
std::vector<Point> LearningRates(const RunReport& report) {
  std::vector<Point> points;
  bool varies = false;
  for (const StepRow& row : MergeRows(report.steps.rows(), kMaxLinePoints)) {
    points.push_back({static_cast<double>(row.first_step), row.learning_rate});
    varies |= row.learning_rate != points.front().y;
  }
  if (!varies) points.clear();
  return points;
}

Figure LearningRateFigure(const RunReport& report, const std::vector<Point>& points) {
  Range range;
  for (const Point& point : points) range.Add(point.y);
  Plot plot(
      {.id = "plot-learning-rate",
       .title = "Learning rate over the steps",
       .description = absl::StrCat("The rate lies between ", NumberText(range.from, Unit::kNone),
                                   " and ", NumberText(range.to, Unit::kNone), "."),
       .x_label = "Step",
       .width = kWidePx,
       .height = 200},
      StepAxis(report.steps.rows(), 10), Axis::Linear(0, range.to, Unit::kNone, 4));
  std::vector<Point> line = points;
  line.push_back({EndOf(report.steps.rows().back()), points.back().y});
  plot.Line("rate", line);
  for (size_t i = 0; i < points.size(); ++i) {
    const double end = i + 1 < points.size() ? points[i + 1].x : EndOf(report.steps.rows().back());
    plot.Tip(points[i].x, end,
             absl::StrCat("Step ", points[i].x, "\nlearning rate ",
                          NumberText(points[i].y, Unit::kNone)));
  }
  return {.title = "Learning rate",
          .remark = "The rate that the optimizer's schedule sets.",
          .legend = {{"rate", "Learning rate"}},
          .svg = plot.ToSvg(),
          .wide = true};
}

}  // namespace

std::vector<Figure> LearningFigures(const RunReport& report) {
  if (report.steps.steps() == 0 || !report.has_scores()) return {};
  std::vector<Figure> figures = {
      LearningCurve(report, {"loss", "Loss", &StepRow::loss, &Score::loss, Unit::kCount}),
      LearningCurve(
          report, {"accuracy", "Accuracy", &StepRow::accuracy, &Score::accuracy, Unit::kFraction})};
  const std::vector<Point> rates = LearningRates(report);
  if (!rates.empty()) figures.push_back(LearningRateFigure(report, rates));
  return figures;
}

}  // namespace systole::emulator
