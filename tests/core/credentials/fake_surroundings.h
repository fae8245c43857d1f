// Surroundings of credentials that a test decides: variables, files, clocks and servers.
#ifndef SYSTOLE_TESTS_CORE_CREDENTIALS_FAKE_SURROUNDINGS_H_
#define SYSTOLE_TESTS_CORE_CREDENTIALS_FAKE_SURROUNDINGS_H_

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"
#include "core/credentials/credential_surroundings.h"
#include "gmock/gmock.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {

// Every secret of these tests contains this text. No message may contain it.
inline constexpr char kSecretMark[] = "s3cr3t";

// More than any wait of these tests.
inline constexpr absl::Duration kLongTime = absl::FromChrono(kLongestWait);

// Matches a Status or StatusOr with this code, whose message matches `message` and holds no secret.
MATCHER_P2(FailsWith, code, message, "has the code and message, and no secret") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "status " << status.ToString();
  return status.code() == code && !absl::StrContains(status.ToString(), kSecretMark) &&
         testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

// Thread-safe. Unless a test says otherwise, the machine has an empty home folder and no metadata
// service. The monotonic clock stands still until Pass() is called.
class FakeSurroundings {
 public:
  FakeSurroundings() {
    Set("HOME", folder_.path());
    Set("AWS_EC2_METADATA_DISABLED", "true");
    Set("NO_GCE_CHECK", "true");
  }

  void Set(const std::string& variable, const std::string& value) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    variables_[variable] = value;
  }
  // Sets a fact that the firmware gives about the machine. At first there are no facts.
  void SetFact(const std::string& name, const std::string& value) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    facts_[name] = value;
  }
  // Lets both clocks go on by `time`.
  void Pass(absl::Duration time) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    now_ += time;
  }
  // The time of day jumps, the monotonic clock does not.
  void Jump(absl::Duration time) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    midnight_ += time;
  }
  absl::Time time_of_day() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return midnight_ + now_;
  }
  // The time of day that comes `from_now` later than the present one, in AWS's format.
  std::string Date(absl::Duration from_now) const {
    return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time_of_day() + from_now, absl::UTCTimeZone());
  }
  const TempFolder& folder() const { return folder_; }

  // The result must not outlive this object.
  CredentialSurroundings Get() {
    HttpClientOptions client;
    client.connect_timeout = absl::FromChrono(kLongestWait);
    return {.variable =
                [this](const char* name) {
                  MutexLock lock(mu_);
                  const auto found = variables_.find(name);
                  return found == variables_.end() ? "" : found->second;
                },
            .machine_fact =
                [this](const char* name) {
                  MutexLock lock(mu_);
                  const auto found = facts_.find(name);
                  return found == facts_.end() ? "" : found->second;
                },
            .client = client,
            .now =
                [this] {
                  MutexLock lock(mu_);
                  return now_;
                },
            .time_of_day = [this] { return time_of_day(); },
            .draw = [] { return 0.0; },
            .link_connect_timeout = absl::FromChrono(kLongestWait),
            .link_timeout = absl::FromChrono(kLongestWait),
            .link_pause = absl::ZeroDuration(),
            .service_timeout = absl::FromChrono(kLongestWait),
            // Tests that need a container's server replace this address.
            .container_server = "http://127.0.0.1:1"};
  }

 private:
  const TempFolder folder_;
  mutable Mutex mu_;
  std::map<std::string, std::string> variables_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::string> facts_ ABSL_GUARDED_BY(mu_);
  absl::Duration now_ ABSL_GUARDED_BY(mu_) = absl::Hours(1);
  absl::Time midnight_ ABSL_GUARDED_BY(mu_) = absl::FromUnixSeconds(1'800'000'000);
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_CREDENTIALS_FAKE_SURROUNDINGS_H_
