// The page's facts and tables. Every number in them that is also in the JSON is a <data> element.
// `data-key` is the number's path in the JSON ("epochs.0.training.loss"), `value` is the number as
// written in the JSON, and the element's content is the rounded number for readers.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_HTML_TABLE_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_HTML_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/emulator/report/run_report.h"
#include "client/emulator/report/unit.h"

namespace systole::emulator {

std::string NumberHtml(absl::string_view key, double value, Unit unit);
std::string NumberHtml(absl::string_view key, absl::Duration time);
// The fact's value: a number or text.
std::string FactHtml(const Fact& fact);

class HtmlTable {
 public:
  // `header` has the headings of the columns, in plain text. The first column holds the rows'
  // names.
  HtmlTable(absl::string_view caption, const std::vector<std::string>& header);

  // `cells` are HTML, which is not escaped again.
  void AddRow(const std::vector<std::string>& cells);

  // Whether the page should hide the table until the reader opens it.
  bool is_long() const { return rows_ > 16; }
  std::string ToHtml() const;

 private:
  int64_t rows_ = 0;
  std::string html_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_HTML_TABLE_H_
