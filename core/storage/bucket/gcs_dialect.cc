#include "core/storage/bucket/gcs_dialect.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/http/http_headers.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr char kEmulator[] = "STORAGE_EMULATOR_HOST";
constexpr char kProject[] = "GS_USER_PROJECT";
constexpr char kQuotaProject[] = "GOOGLE_CLOUD_QUOTA_PROJECT";
constexpr absl::string_view kBearer = "Bearer ";

constexpr BucketWords kGcsWords = {
    .service = "Cloud Storage",
    .permissions = "storage.objects.get and storage.objects.list (the role Storage Object Viewer)",
    .write_permissions =
        "storage.objects.create, storage.objects.delete and storage.multipartUploads.create and "
        ".abort (the role Storage Object User), and of a virtual machine the scope "
        "devstorage.read_write",
    .credentials =
        "GOOGLE_APPLICATION_CREDENTIALS, GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, `gcloud auth "
        "application-default login`, or the service account of this machine",
    .endpoint = kEmulator,
    .unsigned_variable = "SYSTOLE_GS_UNSIGNED",
    .payer = "GS_USER_PROJECT or GOOGLE_CLOUD_QUOTA_PROJECT"};

// A project's ID, such as my-project or example.com:my-project, or its number.
bool IsProject(absl::string_view text) {
  return text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(c) || absl::StrContains("-.:_", c);
         });
}

bool IsRead(const HttpRequest& request) {
  return request.method == HttpMethod::kGet || request.method == HttpMethod::kHead;
}

}  // namespace

GcsDialect::GcsDialect(const GcsOptions& options, const HttpUrl& endpoint,
                       std::unique_ptr<GoogleTokenSource> tokens,
                       std::unique_ptr<GoogleTokenSource> write_tokens)
    : BucketDialect(kGcsWords),
      options_(options),
      endpoint_(endpoint),
      tokens_(std::move(tokens)),
      write_tokens_(std::move(write_tokens)) {}

absl::StatusOr<std::unique_ptr<GcsDialect>> GcsDialect::Create(
    const GcsOptions& options, std::unique_ptr<GoogleTokenSource> tokens,
    std::unique_ptr<GoogleTokenSource> write_tokens) {
  SYSTOLE_ASSIGN_OR_RETURN(const HttpUrl endpoint, ParseEndpoint(kEmulator, options.endpoint));
  if (!IsProject(options.user_project)) {
    return absl::InvalidArgumentError(
        absl::StrCat(kProject, " or ", kQuotaProject, ": \"", ForeignName(options.user_project),
                     "\" is not a project; want its ID, such as my-project"));
  }
  return absl::WrapUnique(
      new GcsDialect(options, endpoint, std::move(tokens), std::move(write_tokens)));
}

void GcsDialect::End() {
  tokens_->End();
  write_tokens_->End();
}

GoogleTokenSource& GcsDialect::TokensFor(const HttpRequest& request) const {
  return IsRead(request) ? *tokens_ : *write_tokens_;
}

absl::Status GcsDialect::Prepare(HttpRequest& request) {
  SYSTOLE_ASSIGN_OR_RETURN(const BucketTarget target, ParseBucketTarget(request.url));
  request.url = AddressInPath(endpoint_, target);
  SetBucketRules(request);
  if (target.query.empty() && IsRead(request)) {
    // Without this header, the server unpacks an object that was stored with `content-encoding:
    // gzip`, and ignores the request's range. The header makes the server send the stored bytes.
    RemoveHeader(request.headers, "accept-encoding");
    request.headers.emplace_back("accept-encoding", "gzip");
  }
  if (!options_.sends_tokens) return absl::OkStatus();
  if (signs()) {
    NamePayer(request);
    request.sign = {.access_key_id = options_.hmac_keys->access_key_id,
                    .secret_access_key = options_.hmac_keys->secret_access_key,
                    .region = "auto",  // One host serves all regions.
                    .service = "storage",
                    .scheme = SigningScheme::kGoogle};
    return absl::OkStatus();
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::optional<std::string> token,
                           TokensFor(request).Get(request.timeout));
  has_token_.store(token.has_value(), std::memory_order_relaxed);
  if (token.has_value()) {
    NamePayer(request);
    request.headers.emplace_back("authorization", absl::StrCat(kBearer, *token));
  }
  return absl::OkStatus();
}

void GcsDialect::NamePayer(HttpRequest& request) const {
  if (options_.user_project.empty()) return;
  request.headers.emplace_back("x-goog-user-project", options_.user_project);
}

bool GcsDialect::LearnsFrom(const std::string& /*name*/, const HttpRequest& sent,
                            const HttpResponse& response) {
  if (!options_.sends_tokens || signs()) return false;
  absl::string_view token = FindHeader(sent.headers, "authorization");
  std::optional<std::string> used;
  if (absl::ConsumePrefix(&token, kBearer)) used = std::string(token);
  if (!MayNeedOtherCredentials(response, used.has_value())) return false;
  GoogleTokenSource& tokens = TokensFor(sent);
  tokens.Refused(used);
  const absl::StatusOr<std::optional<std::string>> renewed = tokens.Get(sent.timeout);
  // If the renewal failed, the result is true. The next attempt's Prepare() then returns the
  // renewal's error.
  return !renewed.ok() || *renewed != used;
}

absl::StatusOr<GcsOptions> GcsOptionsOfEnvironment(const CredentialSurroundings& surroundings) {
  GcsOptions options;
  options.user_project = surroundings.variable(kProject);
  if (options.user_project.empty()) options.user_project = surroundings.variable(kQuotaProject);
  const std::string emulator = surroundings.variable(kEmulator);
  if (!emulator.empty()) {
    options.endpoint =
        absl::StrContains(emulator, "://") ? emulator : absl::StrCat("http://", emulator);
    options.sends_tokens = false;
    return options;
  }
  SYSTOLE_ASSIGN_OR_RETURN(options.hmac_keys, GoogleHmacKeysOfEnvironment(surroundings));
  return options;
}

}  // namespace systole
