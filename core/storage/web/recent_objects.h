// What a server said of objects a moment ago. Opening a shard and looking at its state ask for the
// same within milliseconds, and each answer costs a way to the server and back.
#ifndef SYSTOLE_CORE_STORAGE_WEB_RECENT_OBJECTS_H_
#define SYSTOLE_CORE_STORAGE_WEB_RECENT_OBJECTS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/storage/web/web_answer.h"

namespace systole {

// The most objects that are remembered. One more forgets them all, which only costs requests.
inline constexpr size_t kMaxRecentObjects = 4096;

struct SeenObject {
  WebObject object;
  absl::Duration asked;  // When the server was asked for it, on WebStoreOptions::now.
};

// Thread-safe. It has no clock.
class RecentObjects {
 public:
  // Forgets what is as old as `trust`.
  explicit RecentObjects(absl::Duration trust) : trust_(trust) {}

  // Keeps the answer to the later question, if there are two.
  void Remember(const std::string& name, const SeenObject& seen) ABSL_LOCKS_EXCLUDED(mu_);
  // What was said less than `trust` before `now`.
  std::optional<SeenObject> Find(const std::string& name, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(const std::string& name) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets what was said of the object, unless that is the state of this identity.
  void ForgetOther(const std::string& name, absl::string_view identity) ABSL_LOCKS_EXCLUDED(mu_);

  // This process has written or removed the object: what was said of it until `now` is not found
  // any more.
  void NoteWrite(const std::string& name, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  // When that was, or later; long ago if it never was.
  absl::Duration LastWrite(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Duration LastWriteLocked(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration trust_;
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, SeenObject> objects_ ABSL_GUARDED_BY(mu_);
  // At most kMaxRecentObjects. What is forgotten counts as written at `forgotten_`.
  absl::flat_hash_map<std::string, absl::Duration> written_ ABSL_GUARDED_BY(mu_);
  absl::Duration forgotten_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_RECENT_OBJECTS_H_
