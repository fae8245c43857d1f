#include "core/engine/slice_shelf.h"

#include <iterator>
#include <utility>

#include "core/status/check.h"

namespace systole {

void SliceShelf::Add(const SharedSlicePtr& slice) {
  entries_.emplace(slice->key(), Entry{.slice = slice, .kept = std::nullopt});
}

SharedSlicePtr SliceShelf::Find(const SharedSlice::Key& key) const {
  if (entries_.empty()) return nullptr;
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.slice;
}

bool SliceShelf::Has(const SharedSlice& slice) const {
  const auto found = entries_.find(slice.key());
  return found != entries_.end() && found->second.slice.get() == &slice;
}

void SliceShelf::Remove(const SharedSlice& slice) {
  const auto found = entries_.find(slice.key());
  if (found != entries_.end() && found->second.slice.get() == &slice) Take(found);
}

bool SliceShelf::HasRoom(int64_t cost_bytes) const {
  return kept_bytes_ + cost_bytes <= max_kept_bytes_ && kept_.size() < max_kept_;
}

void SliceShelf::Keep(const SharedSlice& slice) {
  SYSTOLE_CHECK(HasRoom(slice.cost_bytes()));
  const auto found = entries_.find(slice.key());
  SYSTOLE_CHECK(found != entries_.end() && found->second.slice.get() == &slice);
  SYSTOLE_CHECK(!found->second.kept.has_value());
  kept_bytes_ += slice.cost_bytes();
  found->second.kept = kept_.insert(kept_.end(), found);
}

void SliceShelf::Unkeep(const SharedSlice& slice) {
  const auto found = entries_.find(slice.key());
  if (found != entries_.end() && found->second.slice.get() == &slice) Unkeep(found->second);
}

void SliceShelf::Unkeep(Entry& entry) {
  if (!entry.kept.has_value()) return;
  kept_bytes_ -= entry.slice->cost_bytes();
  kept_.erase(*std::exchange(entry.kept, std::nullopt));
}

SharedSlicePtr SliceShelf::Take(Entries::iterator entry) {
  Unkeep(entry->second);
  SharedSlicePtr slice = std::move(entry->second.slice);
  entries_.erase(entry);
  return slice;
}

SharedSlicePtr SliceShelf::TakeLast() { return kept_.empty() ? nullptr : Take(kept_.back()); }

std::vector<SharedSlicePtr> SliceShelf::TakeUnwanted(
    absl::FunctionRef<bool(const SharedSlice&)> wanted) {
  std::vector<SharedSlicePtr> taken;
  for (auto it = kept_.begin(); it != kept_.end();) {
    const Entries::iterator entry = *it++;  // Take() removes the entry from the list.
    if (!wanted(*entry->second.slice)) taken.push_back(Take(entry));
  }
  return taken;
}

}  // namespace systole
