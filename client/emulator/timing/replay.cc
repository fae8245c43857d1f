#include "client/emulator/timing/replay.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole::emulator {

PopArrival Recording(PopArrival pop, const MonotonicClock& clock, Arrivals& arrivals) {
  return [pop = std::move(pop), begin = clock(),
          &arrivals](int core) -> absl::StatusOr<std::optional<SliceArrival>> {
    const absl::StatusOr<std::optional<SliceArrival>> slice = pop(core);
    if (!slice.ok() || !slice->has_value()) {
      // Drops the arrivals of a step that not all cores got.
      arrivals.ns.resize(static_cast<size_t>(arrivals.steps() * arrivals.num_cores));
      return slice;
    }
    if (static_cast<int64_t>(arrivals.ns.size()) == kMaxArrivalTimes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a recording holds at most ", kMaxArrivalTimes,
                       " arrivals, one for each core and step; give fewer --steps"));
    }
    if (arrivals.ns.empty()) arrivals.first_step = (*slice)->step;
    arrivals.ns.push_back(
        std::max<int64_t>(0, absl::ToInt64Nanoseconds((*slice)->arrived_at - begin)));
    return slice;
  };
}

absl::StatusOr<TimingBooks> Replay(const Arrivals& arrivals, InfeedOptions options,
                                   const std::function<void(const StepRecord&)>& on_step) {
  options.num_cores = arrivals.num_cores;
  SYSTOLE_ASSIGN_OR_RETURN(InfeedClock clock, InfeedClock::Create(options));
  TimingBooks books;
  std::vector<absl::Duration> arrived(static_cast<size_t>(arrivals.num_cores));
  for (size_t i = 0; i < arrivals.ns.size(); i += arrived.size()) {
    for (size_t core = 0; core < arrived.size(); ++core) {
      arrived[core] = absl::Nanoseconds(arrivals.ns[i + core]);
    }
    const StepRecord record = clock.Step(arrived);
    books.Add(record);
    if (on_step != nullptr) on_step(record);
  }
  return books;
}

}  // namespace systole::emulator
