#include "core/engine/slice_times.h"

#include <algorithm>

namespace systole {

void SliceTimes::SetReads(bool reads, absl::Duration now) {
  if (reads_) read_ += now - since_;
  since_ = now;
  reads_ = reads;
}

void SliceTimes::AddWork(absl::Duration worked, absl::Duration slept) {
  worked_ += worked;
  slept_ += std::min(slept, worked);
}

void SliceTimes::Done(absl::Duration now) {
  SetReads(false, now);
  done_ = now;
}

StageTimes SliceTimes::For(absl::Duration wanted, bool reads_ahead, absl::Duration now) const {
  StageTimes stages;
  stages.read = read_;
  stages.make = done_ - begun_ - read_;
  if (worked_ > absl::ZeroDuration()) {
    const absl::Duration slept = stages.make * absl::FDivDuration(slept_, worked_);
    stages.read += slept;
    stages.make -= slept;
  }
  if (wanted < begun_) {
    (reads_ahead ? stages.read : stages.make) += begun_ - wanted;
  } else {
    // Reading comes first, so the time before `wanted` was mostly reading.
    const absl::Duration early = std::min(wanted, done_) - begun_;
    const absl::Duration read_early = std::min(early, stages.read);
    stages.read -= read_early;
    stages.make -= early - read_early;
  }
  stages.wait = now - std::max(done_, wanted);
  stages.read = BoundedStageTime(stages.read);
  stages.make = BoundedStageTime(stages.make);
  stages.wait = BoundedStageTime(stages.wait);
  return stages;
}

}  // namespace systole
