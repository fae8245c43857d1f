// Requests to S3, and to other servers with S3's API.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_S3_DIALECT_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_S3_DIALECT_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/concurrency/mutex.h"
#include "core/credentials/aws_credentials.h"
#include "core/credentials/credential_surroundings.h"
#include "core/http/http_message.h"
#include "core/http/http_url.h"
#include "core/storage/bucket/bucket_dialect.h"

namespace systole {

// The most buckets whose regions are remembered. When one more bucket comes, all regions are
// forgotten, and learned again from the answers of AWS.
inline constexpr size_t kMaxBucketRegions = 1024;

struct S3Options {
  // The address of the server. Empty: AWS's own servers, one for each region.
  std::string endpoint = {};
  // At AWS: the region of a bucket, as long as AWS does not answer that the bucket is in another
  // region. At other servers: the region in signatures.
  std::string region = "us-east-1";
  // Whether the bucket stands in the host's name (BUCKET.HOST/KEY) or in the path
  // (HOST/BUCKET/KEY). Nullopt: in the host's name at AWS, in the path at other servers.
  std::optional<bool> bucket_in_host = {};
  // Whether each request has a header which says that its sender pays. Some buckets refuse requests
  // without this header.
  bool requester_pays = false;
};

// Thread-safe.
class S3Dialect final : public BucketDialect {
 public:
  // InvalidArgument, naming the variable, if an option is malformed.
  static absl::StatusOr<std::unique_ptr<S3Dialect>> Create(
      const S3Options& options, std::unique_ptr<AwsCredentialSource> credentials);

  // Returns the errors of AwsCredentialSource::Get() and of ParseBucketName().
  absl::Status Prepare(HttpRequest& request) override;
  bool LearnsFrom(const std::string& name, const HttpRequest& sent,
                  const HttpResponse& response) override ABSL_LOCKS_EXCLUDED(mu_);
  bool has_generations() const override { return false; }
  absl::string_view metadata_prefix() const override { return "x-amz-meta-"; }
  void End() override { credentials_->End(); }

 private:
  S3Dialect(const S3Options& options, const std::optional<HttpUrl>& endpoint,
            std::unique_ptr<AwsCredentialSource> credentials);

  bool has_credentials() const override { return signs_.load(std::memory_order_relaxed); }

  std::string RegionOf(const std::string& bucket) ABSL_LOCKS_EXCLUDED(mu_);
  // The server of a region.
  HttpUrl ServerIn(const std::string& region) const;
  bool LearnsRegion(const std::string& bucket, const HttpRequest& sent,
                    const HttpResponse& response) ABSL_LOCKS_EXCLUDED(mu_);

  const S3Options options_;
  const std::optional<HttpUrl> endpoint_;  // Nullopt: AWS's own servers.
  const std::unique_ptr<AwsCredentialSource> credentials_;
  std::atomic<bool> signs_ = false;  // Whether the last request had credentials.
  Mutex mu_;
  // The region of each bucket that, as AWS has answered, is not in S3Options::region.
  absl::flat_hash_map<std::string, std::string> regions_ ABSL_GUARDED_BY(mu_);
};

// S3Options from environment variables and AWS's configuration file. README.md lists the variables.
// InvalidArgument if SYSTOLE_S3_ADDRESSING or AWS_REQUEST_PAYER has an unknown value. Also returns
// the errors of AwsRegionOfEnvironment().
absl::StatusOr<S3Options> S3OptionsOfEnvironment(const CredentialSurroundings& surroundings = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_S3_DIALECT_H_
