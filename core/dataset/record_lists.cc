#include "core/dataset/record_lists.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {

size_t RecordLists::size() const {
  MutexLock lock(mu_);
  return static_cast<size_t>(std::count_if(
      lists_.begin(), lists_.end(), [](const auto& entry) { return entry.second.in_use(); }));
}

absl::StatusOr<std::shared_ptr<const RecordList>> RecordLists::TakePlace(const std::string& key,
                                                                         const std::string& peer) {
  MutexLock lock(mu_);
  std::erase_if(lists_, [](const auto& entry) { return !entry.second.in_use(); });
  const auto found = lists_.find(key);
  if (found != lists_.end()) return found->second.list.lock();
  const auto own = static_cast<size_t>(std::count_if(
      lists_.begin(), lists_.end(), [&](const auto& entry) { return entry.second.peer == peer; }));
  const size_t left = kMost - std::min(kMost, lists_.size());
  if (own < left) {
    lists_[key] = {.peer = peer, .in_making = true};
    return nullptr;
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "of the ", kMost, " lists of records by condition (where) that feeds may use at once, ", left,
      " are left, and ", own,
      " of those in use are yours; a peer gets another list only while it has fewer lists than are "
      "left. End a feed whose condition no other feed has, or use the same condition in several "
      "feeds, which then share a list"));
}

absl::StatusOr<std::shared_ptr<const RecordList>> RecordLists::Find(
    const std::string& key, const std::string& peer,
    absl::FunctionRef<absl::StatusOr<RecordList>()> make) {
  absl::StatusOr<std::shared_ptr<const RecordList>> known = TakePlace(key, peer);
  if (absl::IsResourceExhausted(known.status()) && make_room_ != nullptr && make_room_()) {
    known = TakePlace(key, peer);
  }
  if (!known.ok() || *known != nullptr) return known;
  absl::StatusOr<RecordList> made = make();
  MutexLock lock(mu_);
  Entry& entry = lists_[key];
  std::shared_ptr<const RecordList> list = entry.list.lock();  // A list that another thread made.
  if (list != nullptr) return list;
  if (!made.ok()) {
    lists_.erase(key);
    return made.status();
  }
  list = std::make_shared<const RecordList>(*std::move(made));
  entry = {.peer = peer, .list = list};
  return list;
}

}  // namespace systole
