#include "core/engine/fair_queue.h"

namespace systole {

FairQueue::Choice FairQueue::Choose(absl::Span<const Candidate> candidates, Accounts accounts) {
  const auto can_go = [](const Candidate& candidate) {
    return candidate.has_more || (candidate.may_begin && candidate.has_room);
  };
  Choice choice;
  for (const Candidate& candidate : candidates) {
    if (candidate.left_out || !can_go(candidate)) continue;
    if (accounts == Accounts::kChange) candidate.account->SetWants(true);
    ++choice.wanting;
  }
  const auto prefer = [&](size_t number, std::optional<size_t>& best) {
    if (!best.has_value() || candidates[number].account->GoesBefore(*candidates[*best].account)) {
      best = number;
    }
  };
  std::optional<size_t> holder;  // The first in turn of the streams that hold slices.
  std::optional<size_t> modest;  // The first in turn of the modest streams that hold slices.
  bool empty_handed = false;     // Whether an empty-handed stream can begin a slice.
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.left_out) continue;
    const bool can = can_go(candidate);
    // The loop above has made all calls of SetWants(true). So if one stream of a peer begins to
    // want work when another stream of the peer stops, the peer wants work all the time.
    if (!can && accounts == Accounts::kChange) candidate.account->SetWants(false);
    if (candidate.has_more) {
      prefer(i, choice.first);
    } else if (candidate.may_begin && !candidate.empty_handed) {
      prefer(i, holder);
      if (candidate.modest) prefer(i, modest);
    } else if (candidate.may_begin) {
      prefer(i, can ? choice.first : choice.starved);
      empty_handed = empty_handed || can;
    }
  }
  if (choice.starved.has_value()) holder = modest;
  if (holder.has_value() && !empty_handed && can_go(candidates[*holder])) {
    prefer(*holder, choice.first);
  }
  return choice;
}

void FairQueue::CountOverdue(const std::string& peer, bool overdue) {
  int& tasks = overdue_[peer];
  tasks += overdue ? 1 : -1;
  if (tasks == 0) overdue_.erase(peer);
}

}  // namespace systole
