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
  bool empty() const { return html.empty() && json.empty(); }
  // Whether the files could be written now: to be asked before the run, not after it. Errors of
  // FileSink::Create.
  absl::Status Check() const;
  // Each file is whole or not there. Errors of FileSink.
  absl::Status Write(const emulator::RunReport& report) const;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_REPORT_FLAGS_H_
