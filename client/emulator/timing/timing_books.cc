#include "client/emulator/timing/timing_books.h"

#include <algorithm>
#include <utility>

namespace systole::emulator {

int64_t MaxStepRecords(int num_cores) {
  constexpr int64_t kMaxRecords = 100'000;
  constexpr int64_t kMaxStalls = 1'000'000;
  return std::clamp<int64_t>(kMaxStalls / num_cores, 2, kMaxRecords);
}

void TimingBooks::AddOpenWait(absl::Duration wait) {
  if (steps_ == 0) return;
  meter_.AddOpenWait(wait);
  waits_.Add(wait);
}

void TimingBooks::Add(StepRecord record) {
  meter_.Add(record);
  if (steps_ == 0) {
    first_wait_ = record.wait;
  } else {
    waits_.Add(record.wait);
  }
  if (steps_++ % record_stride_ != 0) return;
  const int64_t most = MaxStepRecords(static_cast<int>(record.infeed_stall.size()));
  if (static_cast<int64_t>(records_.size()) == most) {
    size_t kept = 0;
    for (size_t i = 0; i < records_.size(); i += 2) {
      if (i > 0) records_[kept] = std::move(records_[i]);
      ++kept;
    }
    records_.resize(kept);
    record_stride_ *= 2;
    if (record.step % record_stride_ != 0) return;
  }
  records_.push_back(std::move(record));
}

}  // namespace systole::emulator
