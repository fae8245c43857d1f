// Remembers the answers of a server about objects for a short time. This saves requests: Open() and
// Stat() of an object need the same request, and often follow each other within milliseconds.
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

// The most objects that are remembered. When one more object comes, all earlier objects are
// forgotten. This only costs requests.
inline constexpr size_t kMaxRecentObjects = 4096;

struct SeenObject {
  WebObject object;
  absl::Duration asked;  // When the request was sent, by the clock WebStoreOptions::now.
};

// Thread-safe. Has no clock: callers pass the time.
class RecentObjects {
 public:
  // An answer counts until the time `trust` has passed since its request.
  explicit RecentObjects(absl::Duration trust) : trust_(trust) {}

  // Of two answers about one object, keeps the answer to the later request.
  void Remember(const std::string& name, const SeenObject& seen) ABSL_LOCKS_EXCLUDED(mu_);
  // The answer to a request that was sent less than `trust` before `now`.
  std::optional<SeenObject> Find(const std::string& name, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(const std::string& name) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets the answer about the object if the answer shows a state with another identity.
  void ForgetOther(const std::string& name, absl::string_view identity) ABSL_LOCKS_EXCLUDED(mu_);

  // Call this after this process has written or removed the object. Find() then no longer returns
  // answers to requests that were sent at `now` or before.
  void NoteWrite(const std::string& name, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  // The time of the last NoteWrite() for the object, or a time long ago if there was none. After
  // writes were forgotten, the result may be a later time.
  absl::Duration LastWrite(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Duration LastWriteLocked(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration trust_;
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, SeenObject> objects_ ABSL_GUARDED_BY(mu_);
  // The times of the last NoteWrite() for at most kMaxRecentObjects objects. Any object that is not
  // in this map counts as written at `forgotten_`.
  absl::flat_hash_map<std::string, absl::Duration> written_ ABSL_GUARDED_BY(mu_);
  absl::Duration forgotten_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_RECENT_OBJECTS_H_
