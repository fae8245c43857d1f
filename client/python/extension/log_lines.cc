#include "client/python/extension/log_lines.h"

#include "nanobind/nanobind.h"
#include "nanobind/stl/string.h"

namespace nb = nanobind;

namespace systole::python {
namespace {

// The level of Python's `logging` for each LogLevel.
constexpr int kPythonLevels[] = {10, 20, 30, 40};

}  // namespace

void LogLines::Add(LogLevel level, const std::string& line) {
  const MutexLock lock(mu_);
  if (waiting_.size() < kMaxWaiting) waiting_.emplace_back(level, line);
}

void LogLines::HandOn() {
  std::vector<std::pair<LogLevel, std::string>> lines;
  {
    const MutexLock lock(mu_);
    lines.swap(waiting_);
  }
  if (lines.empty()) return;
  const nb::object logger = nb::module_::import_("logging").attr("getLogger")("systole");
  for (const auto& [level, line] : lines) {
    logger.attr("log")(kPythonLevels[static_cast<size_t>(level)], "%s", line);
  }
}

std::shared_ptr<EventLog> LogInto(std::shared_ptr<LogLines> lines) {
  return std::make_shared<EventLog>(
      [lines = std::move(lines)](LogLevel level, const std::string& line) {
        lines->Add(level, line);
      });
}

}  // namespace systole::python
