// Credentials of tests: given one after the other, each after the one before was refused.
#ifndef SYSTOLE_TESTS_CORE_STORAGE_BUCKET_FAKE_CREDENTIALS_H_
#define SYSTOLE_TESTS_CORE_STORAGE_BUCKET_FAKE_CREDENTIALS_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/credentials/aws_credentials.h"
#include "core/credentials/google_credentials.h"
#include "core/http/http_message.h"

namespace systole {

// Thread-safe. Without any, the process has none.
template <typename Source, typename Value>
class FakeCredentials final : public Source {
 public:
  explicit FakeCredentials(std::vector<Value> values) : values_(std::move(values)) {}

  absl::StatusOr<std::optional<Value>> Get() override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    if (!error_.ok()) return error_;
    if (values_.empty()) return std::optional<Value>();
    return std::optional<Value>(values_.front());
  }
  void Refused(const Value& used) override ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    ++refused_;
    if (values_.size() > 1 && values_.front() == used) values_.erase(values_.begin());
  }
  void End() override {}

  void Fail(absl::Status error) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    error_ = std::move(error);
  }
  int refused() const ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return refused_;
  }

 private:
  mutable Mutex mu_;
  std::vector<Value> values_ ABSL_GUARDED_BY(mu_);
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  int refused_ ABSL_GUARDED_BY(mu_) = 0;
};

using FakeAwsCredentials = FakeCredentials<AwsCredentialSource, AwsCredentials>;
using FakeGoogleTokens = FakeCredentials<GoogleTokenSource, std::string>;

// The signature of requests that these credentials make.
inline AwsSigning SignedBy(const AwsCredentials& credentials,
                           const std::string& region = "us-east-1") {
  return {.access_key_id = credentials.access_key_id,
          .secret_access_key = credentials.secret_access_key,
          .session_token = credentials.session_token,
          .region = region,
          .service = "s3"};
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_STORAGE_BUCKET_FAKE_CREDENTIALS_H_
