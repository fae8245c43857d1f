#include "core/metrics/exposition.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace systole {
namespace {

// Writes up to sixteen digits. So whole numbers up to 2^53 are exact, and 0.1 is not written as
// 0.10000000000000001.
std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return absl::StrFormat("%.16g", value);
}

std::string EscapedHelp(absl::string_view help) {
  return absl::StrReplaceAll(help, {{"\\", "\\\\"}, {"\n", "\\n"}});
}

std::string EscapedValue(absl::string_view value) {
  return absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\"", "\\\""}});
}

void AppendHistogram(const std::string& name, const MetricSample& sample,
                     std::vector<MetricSeries>& series) {
  const HistogramReading& reading = sample.histogram;
  int64_t so_far = 0;
  for (size_t i = 0; i < reading.counts.size(); ++i) {
    so_far += reading.counts[i];
    const double bound =
        i < reading.bounds.size() ? reading.bounds[i] : std::numeric_limits<double>::infinity();
    MetricSeries& bucket = series.emplace_back(
        MetricSeries{absl::StrCat(name, "_bucket"), sample.labels, static_cast<double>(so_far)});
    bucket.labels.push_back({"le", NumberText(bound)});
  }
  series.push_back({absl::StrCat(name, "_sum"), sample.labels, reading.sum});
  series.push_back({absl::StrCat(name, "_count"), sample.labels, static_cast<double>(so_far)});
}

}  // namespace

absl::string_view ExpositionKind(MetricKind kind) {
  switch (kind) {
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::vector<MetricSeries> SeriesOf(const MetricFamily& family) {
  std::vector<MetricSeries> series;
  for (const MetricSample& sample : family.samples) {
    if (family.kind == MetricKind::kHistogram) {
      AppendHistogram(family.name, sample, series);
    } else {
      series.push_back({family.name, sample.labels, sample.value});
    }
  }
  return series;
}

std::string ExpositionOf(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) {
    if (family.samples.empty()) continue;
    absl::StrAppend(&text, "# HELP ", family.name, " ", EscapedHelp(family.help), "\n# TYPE ",
                    family.name, " ", ExpositionKind(family.kind), "\n");
    for (const MetricSeries& series : SeriesOf(family)) {
      text += series.name;
      absl::string_view separator = "{";
      for (const MetricLabel& label : series.labels) {
        absl::StrAppend(&text, separator, label.name, "=\"", EscapedValue(label.value), "\"");
        separator = ",";
      }
      absl::StrAppend(&text, series.labels.empty() ? " " : "} ", NumberText(series.value), "\n");
    }
  }
  return text;
}

}  // namespace systole
