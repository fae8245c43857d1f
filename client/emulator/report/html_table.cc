#include "client/emulator/report/html_table.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/json/json_writer.h"
#include "core/text/markup_text.h"

namespace systole::emulator {
namespace {

// A <data> element that shows `text`. Its `value` is written as in the JSON report.
std::string DataHtml(absl::string_view key, absl::string_view value, absl::string_view text) {
  return absl::StrCat("<data data-key=\"", EscapeMarkup(key), "\" value=\"", EscapeMarkup(value),
                      "\">", EscapeMarkup(text), "</data>");
}

}  // namespace

std::string NumberHtml(absl::string_view key, double value, Unit unit) {
  return DataHtml(key, JsonWriter().Double(value).text(), NumberText(value, unit));
}

std::string NumberHtml(absl::string_view key, absl::Duration time) {
  return NumberHtml(key, absl::ToDoubleSeconds(time), Unit::kSeconds);
}

std::string FactHtml(const Fact& fact) {
  return std::visit(
      [&](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string>) {
          return absl::StrCat("<span data-key=\"", EscapeMarkup(fact.key), "\">",
                              EscapeMarkup(value), "</span>");
        } else if constexpr (std::is_same_v<T, double>) {
          return NumberHtml(fact.key, value, fact.unit);
        } else {
          // Written as an integer, because a seed may have more digits than a double can hold.
          const std::string digits = absl::StrCat(value);
          return DataHtml(fact.key, digits,
                          fact.unit == Unit::kNone
                              ? digits
                              : NumberText(static_cast<double>(value), fact.unit));
        }
      },
      fact.value);
}

HtmlTable::HtmlTable(absl::string_view caption, const std::vector<std::string>& header)
    : html_(absl::StrCat("<div class=\"scroll\"><table><caption>", EscapeMarkup(caption),
                         "</caption><thead><tr>")) {
  for (const std::string& name : header) {
    absl::StrAppend(&html_, "<th scope=\"col\">", EscapeMarkup(name), "</th>");
  }
  html_ += "</tr></thead><tbody>\n";
}

void HtmlTable::AddRow(const std::vector<std::string>& cells) {
  ++rows_;
  html_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&html_, i == 0 ? "<th scope=\"row\">" : "<td>", cells[i],
                    i == 0 ? "</th>" : "</td>");
  }
  html_ += "</tr>\n";
}

std::string HtmlTable::ToHtml() const { return html_ + "</tbody></table></div>\n"; }

}  // namespace systole::emulator
