#include "core/dataset/record_lists.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {

std::shared_ptr<const RecordList> RecordLists::Known(const std::string& key) const {
  MutexLock lock(mu_);
  const auto found = lists_.find(key);
  return found == lists_.end() ? nullptr : found->second.lock();
}

size_t RecordLists::size() const {
  MutexLock lock(mu_);
  return static_cast<size_t>(std::count_if(
      lists_.begin(), lists_.end(), [](const auto& entry) { return !entry.second.expired(); }));
}

absl::StatusOr<std::shared_ptr<const RecordList>> RecordLists::Find(
    const std::string& key, absl::FunctionRef<absl::StatusOr<RecordList>()> make) {
  if (std::shared_ptr<const RecordList> known = Known(key); known != nullptr) return known;
  {
    MutexLock lock(mu_);
    if (making_) {
      return absl::UnavailableError(
          "the records of another condition (where) are being looked up; ask again");
    }
    std::erase_if(lists_, [](const auto& entry) { return entry.second.expired(); });
    if (lists_.size() >= kMost) {
      return absl::ResourceExhaustedError(
          absl::StrCat("feeds use ", kMost,
                       " lists of records by condition (where), the most at "
                       "once; end a feed that has another condition, or use the same one"));
    }
    making_ = true;
  }
  absl::StatusOr<RecordList> made = make();
  MutexLock lock(mu_);
  making_ = false;
  SYSTOLE_RETURN_IF_ERROR(made.status());
  auto list = std::make_shared<const RecordList>(*std::move(made));
  lists_[key] = list;
  return list;
}

}  // namespace systole
