#include "core/cache/cache_metrics.h"

namespace systole {

std::vector<MetricLine<ValueCacheStats>> CacheMetrics() {
  using Stats = ValueCacheStats;
  constexpr MetricKind kCounter = MetricKind::kCounter;
  constexpr MetricKind kGauge = MetricKind::kGauge;
  return {
      {.name = "cache_hits",
       .kind = kCounter,
       .help = "How often the cache had a value of an output with `cache`.",
       .label = "store",
       .parts = {{"memory", ReadField<&Stats::memory_hits>},
                 {"disk", ReadField<&Stats::disk_hits>}}},
      {.name = "cache_misses",
       .kind = kCounter,
       .help = "How often the cache had no value of an output with `cache`.",
       .read = ReadField<&Stats::misses>},
      {.name = "cache_bytes",
       .kind = kGauge,
       .help = "Bytes that the cache keeps now.",
       .label = "store",
       .parts = {{"memory", ReadField<&Stats::memory_bytes>},
                 {"disk", ReadField<&Stats::disk_bytes>}}},
      {.name = "cache_budget_bytes",
       .kind = kGauge,
       .help = "The most bytes that the cache keeps. 0: it keeps nothing.",
       .label = "store",
       .parts = {{"memory", ReadField<&Stats::memory_budget_bytes>},
                 {"disk", ReadField<&Stats::disk_budget_bytes>}}},
      {.name = "cache_damaged_entries",
       .kind = kCounter,
       .help = "Entries on disk that failed their checks and were made anew.",
       .read = ReadField<&Stats::damaged_entries>},
  };
}

}  // namespace systole
