#include "proto/framing/trainer_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace systole {
namespace {

// A FeedLimit has the same number as in messages.
static_assert(static_cast<int>(FeedLimit::kUnknown) == v1::TrainerReport::UNKNOWN);
static_assert(static_cast<int>(FeedLimit::kStorage) == v1::TrainerReport::STORAGE);
static_assert(static_cast<int>(FeedLimit::kDecode) == v1::TrainerReport::DECODE);
static_assert(static_cast<int>(FeedLimit::kWire) == v1::TrainerReport::WIRE);
static_assert(static_cast<int>(FeedLimit::kClient) == v1::TrainerReport::CLIENT);
static_assert(static_cast<int>(FeedLimit::kTrainer) == v1::TrainerReport::TRAINER);
static_assert(static_cast<int>(FeedLimit::kNothing) == v1::TrainerReport::NOTHING);
static_assert(v1::TrainerReport::Limit_ARRAYSIZE == kNumFeedLimits);

}  // namespace

TrainerReport ReportOf(const v1::TrainerReport& message) {
  if (!message.has_wait_ratio() || std::isnan(message.wait_ratio())) return {};
  TrainerReport report = {.waits = std::clamp(message.wait_ratio(), 0.0, 1.0)};
  if (!std::isnan(message.steps_per_second())) {
    report.steps_per_second = std::clamp(message.steps_per_second(), 0.0, kMaxStepsPerSecond);
  }
  // A later release may send a limit that this release does not know.
  if (v1::TrainerReport::Limit_IsValid(message.limit())) {
    report.limit = static_cast<FeedLimit>(message.limit());
  }
  if (report.limit == FeedLimit::kDecode && message.costliest_output() > 0) {
    report.output = message.costliest_output() - 1;
  }
  return report;
}

void SetReport(const TrainerReport& report, v1::TrainerReport& message) {
  if (!report.waits.has_value()) return;
  message.set_wait_ratio(*report.waits);
  message.set_steps_per_second(report.steps_per_second);
  message.set_limit(static_cast<v1::TrainerReport::Limit>(report.limit));
  if (report.output >= 0 && report.output < std::numeric_limits<int>::max()) {
    message.set_costliest_output(report.output + 1);
  }
}

}  // namespace systole
