// The rules that S3 and Cloud Storage have in common.
//
// A request's url is the name of an object. If the request is about the bucket itself, the url is
// "s3://bucket?QUERY". If the request is about an object but does not ask for its bytes, the url is
// "s3://bucket?QUERY/key". These forms cannot be mistaken for the name of an object, which has a
// '/' right after the bucket, not a '?'.
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

// The words of messages about refusals, for one kind of bucket.
struct BucketWords {
  absl::string_view service;            // "S3".
  absl::string_view permissions;        // The permissions that a reader needs.
  absl::string_view write_permissions;  // The permissions that a writer needs.
  absl::string_view credentials;        // The settings with which credentials are found.
  absl::string_view endpoint;           // The setting that names the server.
  // The name of a variable. If it is set, no credentials are looked for, and requests are unsigned.
  absl::string_view unsigned_variable;
  // Another possible reason why a request with credentials is forbidden, and what to do. Empty:
  // there is none.
  absl::string_view forbidden_too = {};
  absl::string_view payer = {};  // The setting that names the project that pays, in Cloud Storage.
};

// Thread-safe, as WebDialect says.
class BucketDialect : public WebDialect {
 public:
  absl::Status RefusalOf(absl::string_view called, const HttpResponse& response) const override;

  // Like RefusalOf(), for a request that writes or removes an object.
  absl::Status WriteRefusalOf(absl::string_view called, const HttpResponse& response) const;

  // The beginning of the names of the headers that hold an object's metadata: "x-amz-meta-".
  virtual absl::string_view metadata_prefix() const = 0;

  // Ends the thread that renews credentials, for a store that is never destroyed.
  virtual void End() = 0;

 protected:
  explicit BucketDialect(const BucketWords& words) : words_(words) {}

  // Whether requests are signed, or have a token.
  virtual bool has_credentials() const = 0;
  // Whether the dialect looks for credentials. False for an emulator, whose requests never have
  // any.
  virtual bool looks_for_credentials() const { return true; }

 private:
  enum class Action { kRead, kWrite };

  absl::Status RefusalOf(Action action, absl::string_view called,
                         const HttpResponse& response) const;
  // RefusalOf(), but without the text that it adds for requests without credentials.
  absl::Status Explained(Action action, absl::string_view called,
                         const HttpResponse& response) const;
  absl::Status Forbidden(Action action, absl::string_view what) const;

  const BucketWords words_;
};

// What a request is about: a bucket, or an object in it.
struct BucketTarget {
  BucketName name;
  std::string query;  // With its '?', as EncodedQuery() makes it. Empty: the object is requested.

  // The HttpRequest::url of a request for this target.
  std::string Url() const;
};

// Reads an HttpRequest::url in one of the forms at the top of this file. Returns the errors of
// ParseBucketName().
absl::StatusOr<BucketTarget> ParseBucketTarget(absl::string_view url);

// The address of a target at a server. The bucket is either in the host's name or in the path. The
// path of `server` comes first in the address's path.
std::string AddressAtHost(const HttpUrl& server, const BucketTarget& target);
std::string AddressInPath(const HttpUrl& server, const BucketTarget& target);

// Parses the address of a server that `variable` names. InvalidArgument if the text is not an
// address or has a query. The message names the variable.
absl::StatusOr<HttpUrl> ParseEndpoint(absl::string_view variable, absl::string_view text);

// Sets the fields that are the same in all requests to buckets.
void SetBucketRules(HttpRequest& request);

// Whether a refusal means that the server does not accept the credentials, perhaps because they
// have expired. Renewed credentials may help.
bool RefusesCredentials(const HttpResponse& response);

// Like RefusesCredentials(), for a request that may have had no credentials. `had_any` says whether
// the request had credentials. If it had none, each 400 or 403 counts: the server may refuse all
// requests without credentials, and this process may have found credentials since.
bool MayNeedOtherCredentials(const HttpResponse& response, bool had_any);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_DIALECT_H_
