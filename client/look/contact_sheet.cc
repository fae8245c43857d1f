#include "client/look/contact_sheet.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/look/example_card.h"
#include "client/look/place_kinds.h"
#include "client/look/sheet_outputs.h"
#include "client/look/sheet_style.h"
#include "core/order/core_split.h"
#include "core/page/base_style.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"
#include "core/text/markup_text.h"
#include "google/protobuf/text_format.h"

namespace systole {
namespace {

// The page names at most this many masked records, and only counts the others.
constexpr size_t kMaxNamedRecords = 20;

absl::Status Check(const v1::FeedSpec& spec, absl::Span<const Step> steps,
                   const ContactSheetOptions& options) {
  if (options.max_examples < 1 || options.max_examples > kMaxSheetExamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_examples is ", options.max_examples, ", want 1 to ", kMaxSheetExamples));
  }
  if (steps.empty()) return absl::InvalidArgumentError("there are no steps to show");
  for (const Step& step : steps) {
    if (step.layout() != steps[0].layout()) {
      return absl::InvalidArgumentError(
          absl::StrCat("steps ", steps[0].number(), " and ", step.number(),
                       " have different tensors: give steps of one feed only"));
    }
    if (NumCoresOf(spec) < step.core_end() || spec.global_batch() < 1 ||
        step.layout().per_core_batch() != PerCoreBatch(spec.global_batch(), NumCoresOf(spec))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "step ", step.number(), " has cores up to ", step.core_end() - 1, " with ",
          step.layout().per_core_batch(), " places each, but the spec has global_batch: ",
          spec.global_batch(), " and num_cores: ", NumCoresOf(spec)));
    }
  }
  return absl::OkStatus();
}

// A place of a step, and its content.
struct PlaceOfStep {
  int core = 0;
  int64_t slot = 0;  // The place within the core.
  KnownPlace known;
};

std::vector<PlaceOfStep> PlacesOf(const Step& step, const PlaceKinds& kinds) {
  const int64_t per_core = step.layout().per_core_batch();
  std::vector<PlaceOfStep> places;
  for (int core = step.core_begin(); core < step.core_end(); ++core) {
    const absl::Span<const uint8_t> valid = ValidPlaces(step, core);
    for (int64_t slot = 0; slot < per_core; ++slot) {
      const bool is_valid = valid[static_cast<size_t>(slot)] != 0;
      places.push_back({core, slot, kinds.At(step.number(), core, slot, is_valid)});
    }
  }
  return places;
}

struct Counts {
  int64_t examples = 0, padding = 0, masked = 0, empty = 0;
  std::vector<int64_t> masked_records;  // At most kMaxNamedRecords.

  void Add(const KnownPlace& place) {
    switch (place.kind) {
      case PlaceKind::kExample:
        ++examples;
        break;
      case PlaceKind::kPadding:
        ++padding;
        break;
      case PlaceKind::kMasked:
        ++masked;
        if (place.record.has_value() && masked_records.size() < kMaxNamedRecords) {
          masked_records.push_back(*place.record);
        }
        break;
      case PlaceKind::kEmpty:
        ++empty;
    }
  }
  int64_t places() const { return examples + padding + masked + empty; }
};

// "1 step", "3 steps".
std::string Count(int64_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string StepsText(absl::Span<const Step> steps) {
  if (steps.size() == 1) return absl::StrCat(steps[0].number());
  return absl::StrCat(steps.front().number(), " to ", steps.back().number());
}

std::string FactsHtml(const v1::FeedSpec& spec, absl::Span<const Step> steps,
                      const ContactSheetOptions& options, const Counts& counts) {
  std::vector<std::pair<const char*, std::string>> facts = {
      {"Dataset", DatasetNames(spec)},
      {steps.size() == 1 ? "Step" : "Steps", StepsText(steps)},
      {"Examples", absl::StrCat(counts.examples)}};
  if (counts.padding > 0) facts.emplace_back("Padding", absl::StrCat(counts.padding));
  if (counts.masked > 0) facts.emplace_back("Masked", absl::StrCat(counts.masked));
  if (counts.empty > 0) facts.emplace_back("Padding or masked", absl::StrCat(counts.empty));
  const int cores = steps[0].core_end() - steps[0].core_begin();
  facts.emplace_back("Cores", absl::StrCat(cores, " of ", NumCoresOf(spec)));
  if (options.order.has_value()) {
    facts.emplace_back("Records", absl::StrCat(options.order->spec().num_records));
  }
  if (!options.source.empty()) facts.emplace_back("Source", options.source);
  if (!options.version.empty()) facts.emplace_back("Version", options.version);
  std::string html = "<dl class=\"sheet facts\">\n";
  for (const auto& [label, value] : facts) {
    // Long values, such as addresses and versions, get a style of their own.
    const bool is_long = value.size() > 16;
    absl::StrAppend(&html, is_long ? "<div class=\"long\">" : "<div>", "<dt>", label, "</dt><dd>",
                    EscapeMarkup(value), "</dd></div>\n");
  }
  return html + "</dl>\n";
}

// Warnings about masked examples and values that are not finite. Empty if there are none.
std::string NoticeHtml(absl::Span<const SheetOutput> outputs, const Counts& counts) {
  std::string items;
  if (counts.masked > 0) {
    const std::string records = absl::StrJoin(counts.masked_records, ", ");
    absl::StrAppend(&items, "<li>", Count(counts.masked, "example"),
                    counts.masked == 1 ? " is" : " are", " masked: the record is damaged",
                    records.empty() ? "" : absl::StrCat(" (record_id ", records),
                    counts.masked > static_cast<int64_t>(kMaxNamedRecords) ? ", …" : "",
                    records.empty() ? "" : ")", ".</li>\n");
  }
  for (const SheetOutput& output : outputs) {
    if (output.summary.all_finite()) continue;
    absl::StrAppend(&items, "<li><b>", EscapeMarkup(output.name),
                    "</b>: ", output.summary.NotFiniteText(),
                    " of its values are NaN or infinite.</li>\n");
  }
  if (items.empty()) return "";
  return absl::StrCat("<aside class=\"notice\"><ul>\n", items, "</ul></aside>\n");
}

std::string SpecHtml(const v1::FeedSpec& spec) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(spec, &text);
  return absl::StrCat("<details class=\"sheet\"><summary>Feed spec</summary><pre>",
                      EscapeMarkup(text), "</pre></details>\n");
}

// How the transforms run. Empty if it is not known.
std::string ExplanationHtml(const std::string& explanation) {
  if (explanation.empty()) return "";
  return absl::StrCat("<details class=\"sheet\"><summary>How its transforms run</summary><pre>",
                      EscapeMarkup(explanation), "</pre></details>\n");
}

int64_t NumImages(absl::Span<const SheetOutput> outputs) {
  return std::count_if(outputs.begin(), outputs.end(),
                       [](const SheetOutput& output) { return output.image.has_value(); });
}

// What the page leaves out. Empty if it shows everything.
std::string LeftOutHtml(absl::Span<const SheetOutput> outputs, int64_t shown,
                        const Counts& counts) {
  std::string items;
  if (shown < counts.places()) {
    absl::StrAppend(&items, "<li>The first ", shown, " of ", counts.places(),
                    " places are shown. The table counts all places.</li>\n");
  }
  const int64_t images = NumImages(outputs);
  if (images > kMaxPicturesOfExample) {
    absl::StrAppend(&items, "<li>The first ", kMaxPicturesOfExample, " of ", images,
                    " image outputs of each example are drawn.</li>\n");
  }
  return items.empty() ? "" : absl::StrCat("<footer><ul>\n", items, "</ul></footer>\n");
}

}  // namespace

absl::StatusOr<std::string> ContactSheet(const v1::FeedSpec& spec, absl::Span<const Step> steps,
                                         const ContactSheetOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(Check(spec, steps, options));
  const PlaceKinds kinds(spec, options.order);
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<SheetOutput> outputs, SheetOutputs(spec, steps));
  Counts counts;
  int64_t shown = 0;
  std::vector<std::vector<PlaceOfStep>> shown_places;  // By step.
  for (const Step& step : steps) {
    std::vector<PlaceOfStep> places = PlacesOf(step, kinds);
    for (const PlaceOfStep& place : places) counts.Add(place.known);
    const int64_t wanted =
        std::min(static_cast<int64_t>(places.size()), options.max_examples - shown);
    places.resize(static_cast<size_t>(wanted));
    shown += wanted;
    for (const PlaceOfStep& place : places) {
      if (place.known.kind != PlaceKind::kExample) continue;
      for (SheetOutput& output : outputs) {
        if (!output.image.has_value()) continue;
        output.image->Widen(step.Tensor(place.core, output.index).data, place.slot);
      }
    }
    shown_places.push_back(std::move(places));
  }
  const std::string title =
      EscapeMarkup(options.title.empty() ? DatasetNames(spec) : options.title);
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Even if a name contains HTML, the page loads nothing and runs no script.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n<title>",
      title, " – Systole contact sheet</title>\n<style>", kBaseStyle, kSheetStyle,
      "</style></head>\n<body><main>\n<header><span class=\"badge\">contact sheet</span><h1>",
      title, "</h1><p>What the trainer gets: the tensors of ",
      Count(static_cast<int64_t>(steps.size()), "step"),
      " as they are in the memory of the trainer. Pictures are made from these values, not from "
      "the files of the dataset.</p></header>\n",
      NoticeHtml(outputs, counts), FactsHtml(spec, steps, options, counts),
      "<section class=\"sheet\"><h2>Outputs</h2>\n", OutputTableHtml(outputs, steps[0].layout()),
      "</section>\n", ExplanationHtml(options.explanation), SpecHtml(spec));
  const int64_t images = NumImages(outputs);
  for (size_t i = 0; i < steps.size() && !shown_places[i].empty(); ++i) {
    absl::StrAppend(&html, "<section><h2 class=\"step\">Step ", steps[i].number(),
                    "</h2>\n<div class=\"examples", images > 1 ? " wide" : "", "\">\n");
    for (const PlaceOfStep& place : shown_places[i]) {
      SYSTOLE_ASSIGN_OR_RETURN(
          const std::string card,
          ExampleCardHtml(steps[i], place.core, place.slot, place.known, outputs));
      html += card;
    }
    html += "</div></section>\n";
  }
  absl::StrAppend(&html, LeftOutHtml(outputs, shown, counts), "</main></body></html>\n");
  return html;
}

}  // namespace systole
