#include "server/statusz/page_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/batch/feed_limit.h"
#include "core/page/number_text.h"
#include "core/text/foreign_text.h"
#include "server/statusz/status_history.h"

namespace systole {
namespace {

constexpr absl::string_view kServerPrefix = "systole_server_";
constexpr absl::string_view kDatasetPrefix = "systole_server_dataset_";
constexpr absl::string_view kUnknown = "–";

// A table of the page. It shows the metrics whose name, without kServerPrefix, begins with one of
// `prefixes`. The last table shows all other metrics, so that no metric is missing on the page.
struct MetricGroup {
  const char* id;
  const char* title;
  const char* caption;
  std::vector<absl::string_view> prefixes;
};

const std::vector<MetricGroup>& MetricGroups() {
  static const auto& groups = *new std::vector<MetricGroup>{
      {"memory",
       "Memory and caches",
       "What this server keeps in memory and on disk",
       {"memory_", "scratch_", "resident_", "cache_", "block_memory_", "block_bytes"}},
      {"ends",
       "Refusals and ends",
       "Why requests were refused, and why streams and connections ended",
       {"requests_refused", "stream_ends", "connections_turned_away", "connections_dropped",
        "reads_timed_out", "block_reads_failed"}},
      {"rest", "All other numbers", "Everything else that this server counts", {""}},
  };
  return groups;
}

std::string ShownSeconds(absl::Duration time) {
  const int64_t seconds = absl::ToInt64Seconds(time);
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, " min ", seconds % 60, " s");
  if (seconds < 86400) return absl::StrCat(seconds / 3600, " h ", seconds / 60 % 60, " min");
  return absl::StrCat(seconds / 86400, " d ", seconds / 3600 % 24, " h");
}

std::string ShownShare(std::optional<double> share) {
  return share.has_value() ? absl::StrFormat("%.0f %%", 100 * *share) : std::string(kUnknown);
}

absl::string_view StripUnits(absl::string_view name, NumberUnit& unit) {
  unit = NumberUnit::kCount;
  if (absl::ConsumeSuffix(&name, "_bytes")) unit = NumberUnit::kBytes;
  if (absl::ConsumeSuffix(&name, "_seconds")) unit = NumberUnit::kSeconds;
  if (absl::ConsumeSuffix(&name, "_ratio")) unit = NumberUnit::kFraction;
  return name;
}

std::string Words(absl::string_view text) { return absl::StrReplaceAll(text, {{"_", " "}}); }

// The series of `sample`, as the text format of Prometheus writes it.
std::string SeriesName(const MetricFamily& family, const MetricSample& sample) {
  if (sample.labels.empty()) return family.name;
  return absl::StrCat(
      family.name, "{",
      absl::StrJoin(sample.labels, ",",
                    [](std::string* out, const MetricLabel& label) {
                      absl::StrAppend(
                          out, label.name, "=\"",
                          absl::StrReplaceAll(label.value,
                                              {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
                          "\"");
                    }),
      "}");
}

PageCell CellOf(const MetricFamily& family, const MetricSample& sample) {
  NumberUnit unit = NumberUnit::kCount;
  StripUnits(absl::StripSuffix(family.name, "_total"), unit);
  return {.text = NumberText(sample.value, unit),
          .series = SeriesName(family, sample),
          .value = sample.value};
}

const MetricFamily* Find(const ServerView& view, absl::string_view name) {
  for (const MetricFamily& family : view.families) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

// The cell of a sample of the family `name`: of the sample whose only label has the value
// `label_value`, or of the sample without labels if `label_value` is empty. kUnknown if there is no
// such sample.
PageCell CellOf(const ServerView& view, absl::string_view name, absl::string_view label_value) {
  const MetricFamily* const family = Find(view, name);
  if (family == nullptr) return {.text = std::string(kUnknown)};
  for (const MetricSample& sample : family->samples) {
    if (sample.labels.size() > 1) continue;
    if ((sample.labels.empty() ? "" : sample.labels.front().value) != label_value) continue;
    return CellOf(*family, sample);
  }
  return {.text = std::string(kUnknown)};
}

std::string LabelOf(const ServerView& view, absl::string_view name, absl::string_view label) {
  const MetricFamily* const family = Find(view, name);
  if (family == nullptr || family->samples.empty()) return std::string(kUnknown);
  for (const MetricLabel& known : family->samples.front().labels) {
    if (known.name == label) return known.value;
  }
  return std::string(kUnknown);
}

PageTable MetricTable(const ServerView& view, const MetricGroup& group,
                      std::vector<bool>& is_shown) {
  PageTable table = {
      .id = group.id, .title = group.title, .caption = group.caption, .headers = {"What", "Now"}};
  for (size_t i = 0; i < view.families.size(); ++i) {
    const MetricFamily& family = view.families[i];
    absl::string_view name = family.name;
    if (is_shown[i] || family.kind == MetricKind::kHistogram) continue;
    if (absl::StartsWith(name, kDatasetPrefix) || !absl::ConsumePrefix(&name, "systole_")) continue;
    absl::ConsumePrefix(&name, "server_");
    if (name == "build_info") continue;
    if (std::none_of(group.prefixes.begin(), group.prefixes.end(),
                     [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); })) {
      continue;
    }
    is_shown[i] = true;
    NumberUnit unit = NumberUnit::kCount;
    const std::string title = Words(StripUnits(absl::StripSuffix(name, "_total"), unit));
    for (const MetricSample& sample : family.samples) {
      std::string what = title;
      for (const MetricLabel& label : sample.labels) {
        absl::StrAppend(&what, ", ", Words(label.value));
      }
      table.rows.push_back({{.text = std::move(what)}, CellOf(family, sample)});
    }
  }
  return table;
}

// The note below a list that leaves out `count` rows.
std::string More(size_t count) { return count > 0 ? absl::StrCat("and ", count, " more") : ""; }

// What limits a stream, as its client says: "decode (image)".
std::string Limit(const StreamSnapshot& stream) {
  if (!stream.trainer.waits.has_value()) return std::string(kUnknown);
  const absl::string_view limit = LimitName(stream.trainer.limit);
  return stream.output.empty() ? std::string(limit) : absl::StrCat(limit, " (", stream.output, ")");
}

// Why no stream is listed.
std::string NoStreams(const ServerView& view) {
  return CellOf(view, "systole_server_active_streams", "").value > 0
             ? "Streams run, but each reads a dataset that you may not list."
             : "No stream runs.";
}

PageTable StreamTable(const ServerView& view) {
  const std::vector<StreamSnapshot>& streams = view.streams.streams;
  const size_t shown = std::min(streams.size(), kMaxRows);
  PageTable table = {.id = "streams",
                     .title = "Streams",
                     .caption = "Streams that run now; those whose trainer waits most come first",
                     .headers = {"Stream", "Dataset", "To", "Open for", "Steps", "Steps per second",
                                 "Sent per second", "Trainer waits", "Limited by"},
                     .rest = streams.empty()
                                 ? NoStreams(view)
                                 : More(streams.size() - shown + view.streams.left_out)};
  for (size_t i = 0; i < shown; ++i) {
    const StreamSnapshot& stream = streams[i];
    StreamSnapshot before = {};  // A new stream began with zeros.
    for (const StreamSnapshot& earlier : view.streams_before) {
      if (earlier.number == stream.number) before = earlier;
    }
    const double seconds = std::max(absl::ToDoubleSeconds(stream.open - before.open), 1e-3);
    const double steps = static_cast<double>(stream.steps - before.steps);
    const double bytes = static_cast<double>(stream.payload_bytes - before.payload_bytes);
    table.rows.push_back(
        {{.text = absl::StrCat(stream.number)},
         {.text = stream.dataset},
         {.text = stream.client},
         {.text = ShownSeconds(stream.open)},
         {.text = NumberText(static_cast<double>(stream.steps), NumberUnit::kCount)},
         {.text = absl::StrFormat("%.1f", steps / seconds)},
         {.text = NumberText(bytes / seconds, NumberUnit::kBytesPerSecond)},
         {.text = ShownShare(stream.trainer.waits)},
         {.text = Limit(stream)}});
  }
  return table;
}

PageTable DatasetTable(const ServerView& view) {
  PageTable table = {.id = "datasets",
                     .title = "Datasets",
                     .caption = "Datasets that are served, and their damage",
                     .headers = {"Dataset", "Records", "Damaged stretches", "Masked examples"}};
  const MetricFamily* const records = Find(view, "systole_server_dataset_records");
  const size_t count = records == nullptr ? 0 : records->samples.size();
  for (size_t i = 0; i < std::min(count, kMaxRows); ++i) {
    const std::string& name = records->samples[i].labels.front().value;
    table.rows.push_back({{.text = ForeignName(name)},
                          CellOf(*records, records->samples[i]),
                          CellOf(view, "systole_server_dataset_damaged_stretches", name),
                          CellOf(view, "systole_server_dataset_masked_examples_total", name)});
  }
  table.rest = count == 0 ? "No dataset is served." : More(count - std::min(count, kMaxRows));
  return table;
}

// A value, and how many seconds ago the number had this value.
struct PlotPoint {
  double ago = 0;
  double value = 0;
};

// The rate from each sample to the next, drawn at the time of the later sample.
std::vector<PlotPoint> Rates(const std::vector<HistorySample>& history,
                             double HistorySample::*number) {
  std::vector<PlotPoint> points;
  for (size_t i = 1; i < history.size(); ++i) {
    const double seconds = absl::ToDoubleSeconds(history[i].at - history[i - 1].at);
    // The last sample may be only a moment newer than the sample before it.
    if (seconds < 0.5) continue;
    points.push_back({absl::ToDoubleSeconds(history.back().at - history[i].at),
                      std::max(0.0, history[i].*number - history[i - 1].*number) / seconds});
  }
  return points;
}

std::vector<PlotPoint> Waits(const std::vector<HistorySample>& history) {
  std::vector<PlotPoint> points;
  for (const HistorySample& sample : history) {
    if (!sample.wait_ratio.has_value() || !std::isfinite(*sample.wait_ratio)) continue;
    points.push_back({absl::ToDoubleSeconds(history.back().at - sample.at), *sample.wait_ratio});
  }
  return points;
}

// `top` is the value at the plot's upper edge. 0: the largest value of `points`.
PagePlot PlotOf(const char* id, const char* title, const std::vector<PlotPoint>& points,
                NumberUnit unit, absl::string_view suffix, double top) {
  PagePlot plot = {
      .id = id, .title = title, .most = std::string(kUnknown), .words = "Nothing is known yet."};
  if (points.empty()) return plot;
  const auto text = [&](double value) { return absl::StrCat(NumberText(value, unit), suffix); };
  double most = 0;
  for (const PlotPoint& point : points) most = std::max(most, point.value);
  if (top == 0) top = most > 0 ? most : 1;
  for (const PlotPoint& point : points) {
    const double x = kPlotWidth * (1 - point.ago / absl::ToDoubleSeconds(kHistoryTime));
    const double y = kPlotHeight * (1 - std::min(point.value / top, 1.0));
    absl::StrAppendFormat(&plot.path, "%c%.1f %.1f", plot.path.empty() ? 'M' : 'L',
                          std::max(x, 0.0), y);
  }
  plot.most = text(top);
  plot.words =
      absl::StrCat("Now ", text(points.back().value), ", ", text(most), " at most in the last ",
                   ShownSeconds(absl::Seconds(std::ceil(points.front().ago))), ".");
  return plot;
}

std::string PictureWords(const ServerView& view) {
  if (view.pictures == nullptr) return view.no_pictures;
  const PictureSheet& sheet = *view.pictures;
  return absl::StrCat("From ", ForeignName(absl::StrJoin(sheet.datasets, ", ")), ", step ",
                      sheet.step, ", core ", sheet.core, ": ", ForeignText(sheet.how), ".");
}

}  // namespace

PageModel PageModelOf(const ServerView& view) {
  PageModel model = {.name = view.name, .state = view.draining ? "draining" : "serving"};
  const std::vector<PlotPoint> bytes = Rates(view.history, &HistorySample::payload_bytes);
  const std::vector<PlotPoint> steps = Rates(view.history, &HistorySample::steps);
  const std::optional<double> wait =
      view.history.empty() ? std::nullopt : view.history.back().wait_ratio;
  model.facts = {
      {"up-for", "Up for", {.text = ShownSeconds(view.up_for)}},
      {"version", "Version", {.text = LabelOf(view, "systole_server_build_info", "version")}},
      {"content-version",
       "Content version",
       {.text = LabelOf(view, "systole_server_build_info", "content_version")}},
      {"active-streams", "Streams", CellOf(view, "systole_server_active_streams", "")},
      {"free-places", "Free places", CellOf(view, "systole_server_stream_places", "free")},
      {"sent-rate",
       "Sent per second",
       {.text = bytes.empty() ? std::string(kUnknown)
                              : NumberText(bytes.back().value, NumberUnit::kBytesPerSecond)}},
      {"step-rate",
       "Steps per second",
       {.text =
            steps.empty() ? std::string(kUnknown) : absl::StrFormat("%.1f", steps.back().value)}},
      {"wait", "Trainers wait", {.text = ShownShare(wait)}},
  };
  model.plots = {
      PlotOf("sent", "Sent per second", bytes, NumberUnit::kBytesPerSecond, "", 0),
      PlotOf("steps", "Steps per second", steps, NumberUnit::kCount, "", 0),
      PlotOf("waits", "Trainers wait", Waits(view.history), NumberUnit::kFraction, "", 1)};
  model.tables = {StreamTable(view), DatasetTable(view)};
  std::vector<bool> is_shown(view.families.size(), false);
  for (const MetricGroup& group : MetricGroups()) {
    model.tables.push_back(MetricTable(view, group, is_shown));
  }
  model.pictures = PictureWords(view);
  return model;
}

}  // namespace systole
