#include "client/emulator/report/html_report.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/emulator/report/figure.h"
#include "client/emulator/report/html_table.h"
#include "client/emulator/report/learning_figures.h"
#include "client/emulator/report/load_figures.h"
#include "client/emulator/report/page_style.h"
#include "client/emulator/report/plot.h"
#include "client/emulator/report/roofline_figure.h"
#include "client/emulator/report/timing_figures.h"
#include "core/page/base_style.h"
#include "core/text/markup_text.h"

namespace systole::emulator {
namespace {

const char* TitleOf(RunMode mode) {
  switch (mode) {
    case RunMode::kFunctional:
      return "Training run";
    case RunMode::kPaced:
      return "Paced run";
    case RunMode::kReplay:
      return "Replayed run";
    case RunMode::kLoad:
      return "Load test";
  }
  return "";
}

// What the report of a mode shows, and what it does not show.
const char* ClaimOf(RunMode mode) {
  switch (mode) {
    case RunMode::kFunctional:
      return "Functional mode: the values that a systolic accelerator would compute. Times are "
             "those of the emulating host and say nothing about how busy a chip would be.";
    case RunMode::kPaced:
      return "Paced mode: no values. Every core takes the chip's step time by the wall clock, so "
             "that real servers are loaded at the real rate.";
    case RunMode::kReplay:
      return "Replay mode: no values. Arrivals were recorded once. A virtual clock computes when a "
             "chip would have waited for them.";
    case RunMode::kLoad:
      return "Load mode: no values. Several trainers at once take steps by the wall clock, each "
             "with a feed of its own, so that real servers are loaded at the real rate.";
  }
  return "";
}

// The model's name. If the report has no model, the mode's title.
std::string NameOf(const RunReport& report) {
  for (const Fact& fact : report.facts) {
    const auto* name = std::get_if<std::string>(&fact.value);
    if (fact.key == "model" && name != nullptr && !name->empty()) return *name;
  }
  return TitleOf(report.mode);
}

// The verdict has words and a sign besides its colour, because some readers cannot see colours, and
// others print the page without colours.
std::string VerdictHtml(const Verdict& verdict) {
  if (verdict.text.empty()) return "";
  const char* css_class = "neutral";
  const char* sign = "";
  switch (verdict.grade) {
    case Verdict::Grade::kNeutral:
      break;
    case Verdict::Grade::kGood:
      css_class = "good";
      sign = "✓";
      break;
    case Verdict::Grade::kFair:
      css_class = "fair";
      sign = "!";
      break;
    case Verdict::Grade::kBad:
      css_class = "bad";
      sign = "✕";
      break;
  }
  return absl::StrCat("<p class=\"verdict ", css_class, "\">",
                      *sign == '\0' ? "" : absl::StrCat("<b aria-hidden=\"true\">", sign, "</b> "),
                      "<span data-key=\"verdict\">", EscapeMarkup(verdict.text), "</span></p>\n");
}

std::string CardsHtml(absl::Span<const Fact> facts) {
  std::string html = "<section class=\"cards\" aria-label=\"Main results\">\n";
  for (const Fact& fact : facts) {
    if (!fact.stands_out) continue;
    absl::StrAppend(&html, "<dl class=\"card\"><dt>", EscapeMarkup(fact.label), "</dt><dd>",
                    FactHtml(fact), "</dd></dl>\n");
  }
  return html + "</section>\n";
}

std::string FactsHtml(const char* title, absl::Span<const Fact> facts) {
  if (std::all_of(facts.begin(), facts.end(), [](const Fact& f) { return f.stands_out; })) {
    return "";
  }
  std::string html =
      absl::StrCat("<section class=\"sheet wide\"><h2>", title, "</h2><dl class=\"facts\">\n");
  for (const Fact& fact : facts) {
    if (fact.stands_out) continue;
    absl::StrAppend(&html, "<div><dt>", EscapeMarkup(fact.label), "</dt><dd>", FactHtml(fact),
                    "</dd></div>\n");
  }
  return html + "</dl></section>\n";
}

std::string EpochTable(const RunReport& report) {
  HtmlTable table("Epochs", {"Epoch", "Steps", "Loss", "Accuracy", "Validation loss",
                             "Validation accuracy", "Images/s", "Mean step", "Received"});
  for (size_t i = 0; i < report.epochs.size(); ++i) {
    const EpochReport& epoch = report.epochs[i];
    const std::string key = absl::StrCat("epochs.", i, ".");
    const auto number = [&](const char* name, double value, Unit unit) {
      return NumberHtml(key + name, value, unit);
    };
    std::string loss = "–", accuracy = "–";
    if (epoch.validation.has_value()) {
      loss = number("validation.loss", epoch.validation->loss, Unit::kCount);
      accuracy = number("validation.accuracy", epoch.validation->accuracy, Unit::kFraction);
    }
    table.AddRow(
        {absl::StrCat(i + 1), number("steps", static_cast<double>(epoch.steps), Unit::kCount),
         number("training.loss", epoch.training.loss, Unit::kCount),
         number("training.accuracy", epoch.training.accuracy, Unit::kFraction), loss, accuracy,
         number("images_per_second", epoch.images_per_second(), Unit::kCount),
         NumberHtml(key + "mean_step_seconds", epoch.mean_step()),
         number("bytes_received", static_cast<double>(epoch.bytes_received), Unit::kBytes)});
  }
  return table.ToHtml();
}

std::string FigureHtml(const Figure& figure) {
  std::string html =
      absl::StrCat("<figure", figure.wide ? " class=\"wide\"" : "", "><figcaption><h2>",
                   EscapeMarkup(figure.title), "</h2><p class=\"remark\">",
                   EscapeMarkup(figure.remark), "</p>\n");
  html += "<ul class=\"legend\">";
  for (const LegendEntry& entry : figure.legend) {
    absl::StrAppend(&html, "<li><svg viewBox=\"-7 -7 14 14\" aria-hidden=\"true\">",
                    entry.shape < 0 ? absl::StrCat("<rect class=\"bar s-", entry.series,
                                                   "\" x=\"-6\" y=\"-6\" width=\"12\" "
                                                   "height=\"12\" rx=\"3\"/>")
                                    : absl::StrCat("<path class=\"dot s-", entry.series, "\" d=\"",
                                                   ShapePath(entry.shape), "\"/>"),
                    "</svg>", EscapeMarkup(entry.label), "</li>");
  }
  absl::StrAppend(&html, "</ul></figcaption>\n<div class=\"plot\">\n", figure.svg, "</div>\n");
  if (!figure.table.empty()) {
    absl::StrAppend(&html, figure.table_is_long ? "<details>" : "<details open>",
                    "<summary>Numbers</summary>", figure.table, "</details>\n");
  }
  return html + "</figure>\n";
}

// The notes that a reader should know before the numbers.
std::string NoticeHtml(const RunReport& report) {
  if (report.notes.empty()) return "";
  std::string html = "<aside class=\"notice\"><ul>\n";
  for (const std::string& note : report.notes) {
    absl::StrAppend(&html, "<li>", EscapeMarkup(note), "</li>\n");
  }
  return html + "</ul></aside>\n";
}

// Says how the numbers were made.
std::string FooterHtml(const RunReport& report) {
  std::string html = "<footer><ul>\n";
  if (report.steps.steps() > 0) {
    const std::string rows =
        NumberText(static_cast<double>(report.steps.rows().size()), Unit::kCount);
    const std::string each =
        report.steps.steps_per_row() == 1
            ? "one for each step"
            : absl::StrCat(
                  "each of ",
                  NumberText(static_cast<double>(report.steps.steps_per_row()), Unit::kCount),
                  " steps");
    absl::StrAppend(&html, "<li>The run's history is kept in ", rows, " rows, ", each,
                    ". Plots merge them further, to at most ", kMaxLinePoints, " points or ",
                    kMaxBars,
                    " bars. A merged row keeps the mean, the smallest and the largest value, so "
                    "that no spike is lost.</li>\n");
  }
  if (report.has_barrier()) {
    html +=
        "<li>Accelerator utilization (AU) is compute time over total time, without the first "
        "step. "
        "Infeed is a step's longest infeed stall divided by the step's duration. If a core has its "
        "data and waits for cores that have none yet, this wait counts as barrier, not as infeed "
        "stall.</li>\n";
  }
  html +=
      "<li>This file holds every number once more, as the JSON that <code>--json</code> prints: "
      "the element with the id <code>report</code>.</li>\n";
  return html + "</ul></footer>\n";
}

}  // namespace

std::string ToHtml(const RunReport& report) {
  const std::string name = EscapeMarkup(NameOf(report));
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // With this policy the page loads nothing, even if a hostile name contains an address.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>",
      name, " – Systole ", TitleOf(report.mode), "</title>\n<style>", kBaseStyle, kPageStyle,
      "</style></head>\n<body><main>\n<header><span class=\"badge\" data-key=\"mode\">",
      RunModeName(report.mode), "</span><h1>", name, "</h1>", VerdictHtml(report.verdict), "<p>",
      ClaimOf(report.mode), "</p></header>\n", NoticeHtml(report), CardsHtml(report.results),
      "<div class=\"grid\">\n", FactsHtml("What ran", report.facts),
      FactsHtml("Further results", report.results));
  for (const Figure& figure : LearningFigures(report)) html += FigureHtml(figure);
  if (!report.epochs.empty()) {
    absl::StrAppend(&html, "<section class=\"sheet wide\">", EpochTable(report), "</section>\n");
  }
  for (const Figure& figure : TimingFigures(report)) html += FigureHtml(figure);
  for (const Figure& figure : RooflineFigures(report)) html += FigureHtml(figure);
  for (const Figure& figure : LoadFigures(report)) html += FigureHtml(figure);
  absl::StrAppend(&html, "</div>\n", FooterHtml(report),
                  "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n"
                  "<script type=\"application/json\" id=\"report\">",
                  absl::StrReplaceAll(ToJson(report), {{"<", "\\u003c"}}), "</script>\n<script>",
                  kPageScript, "</script>\n</body></html>\n");
  return html;
}

}  // namespace systole::emulator
