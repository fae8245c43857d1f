// The metrics of a cache, made from ValueCacheStats.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CACHE_CACHE_METRICS_H_
#define SYSTOLE_CORE_CACHE_CACHE_METRICS_H_

#include <vector>

#include "core/cache/value_cache.h"
#include "core/metrics/metric.h"

namespace systole {

std::vector<MetricLine<ValueCacheStats>> CacheMetrics();

}  // namespace systole

#endif  // SYSTOLE_CORE_CACHE_CACHE_METRICS_H_
