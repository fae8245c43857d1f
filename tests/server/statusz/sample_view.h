// A ServerView for tests of a server's page, with every kind of content.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_SERVER_STATUSZ_SAMPLE_VIEW_H_
#define SYSTOLE_TESTS_SERVER_STATUSZ_SAMPLE_VIEW_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/metrics/metric_family.h"
#include "server/metrics/dataset_metrics.h"
#include "server/metrics/server_metrics.h"
#include "server/metrics/trainer_metrics.h"
#include "server/statusz/server_view.h"
#include "server/streams/service_counters.h"
#include "server/streams/trainer_waits.h"

namespace systole {

// `name` is the name of a dataset, and the beginning of a client's name.
inline ServerView SampleView(const std::string& name = "flowers") {
  ServiceCounters counters;
  counters.active_streams = 2;
  counters.streams_opened = 12;
  counters.steps_served = 123456;
  counters.payload_bytes = int64_t{7} << 32;
  ServerView view = {.name = absl::StrCat(name, ":8470"), .up_for = absl::Seconds(93784)};
  view.families =
      FamiliesOf(kServerMetricPrefix, ReadServerMetrics({.service = counters, .max_streams = 256}));
  for (MetricFamily& family :
       FamiliesOf(kTrainerMetricPrefix,
                  ReadTrainerMetrics({.trainers = 2, .mean_waits = .25, .max_waits = .5}))) {
    view.families.push_back(std::move(family));
  }
  view.families.push_back(BuildInfo("1.2.3", "c7"));
  for (MetricFamily& family : DatasetFamilies({{name, 3625, 3, 17}, {"second", 8, 0, 0}})) {
    view.families.push_back(std::move(family));
  }
  view.streams.streams = {
      {.number = 12,
       .client = absl::StrCat("identity '", name, "' at ipv4:192.0.2.1:4711"),
       .dataset = name,
       .open = absl::Seconds(75),
       .steps = 4000,
       .payload_bytes = int64_t{5} << 30,
       .trainer = {.waits = .5, .steps_per_second = 20, .limit = FeedLimit::kDecode, .output = 0},
       .output = "image"},
      {.number = 3, .client = "ipv6:%5B::1%5D:4712", .dataset = "second", .open = absl::Hours(5)}};
  view.streams.left_out = 7;
  view.streams_before = {view.streams.streams[0]};
  view.streams_before[0].open -= absl::Seconds(8);
  view.streams_before[0].steps -= 168;
  view.streams_before[0].payload_bytes -= 80'000'000;
  for (int i = 0; i < 121; ++i) {
    view.history.push_back({.at = absl::Seconds(5 * i),
                            .payload_bytes = 1e9 * i + 1e5 * i * i,
                            .steps = 100.0 * i,
                            .wait_ratio = i % 20 / 40.0});
  }
  view.no_pictures = "There are none.";
  return view;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_SERVER_STATUSZ_SAMPLE_VIEW_H_
