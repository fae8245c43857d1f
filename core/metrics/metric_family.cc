#include "core/metrics/metric_family.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace systole {

std::vector<MetricFamily> FamiliesOf(absl::string_view prefix,
                                     const std::vector<MetricReading>& readings) {
  std::vector<MetricFamily> families;
  families.reserve(readings.size());
  for (const MetricReading& reading : readings) {
    MetricFamily& family = families.emplace_back(MetricFamily{
        .name = PrometheusName(prefix, reading), .kind = reading.kind, .help = reading.help});
    for (const MetricValue& value : reading.values) {
      MetricSample& sample = family.samples.emplace_back(MetricSample{.value = value.value});
      if (!reading.label.empty()) sample.labels.push_back({reading.label, value.label_value});
    }
  }
  return families;
}

std::string FamiliesTable(const std::vector<MetricFamily>& families) {
  std::string table = "| name | what |\n|---|---|\n";
  for (const MetricFamily& family : families) {
    std::string labels;
    if (!family.samples.empty() && !family.samples.front().labels.empty()) {
      labels = absl::StrCat("{",
                            absl::StrJoin(family.samples.front().labels, ",",
                                          [](std::string* out, const MetricLabel& label) {
                                            absl::StrAppend(out, label.name);
                                          }),
                            "}");
    }
    absl::StrAppend(&table, "| `", family.name, labels, "` | ", family.help, " |\n");
  }
  return table;
}

}  // namespace systole
