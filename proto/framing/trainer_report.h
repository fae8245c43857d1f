// The report in which a client tells its servers how long its trainer waits. Used by both ends.
//
// Thread-compatible value type; functions without state.
#ifndef SYSTOLE_PROTO_FRAMING_TRAINER_REPORT_H_
#define SYSTOLE_PROTO_FRAMING_TRAINER_REPORT_H_

#include <optional>

#include "core/batch/feed_limit.h"
#include "systole/v1/service.pb.h"

namespace systole {

struct TrainerReport {
  // The part of the last seconds in which the trainer waited for steps, 0 to 1. Nullopt: the
  // trainer's waits are not known, and the other fields have no meaning.
  std::optional<double> waits = std::nullopt;
  // How many steps the trainer took per second, from all servers together: 0 to kMaxStepsPerSecond.
  double steps_per_second = 0;
  FeedLimit limit = FeedLimit::kUnknown;
  // If `limit` is kDecode: the output that costs most to make, as an index in
  // ResolveFeedResponse.tensors. -1: not known.
  int output = -1;

  friend bool operator==(const TrainerReport&, const TrainerReport&) = default;
};

// The most steps per second that a report may have.
inline constexpr double kMaxStepsPerSecond = 1e6;

// The report in `message`. Values outside of the bounds above become the nearest bound. A
// wait_ratio of NaN gives `waits` = nullopt. A steps_per_second of NaN gives 0.
TrainerReport ReportOf(const v1::TrainerReport& message);
// Sets all fields except `client`. Leaves `message` as it is if `waits` is nullopt.
void SetReport(const TrainerReport& report, v1::TrainerReport& message);

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_TRAINER_REPORT_H_
