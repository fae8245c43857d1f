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
  std::string series;  // The name of a series of the Plot.
  std::string label;
  // The shape of the series' dots (ShapePath()). -1: the legend shows a square in the series'
  // colour.
  int shape = -1;
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

// A line has at most kMaxLinePoints points, and a bar plot at most kMaxBars bars. If there would be
// more, neighbours are merged.
inline constexpr size_t kMaxLinePoints = 480;
inline constexpr size_t kMaxBars = 240;
// The width of a wide figure's plot, in pixels.
inline constexpr double kWidePx = 1136;

// Where the row ends on the axis of steps: the number of its last step + 1.
double EndOf(const StepRow& row);
// "Step 12", "Steps 12 to 15".
std::string StepsText(const StepRow& row);
// An axis that spans the steps of all `rows`. REQUIRES: `rows` is not empty.
Axis StepAxis(const std::vector<StepRow>& rows, int ticks);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_FIGURE_H_
