// The options of every command that runs the emulator and can keep its report in files.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_REPORT_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_REPORT_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/command_line.h"
#include "client/emulator/report/run_report.h"

namespace systole {

struct ReportFlags {
  std::string html;  // `--report`: the page. Empty: none.
  std::string json;  // `--report-json`: what `--json` prints. Empty: none.

  void Declare(OptionList& options);
  // Internal if a file cannot be written; names it.
  absl::Status Write(const emulator::RunReport& report) const;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_REPORT_FLAGS_H_
