// The options of every command that runs the emulator and can write its report to files.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_REPORT_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_REPORT_FLAGS_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/console/command_line.h"
#include "client/emulator/report/run_report.h"

namespace systole {

struct ReportFlags {
  std::string html;  // `--report`: the path of the page. Empty: none.
  std::string json;  // `--report-json`: the path for what `--json` prints. Empty: none.

  void Declare(OptionList& options);
  bool empty() const { return html.empty() && json.empty(); }
  // Checks that the files can be written. Call it before the run, not after it. Errors of
  // FileSink::Create.
  absl::Status Check() const;
  // Writes each file whole or not at all. Errors of FileSink.
  absl::Status Write(const emulator::RunReport& report) const;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_REPORT_FLAGS_H_
