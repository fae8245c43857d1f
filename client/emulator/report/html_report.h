// A report as one HTML file that needs no network and no other file. Plots are inline SVG, and the
// only script shows tooltips. The file carries the JSON of run_report.h word for word (in `<script
// type="application/json" id="report">`, with `<` as \u003c). Every number of a fact or a table
// that is also in that JSON has an attribute with its path there. The file stays below 2 MB, even
// for a very long run, because histories are bounded, and plots merge points that a screen could
// not show apart.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_HTML_REPORT_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_HTML_REPORT_H_

#include <string>

#include "client/emulator/report/run_report.h"

namespace systole::emulator {

std::string ToHtml(const RunReport& report);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_HTML_REPORT_H_
