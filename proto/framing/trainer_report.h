// What a client tells its servers of its trainer's waits, as both ends see it.
//
// Thread-compatible value type; functions without state.
#ifndef SYSTOLE_PROTO_FRAMING_TRAINER_REPORT_H_
#define SYSTOLE_PROTO_FRAMING_TRAINER_REPORT_H_

#include <optional>

#include "core/batch/feed_limit.h"
#include "systole/v1/service.pb.h"

namespace systole {

struct TrainerReport {
  // The part of the last seconds in which the trainer waited for steps, 0 to 1. Nullopt: nothing is
  // known of the trainer, and the other fields have no meaning.
  std::optional<double> waits = std::nullopt;
  // Steps that it took a second, of all servers together: 0 to kMaxStepsPerSecond.
  double steps_per_second = 0;
  FeedLimit limit = FeedLimit::kUnknown;
  // kDecode: the tensor of the output that costs most to make. -1: not known.
  int output = -1;

  friend bool operator==(const TrainerReport&, const TrainerReport&) = default;
};

// More steps a second are not believed.
inline constexpr double kMaxStepsPerSecond = 1e6;

// The report in `message`, within the bounds above whatever the peer sent. A NaN is not known.
TrainerReport ReportOf(const v1::TrainerReport& message);
// Sets everything but the client's number.
void SetReport(const TrainerReport& report, v1::TrainerReport& message);

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_TRAINER_REPORT_H_
