// Plots the layers of a model under the roof of a chip (Williams, Waterman, Patterson: "Roofline",
// CACM 52(4), 2009). x is the operations per byte moved, y the operations per second.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_ROOFLINE_FIGURE_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_ROOFLINE_FIGURE_H_

#include <vector>

#include "client/emulator/report/figure.h"
#include "client/emulator/report/run_report.h"

namespace systole::emulator {

// Empty if the report has no layers. Layers that compute or move nothing are not on the plot, but
// the table lists them.
std::vector<Figure> RooflineFigures(const RunReport& report);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_ROOFLINE_FIGURE_H_
