// Keeps credentials and renews them in time. While one thread requests new credentials, the other
// threads use the old credentials if these are still valid. If not, the other threads wait.
#ifndef SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_CACHE_H_
#define SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/status/status_macros.h"

namespace systole {

// The result of a renewal. Thread-compatible: a value.
template <typename T>
struct CredentialLease {
  T value;
  // How long the value is valid, from the beginning of the renewal. More than 0.
  absl::Duration life = absl::InfiniteDuration();
  // The value is renewed this long after the beginning of its renewal even if it is still valid,
  // because its source may have changed. Infinite: the source cannot change before `life` is over.
  absl::Duration look_again = absl::InfiniteDuration();
};

// How often files with keys are read again, and how often a process without credentials looks for
// credentials again.
inline constexpr absl::Duration kLookAgain = absl::Minutes(1);

// The functions that CredentialCache takes from its surroundings. None may be null.
struct CacheSurroundings {
  MonotonicClock now;
  // A random number, uniform in [0, 1). Called by one thread at a time.
  std::function<double()> draw;
  // Like HttpClient::SleepWhile() and WakeSleepers().
  std::function<absl::Status(absl::FunctionRef<bool()> waits, absl::Duration time)> sleep_while;
  std::function<void()> wake;
  // The name of what the renewal requests, for messages: "AWS credentials of https://..".
  std::function<std::string()> asked;
};

// A value is renewed when the time until it expires has fallen to kRenewBefore or to a tenth of the
// value's life, whichever is less. The renewal is then delayed by a random time, up to half of the
// time that is left. Because of this delay, machines that began together do not renew together.
inline constexpr absl::Duration kRenewBefore = absl::Minutes(5);
// The pause after the first failed renewal, and the longest pause. The pause doubles with each
// further failure. A random time, up to a quarter of the pause, is added. Without a valid value the
// pause is shorter, because threads wait for the next attempt.
inline constexpr absl::Duration kPauseWithValue = absl::Seconds(10);
inline constexpr absl::Duration kLongestPauseWithValue = absl::Minutes(1);
inline constexpr absl::Duration kPauseWithoutValue = absl::Seconds(1);
inline constexpr absl::Duration kLongestPauseWithoutValue = absl::Seconds(10);
// A refusal has no effect if it comes less than this time after one that had an effect. A server
// also refuses good credentials that do not allow reading an object. Without this limit, each
// request for such an object would cause a renewal.
inline constexpr absl::Duration kBetweenRefusals = absl::Seconds(10);

// Thread-safe.
template <typename T>
class CredentialCache {
 public:
  // Requests a new value from the source, and gives up at `deadline`, a time of
  // CacheSurroundings::now. Called by one thread at a time, without a lock.
  using Renew = std::function<absl::StatusOr<CredentialLease<T>>(absl::Duration deadline)>;

  CredentialCache(CacheSurroundings surroundings, Renew renew)
      : surroundings_(std::move(surroundings)), renew_(std::move(renew)) {}

  // The value, renewed first if necessary. Returns within `timeout`. If a renewal fails, returns
  // the old value if it is still valid, or else the renewal's error. Until the pause after the
  // failure is over, calls return the same without a new renewal. A failure does not count, and no
  // pause follows, if the renewal's thread was interrupted, or if the thread's timeout was over and
  // there is no valid value. Another thread then starts a new renewal.
  //   DeadlineExceeded   the renewal takes longer than `timeout`.
  //   Cancelled          this thread was interrupted, or the source was ended.
  absl::StatusOr<T> Get(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::Duration deadline = surroundings_.now() + timeout;
    while (true) {
      int64_t running = 0;
      {
        MutexLock lock(mu_);
        const absl::Duration now = surroundings_.now();
        if (renewing_) {
          if (IsUsable(now)) return *value_;
          running = renewals_;
        } else if (!MustRenew(now)) {
          return Answer(now);
        } else {
          renewing_ = true;
        }
      }
      if (running == 0) return RunRenewal(deadline);
      const absl::Duration left = deadline - surroundings_.now();
      if (left <= absl::ZeroDuration()) {
        return absl::DeadlineExceededError(
            absl::StrCat("waited ", absl::FormatDuration(timeout), " for ", surroundings_.asked(),
                         ", which another thread is requesting; check that the server and the "
                         "network path to it are not overloaded"));
      }
      SYSTOLE_RETURN_IF_ERROR(surroundings_.sleep_while(
          [&] { return IsRunning(running) && surroundings_.now() < deadline; }, left));
    }
  }

  // A server has refused `used`. If `used` is the current value, the next Get() renews it, and
  // until then it is not used. If the source of the value may change (CredentialLease::look_again
  // is finite), the value is renewed after each refusal, but see kBetweenRefusals. Any other value
  // is renewed only once because of refusals.
  void Refused(const T& used) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    const absl::Duration now = surroundings_.now();
    if (!value_.has_value() || *value_ != used) return;
    if (refused_.has_value() && now - refused_at_ < kBetweenRefusals) return;
    if (refused_.has_value() && *refused_ == used && !may_change_) return;
    refused_.emplace(used);
    refused_at_ = now;
    renew_at_ = now;
    pause_ends_ = std::min(pause_ends_, now);
    doubtful_ = true;
  }

 private:
  bool IsUsable(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return value_.has_value() && now < ends_ && !doubtful_;
  }
  bool MustRenew(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return now >= pause_ends_ && (!value_.has_value() || now >= renew_at_);
  }
  // REQUIRES: !MustRenew(now).
  absl::StatusOr<T> Answer(absl::Duration now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (IsUsable(now)) return *value_;
    return error_;
  }
  bool IsRunning(int64_t number) const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return renewing_ && renewals_ == number;
  }

  absl::StatusOr<T> RunRenewal(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::Duration begin = surroundings_.now();
    absl::StatusOr<CredentialLease<T>> lease = renew_(deadline);
    absl::StatusOr<T> outcome = Finish(begin, deadline, std::move(lease));
    surroundings_.wake();
    return outcome;
  }

  absl::StatusOr<T> Finish(absl::Duration begin, absl::Duration deadline,
                           absl::StatusOr<CredentialLease<T>> lease) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    renewing_ = false;
    ++renewals_;
    if (lease.ok()) {
      value_.emplace(std::move(lease->value));
      ends_ = begin + lease->life;
      const absl::Duration margin = std::min(kRenewBefore, lease->life / 10);
      renew_at_ =
          std::min(ends_ - margin * (1 - surroundings_.draw() / 2), begin + lease->look_again);
      failures_ = 0;
      pause_ends_ = -absl::InfiniteDuration();
      doubtful_ = false;
      may_change_ = lease->look_again < absl::InfiniteDuration();
      return *value_;
    }
    // The thread was interrupted, which says nothing about the source.
    if (absl::IsCancelled(lease.status())) return lease.status();
    const absl::Duration now = surroundings_.now();
    const bool valid = IsUsable(now);
    // The thread's timeout was over, which says nothing about the source either. But if there is a
    // valid value, the pause begins. Without the pause, one thread after the other would try a
    // renewal until its own timeout is over.
    if (!valid && now >= deadline) return lease.status();
    const absl::Duration pause =
        std::min((valid ? kPauseWithValue : kPauseWithoutValue) * (1 << std::min(failures_, 10)),
                 valid ? kLongestPauseWithValue : kLongestPauseWithoutValue);
    ++failures_;
    error_ = std::move(lease).status();
    pause_ends_ = now + pause * (1 + surroundings_.draw() / 4);
    // When the old value expires, threads begin to wait for a new value, so the pause ends.
    if (valid) pause_ends_ = std::min(pause_ends_, ends_);
    return Answer(now);
  }

  const CacheSurroundings surroundings_;
  const Renew renew_;

  mutable Mutex mu_;
  bool renewing_ ABSL_GUARDED_BY(mu_) = false;
  // The number of the renewal that runs. If none runs, the number of the next renewal.
  int64_t renewals_ ABSL_GUARDED_BY(mu_) = 1;
  std::optional<T> value_ ABSL_GUARDED_BY(mu_);
  absl::Duration ends_ ABSL_GUARDED_BY(mu_);
  absl::Duration renew_at_ ABSL_GUARDED_BY(mu_);
  bool doubtful_ ABSL_GUARDED_BY(mu_) = false;    // The value was refused.
  bool may_change_ ABSL_GUARDED_BY(mu_) = false;  // The value's lease has a look_again.
  absl::Status error_ ABSL_GUARDED_BY(mu_);       // The error of the last renewal that failed.
  int failures_ ABSL_GUARDED_BY(mu_) = 0;         // Failed renewals since the last success.
  absl::Duration pause_ends_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  std::optional<T> refused_ ABSL_GUARDED_BY(mu_);  // The last refused value.
  absl::Duration refused_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_CACHE_H_
