// The units of a report's facts and figures.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_UNIT_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_UNIT_H_

#include "core/page/number_text.h"

namespace systole::emulator {

using Unit = NumberUnit;

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_UNIT_H_
