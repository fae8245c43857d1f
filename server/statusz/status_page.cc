#include "server/statusz/status_page.h"

#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/json/json_writer.h"
#include "core/page/base_style.h"
#include "core/text/foreign_text.h"
#include "core/text/markup_text.h"
#include "server/statusz/page_model.h"
#include "server/statusz/page_style.h"

namespace systole {
namespace {

// SHA-256, in base64, of the texts in <style> and in <script>. A browser applies no other style and
// runs no other script. StatusPageTest.TheContentSecurityPolicyHasTheStyleAndScriptHashes prints
// the hashes.
constexpr absl::string_view kStyleHash = "oFE7oPJZTHnXzg+Dia9ule/1oxYiKpzZNQ9YXkwp/Hw=";
constexpr absl::string_view kScriptHash = "xa64nmFZ4woQ6WIWfc6asonVGtX4EH6OF/xWp8/fnWQ=";

// `value` with the same digits as in `/metrics`.
std::string Exact(double value) {
  JsonWriter json;
  json.Double(value);
  return json.text();
}

std::string CellHtml(const PageCell& cell) {
  if (cell.series.empty()) return EscapeMarkup(cell.text);
  return absl::StrCat("<data data-series=\"", EscapeMarkup(cell.series), "\" value=\"",
                      Exact(cell.value), "\">", EscapeMarkup(cell.text), "</data>");
}

std::string RowHtml(const std::vector<PageCell>& cells) {
  std::string html = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppend(&html, i == 0 ? "<th scope=\"row\">" : "<td>", CellHtml(cells[i]),
                    i == 0 ? "</th>" : "</td>");
  }
  return html + "</tr>\n";
}

std::string TableHtml(const PageTable& table) {
  std::string html =
      absl::StrCat("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"",
                   table.id, "-title\"", table.rows.empty() ? " hidden" : "", "><table id=\"",
                   table.id, "-table\"><caption>", table.caption, "</caption><thead><tr>");
  for (const std::string& header : table.headers) {
    absl::StrAppend(&html, "<th scope=\"col\">", header, "</th>");
  }
  html += "</tr></thead><tbody>\n";
  for (const std::vector<PageCell>& row : table.rows) html += RowHtml(row);
  absl::StrAppend(&html, "</tbody></table></div><p class=\"rest\" id=\"", table.id, "-rest\">",
                  EscapeMarkup(table.rest), "</p>");
  return html;
}

std::string SectionHtml(const PageTable& table) {
  const std::string title = absl::StrCat("<h2 id=\"", table.id, "-title\">", table.title, "</h2>");
  const bool is_narrow = table.headers.size() == 2;
  const bool is_folded = table.id == "rest";
  return absl::StrCat("<section aria-labelledby=\"", table.id, "-title\"",
                      is_narrow ? " class=\"narrow\"" : "", ">",
                      is_folded ? absl::StrCat("<details><summary>", title, "</summary>") : title,
                      TableHtml(table), is_folded ? "</details>" : "", "</section>\n");
}

std::string FactsHtml(const std::vector<PageFact>& facts) {
  std::string html =
      "<section aria-labelledby=\"now-title\"><h2 id=\"now-title\">Now</h2><dl class=\"facts\">\n";
  for (const PageFact& fact : facts) {
    absl::StrAppend(&html, "<div><dt>", fact.label, "</dt><dd id=\"", fact.id, "\">",
                    CellHtml(fact.cell), "</dd></div>\n");
  }
  return html + "</dl></section>\n";
}

std::string PlotsHtml(const std::vector<PagePlot>& plots) {
  std::string html =
      "<section aria-labelledby=\"plots-title\"><h2 id=\"plots-title\">The last ten minutes</h2>"
      "<div class=\"plots\">\n";
  for (const PagePlot& plot : plots) {
    absl::StrAppend(&html, "<figure class=\"plot\"><figcaption>", plot.title,
                    "</figcaption><p id=\"", plot.id, "-most\">", EscapeMarkup(plot.most),
                    "</p><svg id=\"", plot.id, "-svg\" role=\"img\" aria-label=\"",
                    EscapeMarkup(plot.words), "\" viewBox=\"0 0 ", kPlotWidth, " ", kPlotHeight,
                    "\" preserveAspectRatio=\"none\"><path id=\"", plot.id, "-path\" d=\"",
                    plot.path,
                    "\"/></svg><p class=\"ends\" aria-hidden=\"true\">"
                    "<span>10 min ago</span><span>now</span></p><p id=\"",
                    plot.id, "-words\">", EscapeMarkup(plot.words), "</p></figure>\n");
  }
  return html + "</div></section>\n";
}

std::string PictureWords(const PictureSheet::Picture& picture) {
  return absl::StrCat("What was served as example ", picture.slot, " of the core");
}

std::string PicturesHtml(const ServerView& view, const PageModel& model) {
  std::string html = absl::StrCat(
      "<section aria-labelledby=\"pictures-title\"><h2 id=\"pictures-title\">What is served</h2>"
      "<p class=\"words\" id=\"pictures-words\">",
      EscapeMarkup(model.pictures), "</p><ul class=\"pictures\" id=\"pictures-list\">");
  if (view.pictures != nullptr) {
    for (const PictureSheet::Picture& picture : view.pictures->pictures) {
      absl::StrAppend(&html, "<li><img alt=\"", PictureWords(picture), "\" width=\"", picture.width,
                      "\" height=\"", picture.height, "\" src=\"data:image/jpeg;base64,",
                      absl::Base64Escape(picture.jpeg), "\"></li>");
    }
  }
  return html + "</ul></section>\n";
}

void AddCell(const PageCell& cell, JsonWriter& json) {
  json.BeginArray().String(cell.text);
  if (!cell.series.empty()) json.String(cell.series).Double(cell.value);
  json.EndArray();
}

std::string EventJson(const ServerView& view, const PageModel& model, bool with_pictures) {
  JsonWriter json;
  json.BeginObject().Field("state", model.state);
  json.Key("facts").BeginObject();
  for (const PageFact& fact : model.facts) AddCell(fact.cell, json.Key(fact.id));
  json.EndObject().Key("tables").BeginObject();
  for (const PageTable& table : model.tables) {
    json.Key(table.id).BeginArray();
    for (const std::vector<PageCell>& row : table.rows) {
      json.BeginArray();
      for (const PageCell& cell : row) AddCell(cell, json);
      json.EndArray();
    }
    json.EndArray();
  }
  json.EndObject().Key("rest").BeginObject();
  for (const PageTable& table : model.tables) json.Field(table.id, table.rest);
  json.EndObject().Key("plots").BeginObject();
  for (const PagePlot& plot : model.plots) {
    json.Key(plot.id).BeginObject().Field("path", plot.path).Field("most", plot.most);
    json.Field("words", plot.words).EndObject();
  }
  json.EndObject().Field("about_pictures", model.pictures);
  if (with_pictures) {
    json.Key("pictures").BeginArray();
    for (size_t i = 0; view.pictures != nullptr && i < view.pictures->pictures.size(); ++i) {
      const PictureSheet::Picture& picture = view.pictures->pictures[i];
      json.BeginArray().String(PictureWords(picture)).Int(picture.width).Int(picture.height);
      json.String(absl::Base64Escape(picture.jpeg)).EndArray();
    }
    json.EndArray();
  }
  json.EndObject();
  return json.text();
}

}  // namespace

const std::string& StatusPagePolicy() {
  static const auto& policy = *new std::string(absl::StrCat(
      "default-src 'none'; style-src 'sha256-", kStyleHash, "'; script-src 'sha256-", kScriptHash,
      "'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'"));
  return policy;
}

std::string StatusPage(const ServerView& view) {
  const PageModel model = PageModelOf(view);
  const std::string name = EscapeMarkup(ForeignName(model.name));
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>",
      name, " – Systole server</title><link rel=\"icon\" href=\"data:,\">\n<style>", kBaseStyle,
      kStatusStyle,
      "</style></head><body>\n<header class=\"top\"><span class=\"badge\">Systole server</span> "
      "<span id=\"state\" class=\"badge",
      view.draining ? " draining" : "", "\">", model.state, "</span><h1>", name,
      "</h1><p><span id=\"live\" role=\"status\">As it was when the page was loaded.</span> "
      "<button id=\"pause\" type=\"button\" hidden>Pause</button> "
      "<a href=\"statusz\">Reload</a></p></header>\n<main>\n",
      FactsHtml(model.facts));
  absl::StrAppend(&html, SectionHtml(model.tables.front()), PlotsHtml(model.plots),
                  PicturesHtml(view, model));
  for (size_t i = 1; i < model.tables.size(); ++i) html += SectionHtml(model.tables[i]);
  absl::StrAppend(&html,
                  "</main>\n<footer class=\"end\">The same numbers for a monitor: "
                  "<a href=\"metrics\">/metrics</a>. The config in force: "
                  "<a href=\"configz\">/configz</a>.</footer>\n<script>",
                  kStatusScript, "</script>\n</body></html>\n");
  return html;
}

std::string StatusEvent(const ServerView& view, int64_t known_pictures, bool is_last) {
  const int64_t number = view.pictures == nullptr ? 0 : view.pictures->number;
  return absl::StrCat(is_last ? "event: last\n" : "",
                      "data: ", EventJson(view, PageModelOf(view), number != known_pictures),
                      "\n\n");
}

}  // namespace systole
