// Metrics of each dataset, and of the build. They are not lines of the table in server_metrics.h,
// because the values of their labels come from the config or from the build.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_METRICS_DATASET_METRICS_H_
#define SYSTOLE_SERVER_METRICS_DATASET_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/metrics/metric_family.h"

namespace systole {

// The most datasets that have series of their own. All others count together, as "other". A monitor
// keeps each series for weeks, and a config may name thousands of datasets.
inline constexpr size_t kMaxDatasetSeries = 100;

struct DatasetNumbers {
  std::string name;
  int64_t records = 0;
  int64_t damaged_stretches = 0;  // Found while indexing.
  int64_t masked_examples = 0;
};

// `datasets` must keep its order while the server runs, because only the first datasets have series
// of their own.
std::vector<MetricFamily> DatasetFamilies(const std::vector<DatasetNumbers>& datasets);

// systole_server_build_info: always 1, with the versions as labels.
MetricFamily BuildInfo(absl::string_view version, absl::string_view content_version);

}  // namespace systole

#endif  // SYSTOLE_SERVER_METRICS_DATASET_METRICS_H_
