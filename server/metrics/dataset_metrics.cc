#include "server/metrics/dataset_metrics.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/metrics/server_metrics.h"

namespace systole {
namespace {

constexpr absl::string_view kOther = "other";

struct Line {
  absl::string_view name;
  MetricKind kind;
  absl::string_view help;
  int64_t DatasetNumbers::*number;
};

constexpr Line kLines[] = {
    {"dataset_records", MetricKind::kGauge, "Records of each dataset.", &DatasetNumbers::records},
    {"dataset_damaged_stretches", MetricKind::kGauge,
     "Damaged stretches of each dataset that were found while it was indexed.",
     &DatasetNumbers::damaged_stretches},
    {"dataset_masked_examples_total", MetricKind::kCounter,
     "Examples of each dataset masked in feeds, for damaged records.",
     &DatasetNumbers::masked_examples},
};

}  // namespace

std::vector<MetricFamily> DatasetFamilies(const std::vector<DatasetNumbers>& datasets) {
  std::vector<MetricFamily> families;
  for (const Line& line : kLines) {
    MetricFamily& family =
        families.emplace_back(MetricFamily{.name = absl::StrCat(kServerMetricPrefix, line.name),
                                           .kind = line.kind,
                                           .help = std::string(line.help)});
    MetricSample other = {.labels = {{"dataset", std::string(kOther)}}};
    bool has_other = false;
    for (const DatasetNumbers& dataset : datasets) {
      const auto value = static_cast<double>(dataset.*line.number);
      // A dataset that is called kOther must not make a second series of that name.
      if (family.samples.size() < kMaxDatasetSeries && dataset.name != kOther) {
        family.samples.push_back({.labels = {{"dataset", dataset.name}}, .value = value});
      } else {
        other.value += value;
        has_other = true;
      }
    }
    if (has_other) family.samples.push_back(std::move(other));
  }
  return families;
}

MetricFamily BuildInfo(absl::string_view version, absl::string_view content_version) {
  return {.name = absl::StrCat(kServerMetricPrefix, "build_info"),
          .kind = MetricKind::kGauge,
          .help =
              "Always 1. The labels say the version of the program, and the content version of its "
              "feeds.",
          .samples = {{.labels = {{"version", std::string(version)},
                                  {"content_version", std::string(content_version)}},
                       .value = 1}}};
}

}  // namespace systole
