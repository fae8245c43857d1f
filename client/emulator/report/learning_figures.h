// What a network learned, step by step: loss, accuracy, learning rate.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_LEARNING_FIGURES_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_LEARNING_FIGURES_H_

#include <vector>

#include "client/emulator/report/figure.h"
#include "client/emulator/report/run_report.h"

namespace systole::emulator {

// Empty if the run has computed no values (loss and accuracy), or has no step. The learning rate is
// shown only if it changes.
std::vector<Figure> LearningFigures(const RunReport& report);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_LEARNING_FIGURES_H_
