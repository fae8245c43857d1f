// Keeps the access policy that is in force. The policy is made from a server's `access` block and
// from the token file that this block names. Both may change while the server runs.
//
// Thread-safe, except for Configure() and Reload().
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
#include "core/access_token/token_file.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "server/access/access_policy.h"
#include "systole/v1/config.pb.h"

namespace systole {

// If the token file has no tokens any more, the old tokens stay valid for this long. A file that is
// rewritten in place is empty for a moment. In this moment clients must not be turned away, and
// their feeds must not end.
inline constexpr absl::Duration kEmptyFileCountsAfter = absl::Seconds(5);

class AccessControl {
 public:
  // The time of day, which decides whether a token has expired.
  using WallClock = std::function<absl::Time()>;

  // Reads the token file, if the configuration names one. `datasets` is as in AccessPolicy::Create.
  // Returns the errors of AccessPolicy::Create and ReadTokenFile.
  static absl::StatusOr<std::shared_ptr<AccessControl>> Create(
      const v1::AccessConfig& config, std::set<std::string> datasets, WallClock clock = absl::Now,
      MonotonicClock monotonic = SteadyClock());

  std::shared_ptr<const AccessPolicy> policy() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Time Now() const { return clock_(); }

  // Replaces the configuration. If this returns an error, everything stays as it was. The errors
  // are those of Create(). Call Configure() only on the thread that calls Reload().
  absl::Status Configure(const v1::AccessConfig& config, std::set<std::string> datasets)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Reads the token file if it has changed since the last reading. If the file cannot be read or
  // has an error, returns the error once for each change of the file, and the old tokens stay
  // valid. When the file has had no tokens for kEmptyFileCountsAfter, the next call withdraws the
  // old tokens. Only one thread at a time may call Reload().
  absl::Status Reload() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  AccessControl(v1::AccessConfig config, std::set<std::string> datasets, WallClock clock,
                MonotonicClock monotonic)
      : config_(std::move(config)),
        datasets_(std::move(datasets)),
        clock_(std::move(clock)),
        monotonic_(std::move(monotonic)) {}

  v1::AccessConfig config_;
  std::set<std::string> datasets_;
  const WallClock clock_;
  const MonotonicClock monotonic_;
  // Only Reload() and Configure() use `config_`, `datasets_` and the next three fields.
  // The token file that Reload() tried to read last.
  std::optional<TokenFileIdentity> looked_at_;
  bool has_tokens_ = false;  // Whether the policy in force has tokens.
  // When Reload() first found the file without tokens. Set only while the old tokens still count.
  std::optional<absl::Duration> empty_since_;
  mutable Mutex mu_;
  std::shared_ptr<const AccessPolicy> policy_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_ACCESS_ACCESS_CONTROL_H_
