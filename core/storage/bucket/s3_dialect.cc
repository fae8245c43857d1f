#include "core/storage/bucket/s3_dialect.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_settings.h"
#include "core/http/http_headers.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/storage/bucket/bucket_answer.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr char kAddressing[] = "SYSTOLE_S3_ADDRESSING";
constexpr char kPayer[] = "AWS_REQUEST_PAYER";
constexpr char kEndpoint[] = "AWS_ENDPOINT_URL_S3";

constexpr BucketWords kS3Words = {
    .service = "S3",
    .permissions = "s3:GetObject on the objects and s3:ListBucket on the bucket",
    .write_permissions = "s3:PutObject, s3:AbortMultipartUpload and s3:DeleteObject on the objects",
    .credentials =
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of this "
        "machine",
    .endpoint = "AWS_ENDPOINT_URL_S3, AWS_REGION",
    .unsigned_variable = "SYSTOLE_S3_UNSIGNED",
    .forbidden_too = "if the requester pays for the bucket, set AWS_REQUEST_PAYER=requester"};

}  // namespace

S3Dialect::S3Dialect(const S3Options& options, const std::optional<HttpUrl>& endpoint,
                     std::unique_ptr<AwsCredentialSource> credentials)
    : BucketDialect(kS3Words),
      options_(options),
      endpoint_(endpoint),
      credentials_(std::move(credentials)) {}

absl::StatusOr<std::unique_ptr<S3Dialect>> S3Dialect::Create(
    const S3Options& options, std::unique_ptr<AwsCredentialSource> credentials) {
  std::optional<HttpUrl> endpoint;
  if (!options.endpoint.empty()) {
    SYSTOLE_ASSIGN_OR_RETURN(
        endpoint, ParseEndpoint("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL", options.endpoint));
  }
  if (!IsRegion(options.region)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "AWS_REGION, AWS_DEFAULT_REGION or the profile's region: \"", ForeignName(options.region),
        "\" is not a region; want a name such as us-east-1"));
  }
  if (!endpoint.has_value()) {
    SYSTOLE_RETURN_IF_ERROR(AwsDomainOfRegion(options.region, kEndpoint).status());
  }
  return absl::WrapUnique(new S3Dialect(options, endpoint, std::move(credentials)));
}

std::string S3Dialect::RegionOf(const std::string& bucket) {
  MutexLock lock(mu_);
  const auto found = regions_.find(bucket);
  return found == regions_.end() ? options_.region : found->second;
}

HttpUrl S3Dialect::ServerIn(const std::string& region) const {
  if (endpoint_.has_value()) return *endpoint_;
  const absl::StatusOr<std::string> domain = AwsDomainOfRegion(region, kEndpoint);
  // Create() refuses regions of unknown domains, and LearnsRegion() ignores them.
  SYSTOLE_CHECK(domain.ok());
  return {.scheme = "https",
          .host = absl::StrCat("s3.", region, ".", *domain),
          .port = 443,
          .target = "/"};
}

absl::Status S3Dialect::Prepare(HttpRequest& request) {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketTarget target, ParseBucketTarget(request.url));
  const std::string region = RegionOf(target.name.bucket);
  const HttpUrl server = ServerIn(region);
  // A certificate for *.HOST is valid for one label before HOST. A bucket "a.b" would be two
  // labels.
  const bool name_is_one = server.scheme == "http" || !absl::StrContains(target.name.bucket, '.');
  const bool in_host = options_.bucket_in_host.value_or(!endpoint_.has_value()) && name_is_one;
  request.url = in_host ? AddressAtHost(server, target) : AddressInPath(server, target);
  SetBucketRules(request);
  if (options_.requester_pays) request.headers.emplace_back("x-amz-request-payer", "requester");
  SYSTOLE_ASSIGN_OR_RETURN(const std::optional<AwsCredentials> credentials,
                           credentials_->Get(request.timeout));
  signs_.store(credentials.has_value(), std::memory_order_relaxed);
  if (credentials.has_value()) {
    request.sign = {.access_key_id = credentials->access_key_id,
                    .secret_access_key = credentials->secret_access_key,
                    .session_token = credentials->session_token,
                    .region = region,
                    .service = "s3"};
  }
  return absl::OkStatus();
}

bool S3Dialect::LearnsRegion(const std::string& bucket, const HttpRequest& sent,
                             const HttpResponse& response) {
  if (endpoint_.has_value()) return false;
  if (response.status != 301 && response.status != 307 && response.status != 400) return false;
  std::string region(FindHeader(response.headers, "x-amz-bucket-region"));
  if (region.empty()) region = ParseRefusal(response.body).region;
  if (!IsRegion(region) || !AwsDomainOfRegion(region, kEndpoint).ok()) return false;
  const absl::StatusOr<HttpUrl> asked = ParseHttpUrl(sent.url);
  if (!asked.ok() || absl::EndsWith(asked->host, ServerIn(region).host)) return false;
  MutexLock lock(mu_);
  if (regions_.size() >= kMaxBucketRegions) regions_.clear();
  regions_[bucket] = region;
  return true;
}

bool S3Dialect::LearnsFrom(const std::string& name, const HttpRequest& sent,
                           const HttpResponse& response) {
  const absl::StatusOr<BucketTarget> target = ParseBucketTarget(name);
  if (target.ok() && LearnsRegion(target->name.bucket, sent, response)) return true;
  if (!MayNeedOtherCredentials(response, sent.sign.has_value())) return false;
  std::optional<AwsCredentials> used;
  if (sent.sign.has_value()) {
    used = {.access_key_id = sent.sign->access_key_id,
            .secret_access_key = sent.sign->secret_access_key,
            .session_token = sent.sign->session_token};
  }
  credentials_->Refused(used);
  const absl::StatusOr<std::optional<AwsCredentials>> renewed = credentials_->Get(sent.timeout);
  // If the renewal failed, the result is true. The next attempt's Prepare() then returns the
  // renewal's error.
  return !renewed.ok() || *renewed != used;
}

absl::StatusOr<S3Options> S3OptionsOfEnvironment(const CredentialSurroundings& surroundings) {
  S3Options options;
  SYSTOLE_ASSIGN_OR_RETURN(options.endpoint, S3EndpointOfEnvironment(surroundings));
  SYSTOLE_ASSIGN_OR_RETURN(const std::string region, AwsRegionOfEnvironment(surroundings));
  if (!region.empty()) options.region = region;
  const std::string addressing = surroundings.variable(kAddressing);
  if (!addressing.empty() && addressing != "virtual" && addressing != "path") {
    return absl::InvalidArgumentError(absl::StrCat(kAddressing, " is \"", ForeignName(addressing),
                                                   "\", want \"virtual\" or \"path\""));
  }
  if (!addressing.empty()) options.bucket_in_host = addressing == "virtual";
  const std::string payer = surroundings.variable(kPayer);
  if (!payer.empty() && payer != "requester") {
    return absl::InvalidArgumentError(
        absl::StrCat(kPayer, " is \"", ForeignName(payer), "\", want \"requester\""));
  }
  options.requester_pays = !payer.empty();
  return options;
}

}  // namespace systole
