// A metric is one line of a table: a name, a kind, a help text, and a function that reads the value
// from a source. A source is a struct of counters, plain or atomic. Code that counts only changes
// the counters. Code that shows metrics goes through all lines of the table. So for a new metric,
// it is enough to add a counter and a line.
//
//   struct Shop { int64_t visits; int64_t cash; int64_t cards; };
//   const std::vector<MetricLine<Shop>> lines = {
//       {.name = "visits", .kind = MetricKind::kCounter, .help = "People who came in.",
//        .read = ReadField<&Shop::visits>},
//       {.name = "earned", .kind = MetricKind::kCounter, .help = "Money.", .label = "by",
//        .parts = {{"cash", ReadField<&Shop::cash>}, {"cards", ReadField<&Shop::cards>}}}};
//   const std::vector<MetricReading> readings = ReadMetrics(lines, shop);
//
// A name is lower-case words with underscores, at most 64 bytes, unique in its table. If the metric
// has a unit, the unit is the last word of the name: _bytes, _seconds or _ratio. The name does not
// contain the word "total", because PrometheusName() adds this word to the names of counters.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_METRICS_METRIC_H_
#define SYSTOLE_CORE_METRICS_METRIC_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace systole {

enum class MetricKind {
  kGauge,    // The value now.
  kCounter,  // A sum since the start. It never falls.
  // How often a number lay between certain bounds (histogram.h). Only a MetricFamily can have this
  // kind, because a line of a table is read as one number for each label value.
  kHistogram,
};

enum class MetricUnit { kCount, kBytes, kSeconds, kRatio };

// The unit that is the last word of `name`.
MetricUnit UnitOf(absl::string_view name);

// One of the values of a metric with a label.
template <typename Source>
struct MetricPart {
  absl::string_view label_value;
  double (*read)(const Source& source);
  // The meaning of the label's value, if it is not obvious. A few words, not a sentence.
  absl::string_view help = "";
};

// A line of a table. It has either `read`, or `label` and `parts`.
template <typename Source>
struct MetricLine {
  absl::string_view name;
  MetricKind kind;
  // The meaning of the metric, in one or more sentences that are clear on their own.
  absl::string_view help;
  double (*read)(const Source& source) = nullptr;
  // The name of the label. Each part has its own value of the label. The number of parts is fixed,
  // because no label value comes from a peer or a file.
  absl::string_view label = "";
  std::vector<MetricPart<Source>> parts;
};

struct MetricValue {
  std::string label_value;  // Empty if the metric has no label.
  double value = 0;
  std::string help;
};

// A metric with its values at one moment.
struct MetricReading {
  std::string name;
  MetricKind kind = MetricKind::kGauge;
  std::string help;
  std::string label;  // Empty if the metric has one value, without a label.
  std::vector<MetricValue> values;
};

// For `read` of MetricLine and MetricPart: returns the number in the member `field` of a Source.
template <auto field, typename Source>
double ReadField(const Source& source) {
  return static_cast<double>(source.*field);
}

template <typename Source>
std::vector<MetricReading> ReadMetrics(const std::vector<MetricLine<Source>>& lines,
                                       const Source& source) {
  std::vector<MetricReading> readings;
  for (const MetricLine<Source>& line : lines) {
    MetricReading& reading = readings.emplace_back(MetricReading{
        std::string(line.name), line.kind, std::string(line.help), std::string(line.label), {}});
    if (line.read != nullptr) reading.values.push_back({.value = line.read(source)});
    for (const MetricPart<Source>& part : line.parts) {
      reading.values.push_back(
          {std::string(part.label_value), part.read(source), std::string(part.help)});
    }
  }
  return readings;
}

// The value of a metric, or of its part. nullopt if there is no such metric or part.
std::optional<double> FindMetric(const std::vector<MetricReading>& readings, absl::string_view name,
                                 absl::string_view label_value = "");

// `prefix` followed by the name, and then by `_total` for a counter.
std::string PrometheusName(absl::string_view prefix, const MetricReading& reading);

// How much each counter grew per second between two readings that are `seconds` apart. nullopt if a
// counter fell, because then the counting process was restarted.
std::optional<std::vector<MetricReading>> RatesBetween(const std::vector<MetricReading>& before,
                                                       const std::vector<MetricReading>& after,
                                                       double seconds);

}  // namespace systole

#endif  // SYSTOLE_CORE_METRICS_METRIC_H_
