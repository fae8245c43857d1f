// The rules that S3 and Cloud Storage have in common.
//
// HttpRequest::url has one of these forms until WebDialect::Prepare() replaces it by an address:
//   s3://bucket/key         an object, in a request without a query
//   s3://bucket?QUERY/key   an object, in a request with a query, such as for an upload's part
//   s3://bucket?QUERY       the bucket itself, in a request with a query, such as for a list
// Only the first form is the name of an object: in a name, a '/' comes right after the bucket.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_DIALECT_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_DIALECT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/http/http_message.h"
#include "core/http/http_url.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/storage/web/web_dialect.h"

namespace systole {

// The words for one kind of bucket in messages about refusals.
struct BucketWords {
  absl::string_view service;            // "S3".
  absl::string_view permissions;        // The permissions that a reader needs.
  absl::string_view write_permissions;  // The permissions that a writer needs.
  absl::string_view credentials;        // Where credentials are looked for.
  absl::string_view endpoint;           // The setting that names the server.
  // The name of an environment variable. If its value is 1, no credentials are looked for, and
  // requests are unsigned.
  absl::string_view unsigned_variable;
  // Another possible reason why a request with credentials is forbidden, and what to do about it.
  // Empty: no such reason is known.
  absl::string_view forbidden_too = {};
  absl::string_view payer = {};  // The setting for the project that pays. Only in Cloud Storage.
};

// Thread-safe, as WebDialect says.
class BucketDialect : public WebDialect {
 public:
  absl::Status RefusalOf(absl::string_view called, const HttpResponse& response) const override;

  // Like RefusalOf(), for a request that writes or removes an object.
  absl::Status WriteRefusalOf(absl::string_view called, const HttpResponse& response) const;

  // The beginning of the names of the headers that hold an object's metadata: "x-amz-meta-".
  virtual absl::string_view metadata_prefix() const = 0;

  // Ends the thread that renews credentials. Needed because the stores of the process are never
  // destroyed.
  virtual void End() = 0;

 protected:
  explicit BucketDialect(const BucketWords& words) : words_(words) {}

  // Whether requests have credentials: a signature or a token.
  virtual bool has_credentials() const = 0;
  // Whether the dialect looks for credentials. False for an emulator: its requests never have
  // credentials.
  virtual bool looks_for_credentials() const { return true; }

 private:
  enum class Action { kRead, kWrite };

  absl::Status RefusalOf(Action action, absl::string_view called,
                         const HttpResponse& response) const;
  // Like RefusalOf(), but does not add the text about requests without credentials.
  absl::Status Explained(Action action, absl::string_view called,
                         const HttpResponse& response) const;
  absl::Status Forbidden(Action action, absl::string_view what) const;

  const BucketWords words_;
};

// What a request is about: a bucket, or an object in it.
struct BucketTarget {
  BucketName name;
  std::string query;  // As EncodedQuery() makes it, with its '?'. Empty: there is none.

  // The HttpRequest::url of a request for this target.
  std::string Url() const;
};

// Reads an HttpRequest::url in one of the forms at the top of this file. Returns the errors of
// ParseBucketName().
absl::StatusOr<BucketTarget> ParseBucketTarget(absl::string_view url);

// The address of a target at a server. AddressAtHost() puts the bucket into the host's name,
// AddressInPath() into the path. The path of each address begins with the path of `server`.
std::string AddressAtHost(const HttpUrl& server, const BucketTarget& target);
std::string AddressInPath(const HttpUrl& server, const BucketTarget& target);

// Parses `text`, the address of a server from the environment variable `variable`. InvalidArgument
// if `text` is not an address or has a query. The message names the variable.
absl::StatusOr<HttpUrl> ParseEndpoint(absl::string_view variable, absl::string_view text);

// Sets the fields that are the same in all requests to buckets.
void SetBucketRules(HttpRequest& request);

// Whether a refusal means that the server does not accept the credentials, perhaps because they
// have expired. Renewed credentials may help.
bool RefusesCredentials(const HttpResponse& response);

// Like RefusesCredentials(). But if the request had no credentials (`had_any` is false), also true
// for every 400 and 403: the server may require credentials, and this process may have found some
// since.
bool MayNeedOtherCredentials(const HttpResponse& response, bool had_any);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_DIALECT_H_
