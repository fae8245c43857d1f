// The policy in force: that of the configuration, with the tokens of a file that may change.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_ACCESS_ACCESS_CONTROL_H_
#define SYSTOLE_SERVER_ACCESS_ACCESS_CONTROL_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/token/token_file.h"
#include "server/access/access_policy.h"
#include "systole/v1/config.pb.h"

namespace systole {

// How long the token file must have held no token before that counts. A file that is rewritten in
// place is empty for a moment, which must not turn everybody away and end all their feeds.
inline constexpr absl::Duration kEmptyFileCountsAfter = absl::Seconds(5);

class AccessControl {
 public:
  // The time of day, by which tokens end.
  using WallClock = std::function<absl::Time()>;

  // Reads the token file, if the configuration names one. `datasets` as in AccessPolicy::Create.
  // Errors: AccessPolicy::Create and ReadTokenFile.
  static absl::StatusOr<std::shared_ptr<AccessControl>> Create(
      const v1::AccessConfig& config, std::set<std::string> datasets, WallClock clock = absl::Now,
      MonotonicClock monotonic = SteadyClock());

  std::shared_ptr<const AccessPolicy> policy() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Time Now() const { return clock_(); }

  // Reads the token file if it is not the one that was read last. If that fails, the tokens that
  // were good stay good, and the error is returned: once for each file. One that holds no token any
  // more takes effect kEmptyFileCountsAfter later. One thread at a time.
  absl::Status Reload() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  AccessControl(v1::AccessConfig config, std::set<std::string> datasets, WallClock clock,
                MonotonicClock monotonic)
      : config_(std::move(config)),
        datasets_(std::move(datasets)),
        clock_(std::move(clock)),
        monotonic_(std::move(monotonic)) {}

  const v1::AccessConfig config_;
  const std::set<std::string> datasets_;
  const WallClock clock_;
  const MonotonicClock monotonic_;
  // Reload()'s own: the file looked at last, whether it was good or not; whether tokens are good
  // now; and since when the file has held none, while that does not count yet.
  std::optional<TokenFileIdentity> looked_at_;
  bool has_tokens_ = false;
  std::optional<absl::Duration> empty_since_;
  mutable Mutex mu_;
  std::shared_ptr<const AccessPolicy> policy_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_ACCESS_ACCESS_CONTROL_H_
