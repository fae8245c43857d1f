// The access policy in force: the configuration, with the tokens of a file that may change.
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
#include "core/access_token/token_file.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "server/access/access_policy.h"
#include "systole/v1/config.pb.h"

namespace systole {

// How long the token file must have been without tokens before the old tokens are withdrawn. A file
// that is rewritten in place is empty for a moment. Such a moment must not turn all clients away
// and end their feeds.
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

  // Replaces the configuration. If that fails, everything stays as it was. Only the thread that
  // calls Reload() may call it. The errors are those of Create().
  absl::Status Configure(const v1::AccessConfig& config, std::set<std::string> datasets)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Reads the token file if it has changed since it was read last. If that fails, the tokens read
  // before stay valid. The error is returned once for each change. If the file no longer holds a
  // token, the old tokens are withdrawn kEmptyFileCountsAfter later. Only one thread may call this
  // at a time.
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
  // `looked_at_` is the file that Reload() read last, good or bad. `has_tokens_`: whether any token
  // is valid now. `empty_since_`: since when the file has been without tokens, if the old tokens
  // are not withdrawn yet.
  std::optional<TokenFileIdentity> looked_at_;
  bool has_tokens_ = false;
  std::optional<absl::Duration> empty_since_;
  mutable Mutex mu_;
  std::shared_ptr<const AccessPolicy> policy_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_ACCESS_ACCESS_CONTROL_H_
