// Whose turn it is among streams of which some lack memory: the least advanced one of the least
// advanced peer (FairClock), of those that can go on.
//
// Memory matters only to streams that have to begin a slice. Of these the ones that hold nothing go
// before all others. The others go in turn, and wait behind the one whose turn it is if there is no
// room for it: what is too large for now must not be overtaken for ever. For one that holds nothing
// they keep half of the budget free, and no more: it may be larger than what is ever free, and
// nobody may bring the others down to a slice at a time.
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
  // `turn` as in FairClock.
  explicit FairQueue(double turn) : clock_(turn) {}

  // A stream, as it stands when a thread asks for work. One of which nothing else is true wants no
  // work.
  struct Candidate {
    FairClock::Account* account = nullptr;
    // Neither chosen nor looked at: it wants what it wanted before.
    bool left_out = false;
    // Has begun a slice of which examples can be handed out.
    bool has_more = false;
    // Or else would begin one,
    bool may_begin = false;
    // for which there is room.
    bool has_room = false;
    // Holds no slice, and somebody needs its next one now.
    bool empty_handed = false;
    // Would hold half of its share at most with one more.
    bool modest = false;
  };

  // Candidates by their numbers.
  struct Choice {
    std::optional<size_t> first;    // nullopt: there is no work.
    std::optional<size_t> starved;  // First of those that hold nothing and find no room.
    int64_t wanting = 0;            // Those that could go.
  };

  // Also tells the accounts who wants work. O(candidates), without an allocation.
  static Choice Choose(absl::Span<const Candidate> candidates);

  // The clock of the accounts. Peers stay in it.
  FairClock& clock() { return clock_; }
  const FairClock& clock() const { return clock_; }

  // One more task of the peer is overdue, or one less.
  void CountOverdue(const std::string& peer, bool overdue);
  bool IsOverdue(const std::string& peer) const { return overdue_.contains(peer); }

 private:
  FairClock clock_;
  std::map<std::string, int> overdue_;  // Tasks of each peer that has some.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_FAIR_QUEUE_H_
