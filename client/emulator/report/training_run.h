// The report of a training run in functional mode.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_TRAINING_RUN_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_TRAINING_RUN_H_

#include <vector>

#include "client/emulator/report/run_report.h"
#include "client/emulator/report/step_history.h"
#include "client/emulator/training/training_loop.h"
#include "client/emulator/training/training_report.h"

namespace systole::emulator {

// The entry of a step that the training loop reports.
StepEntry EntryOf(const TrainingProgress& progress);

// `facts` are further facts about the run, such as its seed.
RunReport ReportOf(const TrainingReport& training, const StepHistory& steps,
                   const std::vector<Fact>& facts);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_TRAINING_RUN_H_
