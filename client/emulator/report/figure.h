// One plot of a report with its legend and the table under it.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_FIGURE_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_FIGURE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "client/emulator/report/axis.h"
#include "client/emulator/report/step_history.h"

namespace systole::emulator {

struct LegendEntry {
  std::string series;  // A series of the Plot.
  std::string label;
  int shape = -1;  // The shape of the series' dots (ShapePath()); -1: a square of its colour.
};

struct Figure {
  std::string title;
  std::string remark;  // One or two sentences under the title.
  std::vector<LegendEntry> legend;
  std::string svg;
  std::string table;  // HTML; may be empty.
  bool table_is_long = false;
  bool wide = false;  // Takes the page's whole width.
};

// A line has at most kMaxLinePoints points, a bar plot at most kMaxBars bars; more are merged.
inline constexpr size_t kMaxLinePoints = 480;
inline constexpr size_t kMaxBars = 240;
// The width of a wide figure's plot, in pixels.
inline constexpr double kWidePx = 1136;

// The number of the step after the row's last step.
double EndOf(const StepRow& row);
// "Step 12", "Steps 12 to 15".
std::string StepsText(const StepRow& row);
// An axis over all of `rows`. REQUIRES: `rows` is not empty.
Axis StepAxis(const std::vector<StepRow>& rows, int ticks);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_FIGURE_H_
