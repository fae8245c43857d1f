// Requests to Google Cloud Storage, by its XML API.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_GCS_DIALECT_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_GCS_DIALECT_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/credentials/aws_keys.h"
#include "core/credentials/credential_surroundings.h"
#include "core/credentials/google_credentials.h"
#include "core/http/http_message.h"
#include "core/http/http_url.h"
#include "core/storage/bucket/bucket_dialect.h"

namespace systole {

struct GcsOptions {
  std::string endpoint = "https://storage.googleapis.com";
  // False: the server is an emulator, which must not get a token.
  bool sends_tokens = true;
  // If set, these keys sign all requests, and no tokens are used. An emulator gets neither
  // signatures nor tokens.
  std::optional<AwsCredentials> hmac_keys = {};
  // The project that pays for requests with credentials. Requests without credentials may not name
  // a project. Empty: requests name no project.
  std::string user_project = {};
};

// Thread-safe.
class GcsDialect final : public BucketDialect {
 public:
  // `tokens` are for reading. `write_tokens` are for writing and removing, too.
  //   InvalidArgument  the endpoint is not an address, or the project is not a project's ID or
  //                    number. The message names the environment variables that may have set it.
  static absl::StatusOr<std::unique_ptr<GcsDialect>> Create(
      const GcsOptions& options, std::unique_ptr<GoogleTokenSource> tokens,
      std::unique_ptr<GoogleTokenSource> write_tokens);

  // Returns the errors of GoogleTokenSource::Get() and of ParseBucketName().
  absl::Status Prepare(HttpRequest& request) override;
  bool LearnsFrom(const std::string& name, const HttpRequest& sent,
                  const HttpResponse& response) override;
  bool has_generations() const override { return true; }
  absl::string_view metadata_prefix() const override { return "x-goog-meta-"; }
  void End() override;

 private:
  GcsDialect(const GcsOptions& options, const HttpUrl& endpoint,
             std::unique_ptr<GoogleTokenSource> tokens,
             std::unique_ptr<GoogleTokenSource> write_tokens);

  GoogleTokenSource& TokensFor(const HttpRequest& request) const;

  void NamePayer(HttpRequest& request) const;
  bool signs() const { return options_.sends_tokens && options_.hmac_keys.has_value(); }
  bool has_credentials() const override {
    return signs() || has_token_.load(std::memory_order_relaxed);
  }
  bool looks_for_credentials() const override { return options_.sends_tokens; }

  const GcsOptions options_;
  const HttpUrl endpoint_;
  const std::unique_ptr<GoogleTokenSource> tokens_;
  const std::unique_ptr<GoogleTokenSource> write_tokens_;
  std::atomic<bool> has_token_ = false;  // Whether the last request had a token.
};

// GcsOptions from the variables of the environment. The README lists the variables. Returns the
// errors of GoogleHmacKeysOfEnvironment().
absl::StatusOr<GcsOptions> GcsOptionsOfEnvironment(const CredentialSurroundings& surroundings = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_GCS_DIALECT_H_
