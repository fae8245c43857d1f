// Metrics in Prometheus' text format.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_ADMIN_EXPOSITION_H_
#define SYSTOLE_SERVER_ADMIN_EXPOSITION_H_

#include <string>
#include <vector>

#include "core/metrics/metric_family.h"

namespace systole {

// The format's name in `Content-Type`.
inline constexpr char kExpositionType[] = "text/plain; version=0.0.4; charset=utf-8";

// Families without a sample are left out.
std::string ExpositionOf(const std::vector<MetricFamily>& families);

}  // namespace systole

#endif  // SYSTOLE_SERVER_ADMIN_EXPOSITION_H_
