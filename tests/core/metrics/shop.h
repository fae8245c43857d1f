// A table of metrics for tests: the counts of a shop.
#ifndef SYSTOLE_TESTS_CORE_METRICS_SHOP_H_
#define SYSTOLE_TESTS_CORE_METRICS_SHOP_H_

#include <cstdint>
#include <vector>

#include "core/metrics/metric.h"

namespace systole {

struct Shop {
  int64_t visits = 0;
  int64_t guests = 0;
  int64_t cash = 0;
  int64_t cards = 0;
  int64_t stored_bytes = 0;
  double open_seconds = 0;
};

inline std::vector<MetricLine<Shop>> ShopMetrics() {
  return {{.name = "visits",
           .kind = MetricKind::kCounter,
           .help = "People who came in.",
           .read = ReadField<&Shop::visits>},
          {.name = "guests",
           .kind = MetricKind::kGauge,
           .help = "People who are in.",
           .read = ReadField<&Shop::guests>},
          {.name = "sales",
           .kind = MetricKind::kCounter,
           .help = "What was sold.",
           .label = "paid",
           .parts = {{"in_cash", ReadField<&Shop::cash>},
                     {"by_card", ReadField<&Shop::cards>, "of any bank"}}},
          {.name = "stored_bytes",
           .kind = MetricKind::kGauge,
           .help = "What lies there.",
           .read = ReadField<&Shop::stored_bytes>},
          {.name = "open_seconds",
           .kind = MetricKind::kCounter,
           .help = "How long it was open.",
           .read = ReadField<&Shop::open_seconds>}};
}

inline std::vector<MetricReading> ReadShop(const Shop& shop) {
  return ReadMetrics(ShopMetrics(), shop);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_METRICS_SHOP_H_
