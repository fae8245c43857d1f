// Figures of a load test, by number of trainers: waits for a step, steps a second, the servers'
// processors.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_LOAD_FIGURES_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_LOAD_FIGURES_H_

#include <vector>

#include "client/emulator/report/figure.h"
#include "client/emulator/report/run_report.h"

namespace systole::emulator {

// Empty if report.levels is empty. The figure of the processors is left out if no level has numbers
// for it.
std::vector<Figure> LoadFigures(const RunReport& report);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_LOAD_FIGURES_H_
