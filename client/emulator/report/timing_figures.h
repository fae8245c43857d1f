// Figures that show how the time of a run's steps was spent, and how long each core waited.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_TIMING_FIGURES_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_TIMING_FIGURES_H_

#include <vector>

#include "client/emulator/report/figure.h"
#include "client/emulator/report/run_report.h"

namespace systole::emulator {

// A table of cores lists at most this many cores: those that waited longest.
inline constexpr size_t kMaxCoreRows = 64;

// The times of steps, if the report has steps, and the waits of cores, if it has cores.
std::vector<Figure> TimingFigures(const RunReport& report);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_TIMING_FIGURES_H_
