#include "client/emulator/report/step_history.h"

#include <algorithm>
#include <cmath>

#include "core/status/check.h"

namespace systole::emulator {
namespace {

Spread SpreadOf(double value) {
  return {.mean = value, .min = value, .max = value, .values = std::isfinite(value) ? 1 : 0};
}

// A value that is not finite has no weight. Otherwise one such loss would make the mean of a whole
// row NaN.
Spread Merged(const Spread& a, const Spread& b) {
  if (a.values == 0) return b;
  if (b.values == 0) return a;
  const auto weight_a = static_cast<double>(a.values), weight_b = static_cast<double>(b.values);
  return {.mean = (a.mean * weight_a + b.mean * weight_b) / (weight_a + weight_b),
          .min = std::min(a.min, b.min),
          .max = std::max(a.max, b.max),
          .values = a.values + b.values};
}

// Merges `next`, which follows `row`, into `row`.
void Append(const StepRow& next, StepRow& row) {
  row.loss = Merged(row.loss, next.loss);
  row.accuracy = Merged(row.accuracy, next.accuracy);
  row.infeed_stall += next.infeed_stall;
  row.compute += next.compute;
  row.barrier += next.barrier;
  row.longest = std::max(row.longest, next.longest);
  row.steps += next.steps;
}

// Every `count` rows become one.
std::vector<StepRow> Merge(absl::Span<const StepRow> rows, size_t count) {
  std::vector<StepRow> merged;
  merged.reserve(rows.size() / count + 1);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % count == 0) {
      merged.push_back(rows[i]);
    } else {
      Append(rows[i], merged.back());
    }
  }
  return merged;
}

}  // namespace

void StepHistory::Add(const StepEntry& entry) {
  SYSTOLE_CHECK(rows_.empty() || entry.step == rows_.front().first_step + steps_);
  const StepRow row = {.first_step = entry.step,
                       .steps = 1,
                       .start = entry.start,
                       .infeed_stall = entry.infeed_stall,
                       .compute = entry.compute,
                       .barrier = entry.barrier,
                       .longest = entry.infeed_stall + entry.compute + entry.barrier,
                       .loss = SpreadOf(entry.loss),
                       .accuracy = SpreadOf(entry.accuracy),
                       .learning_rate = entry.learning_rate};
  ++steps_;
  if (!rows_.empty() && rows_.back().steps < steps_per_row_) {
    Append(row, rows_.back());
    return;
  }
  if (rows_.size() == kMaxRows) {
    rows_ = Merge(rows_, 2);
    steps_per_row_ *= 2;
  }
  rows_.push_back(row);
}

StepRow StepHistory::Total() const {
  SYSTOLE_CHECK(steps_ > 0);
  return MergeRows(rows_, 1).front();
}

std::vector<StepRow> MergeRows(absl::Span<const StepRow> rows, size_t max_rows) {
  SYSTOLE_CHECK(max_rows > 0);
  return Merge(rows, std::max<size_t>((rows.size() + max_rows - 1) / max_rows, 1));
}

}  // namespace systole::emulator
