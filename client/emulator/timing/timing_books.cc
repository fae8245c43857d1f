#include "client/emulator/timing/timing_books.h"

namespace systole::emulator {

void TimingBooks::AddOpenWait(absl::Duration wait) {
  if (steps_ == 0) return;
  meter_.AddOpenWait(wait);
  waits_.Add(wait);
}

void TimingBooks::Add(const StepRecord& record) {
  meter_.Add(record);
  if (steps_++ == 0) {
    first_wait_ = record.wait;
  } else {
    waits_.Add(record.wait);
  }
}

}  // namespace systole::emulator
