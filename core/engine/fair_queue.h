// Decides which stream gets the next turn, also when some streams lack memory. Among streams that
// can go on, the least advanced stream of the least advanced peer goes first (FairClock).
//
// Only streams that have to begin a slice need memory. Three rules hold for these streams:
//   * Streams that hold no slice come before streams that hold slices.
//   * Streams that hold slices take turns. If the stream whose turn it is lacks memory, the other
//     streams that hold slices wait, too. Otherwise small slices could overtake a large slice for
//     ever.
//   * While a stream that holds no slice lacks memory, a stream that holds slices begins one only
//     if it then holds at most half of its own share of the memory (slice_budget.h). A lower limit
//     would do harm: the waiting stream may never find enough memory, and the other streams could
//     then have only one slice at a time, for ever.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_FAIR_QUEUE_H_
#define SYSTOLE_CORE_ENGINE_FAIR_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "core/engine/fair_clock.h"

namespace systole {

class FairQueue {
 public:
  // A turn ends when the cost of its work reaches `turn` (FairClock).
  explicit FairQueue(double turn) : clock_(turn) {}

  // The state of a stream when a thread looks for work. If all flags are false, the stream wants no
  // work.
  struct Candidate {
    FairClock::Account* account = nullptr;
    // Choose() does not choose the stream, and does not change whether its account wants work.
    bool left_out = false;
    // The stream has begun a slice with examples that can be handed out.
    bool has_more = false;
    // The stream has no slice with such examples, but may begin a slice.
    bool may_begin = false;
    // There is room for the slice that the stream may begin.
    bool has_room = false;
    // The stream holds no slice, and its next slice is needed now.
    bool empty_handed = false;
    // With one more slice the stream would hold at most half of its share.
    bool modest = false;
  };

  // `first` and `starved` are indexes of candidates.
  struct Choice {
    std::optional<size_t> first;    // The stream that goes first. nullopt: there is no work.
    std::optional<size_t> starved;  // The first in turn that is empty_handed and lacks room.
    int64_t wanting = 0;            // Streams that could go on.
  };

  // Whether Choose() also calls Account::SetWants() for each stream that is not left_out.
  enum class Accounts { kChange, kKeep };
  // O(candidates), without an allocation.
  static Choice Choose(absl::Span<const Candidate> candidates,
                       Accounts accounts = Accounts::kChange);

  // The clock of the accounts. The clock also remembers a peer whose streams are all closed, until
  // the other peers have reached its time (FairClock).
  FairClock& clock() { return clock_; }
  const FairClock& clock() const { return clock_; }

  // Counts the overdue tasks of a peer (worker_watch.h): one more if `overdue`, otherwise one less.
  void CountOverdue(const std::string& peer, bool overdue);
  bool IsOverdue(const std::string& peer) const { return overdue_.contains(peer); }

 private:
  FairClock clock_;
  std::map<std::string, int> overdue_;  // Peer -> how many overdue tasks, > 0.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_FAIR_QUEUE_H_
