#include "client/emulator/timing/infeed_clock.h"

#include <algorithm>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr int64_t kMaxCount = 65536;

absl::Status CheckCount(const char* name, int64_t value) {
  if (value >= 1 && value <= kMaxCount) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("InfeedOptions.", name, " is ", value, ", want 1 to ", kMaxCount));
}

absl::Status CheckTime(const char* name, absl::Duration time, bool may_be_zero) {
  const bool low = may_be_zero ? time < absl::ZeroDuration() : time <= absl::ZeroDuration();
  if (!low && time <= absl::Hours(1)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("InfeedOptions.", name, " is ",
                                                 absl::FormatDuration(time), ", want ",
                                                 may_be_zero ? "0" : "more than 0", " to an hour"));
}

}  // namespace

absl::StatusOr<InfeedClock> InfeedClock::Create(const InfeedOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckCount("num_cores", options.num_cores));
  SYSTOLE_RETURN_IF_ERROR(CheckCount("cores_per_chip", options.cores_per_chip));
  SYSTOLE_RETURN_IF_ERROR(CheckCount("queue_depth", options.queue_depth));
  SYSTOLE_RETURN_IF_ERROR(CheckTime("step_time", options.step_time, /*may_be_zero=*/false));
  SYSTOLE_RETURN_IF_ERROR(CheckTime("transfer_time", options.transfer_time, /*may_be_zero=*/true));
  return InfeedClock(options);
}

InfeedClock::InfeedClock(const InfeedOptions& options)
    : options_(options),
      starts_(static_cast<size_t>(options.queue_depth)),
      link_free_(static_cast<size_t>((options.num_cores - 1) / options.cores_per_chip + 1),
                 -absl::InfiniteDuration()),
      ready_(static_cast<size_t>(options.num_cores)) {}

void InfeedClock::Transfer(int begin, int end, absl::Duration room_at,
                           absl::Span<const absl::Duration> arrived) {
  order_.resize(static_cast<size_t>(end - begin));
  std::iota(order_.begin(), order_.end(), begin);
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) {
    return std::max(arrived[static_cast<size_t>(a)], room_at) <
           std::max(arrived[static_cast<size_t>(b)], room_at);
  });
  absl::Duration& link_free = link_free_[static_cast<size_t>(begin / options_.cores_per_chip)];
  for (const int core : order_) {
    const absl::Duration enqueued = std::max(arrived[static_cast<size_t>(core)], room_at);
    link_free = std::max(enqueued, link_free) + options_.transfer_time;
    ready_[static_cast<size_t>(core)] = link_free;
  }
}

StepRecord InfeedClock::Step(absl::Span<const absl::Duration> arrived) {
  SYSTOLE_CHECK(arrived.size() == ready_.size());
  absl::Duration& slot = starts_[static_cast<size_t>(steps_ % options_.queue_depth)];
  const absl::Duration room_at = steps_ < options_.queue_depth ? -absl::InfiniteDuration() : slot;
  for (int begin = 0; begin < options_.num_cores; begin += options_.cores_per_chip) {
    Transfer(begin, std::min(begin + options_.cores_per_chip, options_.num_cores), room_at,
             arrived);
  }
  StepRecord record = {.step = steps_, .overhead = overhead_, .compute = options_.step_time};
  record.infeed_stall.reserve(ready_.size());
  for (const absl::Duration ready : ready_) {
    record.infeed_stall.push_back(std::max(absl::ZeroDuration(), ready - end_));
  }
  record.wait = record.max_infeed_stall();
  record.start = end_ + record.wait;
  slot = record.start;
  end_ = record.end();
  overhead_ = absl::ZeroDuration();
  ++steps_;
  return record;
}

void InfeedClock::Slip(absl::Duration overhead) {
  end_ += overhead;
  overhead_ += overhead;
}

}  // namespace systole::emulator
