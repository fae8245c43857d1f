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
  if (now - found->second.asked < trust_) return found->second;
  objects_.erase(found);
  return std::nullopt;
}

void RecentObjects::Forget(const std::string& name) {
  MutexLock lock(mu_);
  objects_.erase(name);
}

}  // namespace systole
