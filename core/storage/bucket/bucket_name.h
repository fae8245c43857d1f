// Names of objects in buckets, and how they are written in the address of a request.
//   s3://bucket/key    gs://bucket/key
// In these names the key is plain UTF-8. Only in the address of a request is the key
// percent-encoded.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_NAME_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_NAME_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

// The most bytes of a key, in S3 and in Cloud Storage.
inline constexpr size_t kMaxKeyBytes = 1024;

struct BucketName {
  std::string scheme;  // "s3" or "gs".
  std::string bucket;
  std::string key;  // May be empty, or a pattern.

  // "s3://bucket/".
  std::string Root() const;
  std::string Text() const;  // The name as text.
};

// Parses a name, a pattern, or the name of a bucket alone ("s3://bucket"). InvalidArgument if the
// scheme is neither s3 nor gs, if the bucket's name is not allowed for any bucket, or if the key is
// too long or has control characters. The message has the reason. A bucket's name has no wildcards.
absl::StatusOr<BucketName> ParseBucketName(absl::string_view name);

// InvalidArgument if the key of `name` is empty or ends with '/'. Systole uses no objects with such
// names.
absl::Status CheckObjectName(const BucketName& name);

// `error` with `name` before its message, if the message does not contain the name.
absl::Status WithName(const absl::Status& error, absl::string_view name);

// `key` with each byte percent-encoded, except letters, digits, "-._~" and '/'. Signatures use this
// form.
std::string EncodedKey(absl::string_view key);

// "?a=1&b=2", percent-encoded ('/' too) and sorted by name, as signatures require.
std::string EncodedQuery(std::vector<std::pair<std::string, std::string>> parameters);

// Undoes the encoding of keys in an answer with `encoding-type=url`. A '+' is a blank. A malformed
// "%" stays as it is.
std::string DecodedKey(absl::string_view encoded);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_NAME_H_
