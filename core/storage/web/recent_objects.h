// Remembers for a moment the answers of a server about objects. When a shard is opened and its
// state is read, two equal requests would be sent within milliseconds, and each costs a round trip
// to the server.
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

// The most objects that are remembered. When one more comes, all earlier ones are forgotten. This
// only costs requests.
inline constexpr size_t kMaxRecentObjects = 4096;

struct SeenObject {
  WebObject object;
  absl::Duration asked;  // When the server was asked, by the clock WebStoreOptions::now.
};

// Thread-safe. Has no clock: callers pass the time.
class RecentObjects {
 public:
  // Forgets answers that are as old as `trust`.
  explicit RecentObjects(absl::Duration trust) : trust_(trust) {}

  // If there already is an answer about this object, keeps the answer to the later request.
  void Remember(const std::string& name, const SeenObject& seen) ABSL_LOCKS_EXCLUDED(mu_);
  // The answer to a request that was sent less than `trust` before `now`.
  std::optional<SeenObject> Find(const std::string& name, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Forget(const std::string& name) ABSL_LOCKS_EXCLUDED(mu_);
  // Forgets the answer about the object, unless the answer shows the state that has this identity.
  void ForgetOther(const std::string& name, absl::string_view identity) ABSL_LOCKS_EXCLUDED(mu_);

  // This process has written or removed the object. Find() no longer returns answers to requests
  // that were sent at `now` or before.
  void NoteWrite(const std::string& name, absl::Duration now) ABSL_LOCKS_EXCLUDED(mu_);
  // The time of the last NoteWrite(), or a later time. If there was none, a time long ago.
  absl::Duration LastWrite(const std::string& name) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Duration LastWriteLocked(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration trust_;
  mutable Mutex mu_;
  absl::flat_hash_map<std::string, SeenObject> objects_ ABSL_GUARDED_BY(mu_);
  // The last NoteWrite() of at most kMaxRecentObjects objects. Any object that is not in this map
  // counts as written at `forgotten_`.
  absl::flat_hash_map<std::string, absl::Duration> written_ ABSL_GUARDED_BY(mu_);
  absl::Duration forgotten_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_RECENT_OBJECTS_H_
