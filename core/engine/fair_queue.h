// Decides which stream gets the next turn. Some streams may lack memory. Among streams that can go
// on, the least advanced stream of the least advanced peer goes first (FairClock).
//
// Memory matters only to streams that have to begin a slice. Among these, streams that hold no
// slice go first. Streams that hold slices take turns. If the stream with the turn finds too little
// memory, the other streams that hold slices wait. Otherwise small slices could overtake a large
// slice for ever. Each stream has a share of the memory (slice_budget.h). While a stream without
// any slice waits for memory, another stream begins a slice only if it then holds at most half of
// its own share. The slice that waits may never find enough memory. With a limit lower than half,
// the other streams could then have only one slice at a time, for ever.
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

  // The state of a stream when a thread asks for work. If all flags are false, the stream wants no
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
    std::optional<size_t> first;    // nullopt: there is no work.
    std::optional<size_t> starved;  // The first one, by turn, that is empty_handed and lacks room.
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
