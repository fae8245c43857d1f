#include "client/cli/commands/report_flags.h"

#include "client/emulator/report/html_report.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"

namespace systole {

void ReportFlags::Declare(OptionList& options) {
  options.Optional("--report", "FILE", &html,
                   "Also write the report here: one HTML file with plots and every number");
  options.Optional("--report-json", "FILE", &json, "Also write the report here, as JSON");
}

absl::Status ReportFlags::Check() const {
  if (!html.empty()) SYSTOLE_RETURN_IF_ERROR(CheckWritable(html));
  if (!json.empty()) SYSTOLE_RETURN_IF_ERROR(CheckWritable(json));
  return absl::OkStatus();
}

absl::Status ReportFlags::Write(const emulator::RunReport& report) const {
  if (!html.empty()) SYSTOLE_RETURN_IF_ERROR(WriteFileAtomically(html, emulator::ToHtml(report)));
  if (!json.empty())
    SYSTOLE_RETURN_IF_ERROR(WriteFileAtomically(json, emulator::ToJson(report) + "\n"));
  return absl::OkStatus();
}

}  // namespace systole
