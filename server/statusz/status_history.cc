#include "server/statusz/status_history.h"

#include <optional>
#include <utility>

#include "absl/strings/string_view.h"

namespace systole {
namespace {

// 0 if there is no such value.
double ValueOf(const std::vector<MetricFamily>& families, absl::string_view name,
               absl::string_view label_value = "") {
  for (const MetricFamily& family : families) {
    if (family.name != name) continue;
    for (const MetricSample& sample : family.samples) {
      if ((sample.labels.empty() ? "" : sample.labels.front().value) == label_value) {
        return sample.value;
      }
    }
  }
  return 0;
}

HistorySample SampleOf(absl::Duration now, const std::vector<MetricFamily>& families) {
  return {.at = now,
          .payload_bytes = ValueOf(families, "systole_server_payload_bytes_total"),
          .steps = ValueOf(families, "systole_server_steps_served_total"),
          .wait_ratio = MeanWait(families)};
}

}  // namespace

std::optional<double> MeanWait(const std::vector<MetricFamily>& families) {
  if (ValueOf(families, "systole_trainers_reporting") == 0) return std::nullopt;
  return ValueOf(families, "systole_trainer_wait_ratio", "mean");
}

bool StatusHistory::Wants(absl::Duration now) const {
  MutexLock lock(mu_);
  return samples_.empty() || now - samples_.back().at >= kSampleInterval;
}

void StatusHistory::Add(absl::Duration now, const std::vector<MetricFamily>& families,
                        std::vector<StreamSnapshot> streams) {
  const HistorySample sample = SampleOf(now, families);
  MutexLock lock(mu_);
  samples_.push_back(sample);
  while (now - samples_.front().at > kHistoryTime) samples_.pop_front();
  streams_before_ = std::exchange(streams_, std::move(streams));
}

void StatusHistory::Fill(absl::Duration now, ServerView& view) const {
  const HistorySample sample = SampleOf(now, view.families);
  MutexLock lock(mu_);
  view.history.assign(samples_.begin(), samples_.end());
  view.history.push_back(sample);
  view.streams_before = streams_before_;
}

}  // namespace systole
