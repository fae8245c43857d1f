#include "core/storage/web/recent_objects.h"

namespace systole {

void RecentObjects::Remember(const std::string& name, const SeenObject& seen) {
  MutexLock lock(mu_);
  if (const auto found = objects_.find(name); found != objects_.end()) {
    if (found->second.asked <= seen.asked) found->second = seen;
    return;
  }
  if (objects_.size() >= kMaxRecentObjects) objects_.clear();
  objects_.emplace(name, seen);
}

std::optional<SeenObject> RecentObjects::Find(const std::string& name, absl::Duration now) {
  MutexLock lock(mu_);
  const auto found = objects_.find(name);
  if (found == objects_.end()) return std::nullopt;
  const absl::Duration asked = found->second.asked;
  if (now - asked < trust_ && asked > LastWriteLocked(name)) return found->second;
  objects_.erase(found);
  return std::nullopt;
}

void RecentObjects::Forget(const std::string& name) {
  MutexLock lock(mu_);
  objects_.erase(name);
}

void RecentObjects::ForgetOther(const std::string& name, absl::string_view identity) {
  MutexLock lock(mu_);
  const auto found = objects_.find(name);
  if (found != objects_.end() && found->second.object.Identity() != identity) objects_.erase(found);
}

void RecentObjects::NoteWrite(const std::string& name, absl::Duration now) {
  MutexLock lock(mu_);
  objects_.erase(name);
  if (written_.size() >= kMaxRecentObjects) {
    written_.clear();
    forgotten_ = now;
  }
  written_[name] = now;
}

absl::Duration RecentObjects::LastWrite(const std::string& name) const {
  MutexLock lock(mu_);
  return LastWriteLocked(name);
}

absl::Duration RecentObjects::LastWriteLocked(const std::string& name) const {
  const auto found = written_.find(name);
  return found == written_.end() ? forgotten_ : found->second;
}

}  // namespace systole
