#include "core/dataset/shared_zip.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The members' Dataset::number() and prefixes.
using Key = std::vector<std::pair<uint64_t, std::string>>;

// Holds only zips that are in use, and zips that have become unused since the last call of Add().
class Zips {
 public:
  // Null: no zip with this key is in use.
  std::shared_ptr<const Dataset> Find(const Key& key) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    const auto found = zips_.find(key);
    return found == zips_.end() ? nullptr : found->second.lock();
  }

  // Returns the zip that belongs to the key from now on: `made`, or a zip that another thread has
  // added before.
  std::shared_ptr<const Dataset> Add(Key key, std::shared_ptr<const Dataset> made)
      ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    std::erase_if(zips_, [](const auto& zip) { return zip.second.expired(); });
    std::weak_ptr<const Dataset>& zip = zips_[std::move(key)];
    if (std::shared_ptr<const Dataset> other = zip.lock(); other != nullptr) return other;
    zip = made;
    return made;
  }

 private:
  Mutex mu_;
  std::map<Key, std::weak_ptr<const Dataset>> zips_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> SharedZip(std::vector<ZippedMember> members) {
  // Never destroyed, because threads may still use the table when the process ends.
  static auto* const zips = new Zips();
  Key key;
  for (const auto& [dataset, prefix] : members) key.emplace_back(dataset->number(), prefix);
  if (std::shared_ptr<const Dataset> known = zips->Find(key); known != nullptr) return known;
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> made, Dataset::Zip(std::move(members)));
  return zips->Add(std::move(key), std::move(made));
}

}  // namespace systole
