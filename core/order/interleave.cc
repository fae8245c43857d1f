#include "core/order/interleave.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

#include "core/status/check.h"

namespace systole {

Interleave::Interleave(absl::Span<const int64_t> records_per_file, int64_t cycle_length,
                       int64_t block_length)
    : block_length_(block_length) {
  SYSTOLE_CHECK(cycle_length >= 1 && cycle_length <= kMaxCycleLength && block_length >= 1);
  // Slots beyond the number of files would stay empty.
  const auto num_slots = std::clamp<int64_t>(
      cycle_length, 1, std::max<int64_t>(1, static_cast<int64_t>(records_per_file.size())));
  slots_.resize(static_cast<size_t>(num_slots));
  using Turn = std::pair<int64_t, int64_t>;  // Round, slot.
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> empty;
  for (int64_t slot = 0; slot < num_slots; ++slot) empty.emplace(0, slot);
  std::map<int64_t, int64_t> rate_changes;  // By round.
  for (size_t file = 0; file < records_per_file.size(); ++file) {
    const int64_t size = records_per_file[file];
    const auto [round, slot] = empty.top();
    empty.pop();
    slots_[static_cast<size_t>(slot)].push_back(
        {.file = static_cast<int64_t>(file), .size = size, .round = round});
    const int64_t full_turns = size / block_length;
    const int64_t rest = size % block_length;
    if (full_turns > 0) {  // Here block_length is at most `size`, so the sums do not overflow.
      rate_changes[round] += block_length;
      rate_changes[round + full_turns] -= block_length;
    }
    rate_changes[round + full_turns] += rest;
    rate_changes[round + full_turns + 1] -= rest;
    empty.emplace(round + full_turns + 1, slot);
    num_records_ += size;
  }
  Change change;
  for (const auto& [round, delta] : rate_changes) {
    change.records += (round - change.round) * change.rate;
    change.round = round;
    change.rate += delta;
    changes_.push_back(change);
  }
}

int64_t Interleave::RecordsIn(const Opened& opened, int64_t round) const {
  const int64_t turn = round - opened.round;
  // The file has ended. Returns here, because the product below could overflow.
  if (turn > opened.size / block_length_) return 0;
  return std::min(opened.size - turn * block_length_, block_length_);
}

template <typename Visit>
void Interleave::VisitTurns(int64_t position, Visit visit) const {
  SYSTOLE_CHECK(position >= 0 && position < num_records_);
  // The last change with at most `position` records before it. The rate of this change is not 0:
  // if it were, the next change would have as many records before it, and would be the last.
  const auto after = std::upper_bound(
      changes_.begin(), changes_.end(), position,
      [](int64_t wanted, const Change& change) { return wanted < change.records; });
  const Change& change = *std::prev(after);
  const int64_t round = change.round + (position - change.records) / change.rate;
  int64_t begin = position - (position - change.records) % change.rate;
  for (const std::vector<Opened>& slot : slots_) {
    const auto later = std::upper_bound(
        slot.begin(), slot.end(), round,
        [](int64_t wanted, const Opened& opened) { return wanted < opened.round; });
    if (later == slot.begin()) continue;
    const Opened& opened = *std::prev(later);
    const int64_t records = RecordsIn(opened, round);
    if (records == 0) continue;
    const At first = {.file = opened.file, .index = (round - opened.round) * block_length_};
    if (!visit(begin, records, first)) return;
    begin += records;
  }
}

Interleave::At Interleave::RecordAt(int64_t position) const {
  At found;
  VisitTurns(position, [&](int64_t begin, int64_t records, const At& first) {
    found = {.file = first.file, .index = first.index + (position - begin)};
    return position >= begin + records;
  });
  return found;
}

Interleave::At Interleave::RecordAt(int64_t position, Round& round) const {
  std::vector<Round::Turn>& turns = round.turns_;
  if (turns.empty() || position < turns[round.turn_].begin || position >= round.end_) {
    turns.clear();
    round.turn_ = 0;
    VisitTurns(position, [&](int64_t begin, int64_t records, const At& first) {
      turns.push_back({.begin = begin, .first = first});
      round.end_ = begin + records;
      return true;
    });
  }
  while (round.turn_ + 1 < turns.size() && turns[round.turn_ + 1].begin <= position) ++round.turn_;
  const Round::Turn& turn = turns[round.turn_];
  return {.file = turn.first.file, .index = turn.first.index + (position - turn.begin)};
}

}  // namespace systole
