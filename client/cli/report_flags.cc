#include "client/cli/report_flags.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "client/emulator/report/html_report.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return absl::InternalError(absl::StrCat("cannot write '", path, "'"));
  return absl::OkStatus();
}

}  // namespace

void ReportFlags::Declare(OptionList& options) {
  options.Optional("--report", "FILE", &html,
                   "Also write the report here: one HTML file with plots and every number");
  options.Optional("--report-json", "FILE", &json, "Also write the report here, as JSON");
}

absl::Status ReportFlags::Write(const emulator::RunReport& report) const {
  if (!html.empty()) SYSTOLE_RETURN_IF_ERROR(WriteFile(html, emulator::ToHtml(report)));
  if (!json.empty()) SYSTOLE_RETURN_IF_ERROR(WriteFile(json, emulator::ToJson(report) + "\n"));
  return absl::OkStatus();
}

}  // namespace systole
