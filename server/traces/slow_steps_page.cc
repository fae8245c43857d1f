#include "server/traces/slow_steps_page.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/json/json_writer.h"
#include "core/text/markup_text.h"

namespace systole {
namespace {

constexpr char kHead[] =
    R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Slow steps</title>
<style>
:root { color-scheme: light dark; font: 15px/1.4 system-ui, sans-serif; }
body { margin: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 0 0 2rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid; }
tbody tr:hover { background: color-mix(in srgb, currentColor 8%, transparent); }
.text { text-align: left; }
</style>
</head>
<body>
<h1>Slow steps</h1>
<p>The slowest steps of each dataset in each of the last minutes with steps. Times are in
milliseconds, newest minute first. Steps are made ahead of the client, so the times of two steps may
overlap.</p>
<ul>
<li><b>read</b>: waited for storage. <b>make</b>: decoded and transformed, or waited for a thread.
<b>wait</b>: done, and the client had not yet taken the steps before. These three are of the slice
that took longest, which is the slowest core's.</li>
<li><b>send</b>: until the network had taken all slices. A client that takes steps slowly makes it
long.</li>
</ul>
)";

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

// "0 to 7", or "3" for one core.
std::string CoresText(const SlowStep& step) {
  const int last = step.core_end - 1;
  return step.core_begin == last ? absl::StrCat(last) : absl::StrCat(step.core_begin, " to ", last);
}

void AppendTimeCell(absl::Duration time, std::string& html) {
  absl::StrAppendFormat(&html, "<td>%.1f</td>", absl::ToDoubleMilliseconds(time));
}

void AppendTable(const char* caption, const std::vector<SlowStep>& steps, std::string& html) {
  absl::StrAppend(&html, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"",
                  caption, "\">\n<table>\n<caption>", caption, "</caption>\n<thead><tr>");
  for (const char* head : {"when (UTC)", "dataset"}) {
    absl::StrAppend(&html, "<th scope=\"col\" class=\"text\">", head, "</th>");
  }
  for (const char* head : {"step", "cores", "slowest core", "read", "make", "wait", "send"}) {
    absl::StrAppend(&html, "<th scope=\"col\">", head, "</th>");
  }
  absl::StrAppend(&html, "<th scope=\"col\" class=\"text\">trace</th></tr></thead>\n<tbody>\n");
  for (const SlowStep& step : steps) {
    absl::StrAppend(&html, "<tr><td class=\"text\">", TimeText(step.ended),
                    "</td><td class=\"text\">", EscapeMarkup(step.dataset), "</td><td>", step.step,
                    "</td><td>", CoresText(step), "</td><td>", step.slowest_core, "</td>");
    for (const absl::Duration time :
         {step.times.read, step.times.make, step.times.wait, step.times.send}) {
      AppendTimeCell(time, html);
    }
    absl::StrAppend(&html, "<td class=\"text\">", step.trace.is_set() ? HexOf(step.trace) : "",
                    "</td></tr>\n");
  }
  if (steps.empty()) {
    absl::StrAppend(&html, "<tr><td class=\"text\" colspan=\"10\">no step yet</td></tr>\n");
  }
  absl::StrAppend(&html, "</tbody>\n</table>\n</div>\n");
}

void AppendSteps(const std::vector<SlowStep>& steps, JsonWriter& json) {
  json.BeginArray();
  for (const SlowStep& step : steps) {
    json.BeginObject().Field("ended", TimeText(step.ended)).Field("dataset", step.dataset);
    json.Field("step", step.step).Field("core_begin", step.core_begin);
    json.Field("core_end", step.core_end).Field("slowest_core", step.slowest_core);
    json.Field("read_seconds", absl::ToDoubleSeconds(step.times.read));
    json.Field("make_seconds", absl::ToDoubleSeconds(step.times.make));
    json.Field("wait_seconds", absl::ToDoubleSeconds(step.times.wait));
    json.Field("send_seconds", absl::ToDoubleSeconds(step.times.send));
    if (step.trace.is_set()) json.Field("trace", HexOf(step.trace));
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string SlowStepsHtml(const SlowStepLists& lists) {
  std::string html = kHead;
  AppendTable("Slowest to be made (read + make): the server and its storage", lists.made, html);
  AppendTable("Slowest to be sent: the network and the client", lists.sent, html);
  absl::StrAppend(&html, "</body>\n</html>\n");
  return html;
}

std::string SlowStepsJson(const SlowStepLists& lists) {
  JsonWriter json;
  json.BeginObject().Key("slowest_made");
  AppendSteps(lists.made, json);
  json.Key("slowest_sent");
  AppendSteps(lists.sent, json);
  json.EndObject();
  return absl::StrCat(json.text(), "\n");
}

}  // namespace systole
