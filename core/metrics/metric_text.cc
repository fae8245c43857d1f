#include "core/metrics/metric_text.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace systole {
namespace {

std::string Words(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", " "}}); }

// The name without the unit, because the value is shown with its unit.
std::string Title(absl::string_view name) {
  switch (UnitOf(name)) {
    case MetricUnit::kBytes:
      return Words(absl::StripSuffix(name, "_bytes"));
    case MetricUnit::kSeconds:
      return Words(absl::StripSuffix(name, "_seconds"));
    case MetricUnit::kCount:
    case MetricUnit::kRatio:
      return Words(name);
  }
  return Words(name);
}

std::string Amount(MetricUnit unit, double value) {
  switch (unit) {
    case MetricUnit::kBytes:
      return absl::StrFormat("%.1f MB", value / 1e6);
    case MetricUnit::kSeconds:
      return absl::StrFormat("%.2f s", value);
    case MetricUnit::kRatio:
      return absl::StrFormat("%.2f", value);
    case MetricUnit::kCount:
      return absl::StrFormat("%.0f", value);
  }
  return "";
}

std::string Rate(MetricUnit unit, double per_second) {
  if (unit == MetricUnit::kCount) return absl::StrFormat(" (%.1f/s)", per_second);
  return absl::StrCat(" (", Amount(unit, per_second), "/s)");
}

// The values that are not 0, with their rates. Gauges without a label are shown even at 0. Empty
// if there is nothing to show.
std::string ValuesText(const MetricReading& reading, const std::vector<MetricReading>& rates) {
  const MetricUnit unit = UnitOf(reading.name);
  const bool shows_zero = reading.kind == MetricKind::kGauge && reading.label.empty();
  std::vector<std::string> texts;
  for (const MetricValue& value : reading.values) {
    if (value.value == 0 && !shows_zero) continue;
    std::string text = Amount(unit, value.value);
    if (!reading.label.empty()) absl::StrAppend(&text, " ", Words(value.label_value));
    const double rate = FindMetric(rates, reading.name, value.label_value).value_or(0);
    if (rate > 0) absl::StrAppend(&text, Rate(unit, rate));
    texts.push_back(std::move(text));
  }
  return absl::StrJoin(texts, ", ");
}

void AppendNumber(double value, JsonWriter& json) {
  // Whole numbers are written in full. Otherwise a million would be written as 1e+06.
  constexpr double kExact = 9e18;
  if (std::trunc(value) == value && std::abs(value) < kExact) {
    json.Int(static_cast<int64_t>(value));
  } else {
    json.Double(value);
  }
}

}  // namespace

std::string MetricsText(const std::vector<MetricReading>& readings,
                        const std::vector<MetricReading>& rates) {
  std::vector<std::pair<std::string, std::string>> lines;
  size_t width = 0;
  for (const MetricReading& reading : readings) {
    std::string values = ValuesText(reading, rates);
    if (values.empty()) continue;
    lines.emplace_back(Title(reading.name), std::move(values));
    width = std::max(width, lines.back().first.size());
  }
  std::string text;
  for (const auto& [title, values] : lines) {
    absl::StrAppend(&text, "  ", title, std::string(width - title.size(), ' '), "  ", values, "\n");
  }
  return text;
}

void AppendMetrics(const std::vector<MetricReading>& readings, JsonWriter& json) {
  for (const MetricReading& reading : readings) {
    json.Key(reading.name);
    if (reading.label.empty()) {
      AppendNumber(reading.values.empty() ? 0 : reading.values.front().value, json);
      continue;
    }
    json.BeginObject();
    for (const MetricValue& value : reading.values) {
      AppendNumber(value.value, json.Key(value.label_value));
    }
    json.EndObject();
  }
}

std::string MetricsTable(absl::string_view prefix, const std::vector<MetricReading>& readings) {
  std::string table = "| name | for Prometheus | what |\n|---|---|---|\n";
  for (const MetricReading& reading : readings) {
    std::string labels;
    std::string values;
    if (!reading.label.empty()) {
      labels = absl::StrCat("{", reading.label, "}");
      values = absl::StrCat(" `", reading.label, "`: ",
                            absl::StrJoin(reading.values, ", ",
                                          [](std::string* out, const MetricValue& value) {
                                            absl::StrAppend(out, value.label_value);
                                            if (value.help.empty()) return;
                                            absl::StrAppend(out, " (", value.help, ")");
                                          }),
                            ".");
    }
    absl::StrAppend(&table, "| `", reading.name, "` | `", PrometheusName(prefix, reading), labels,
                    "` | ", reading.help, values, " |\n");
  }
  return table;
}

}  // namespace systole
