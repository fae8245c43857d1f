// Names of objects in buckets, and how they are written in the address of a request.
//   s3://bucket/key    gs://bucket/key
// In these names the key is plain UTF-8. In the address of a request the key is percent-encoded.
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
  // "s3://bucket/key".
  std::string Text() const;
};

// Parses a name, a pattern, or the name of a bucket alone ("s3://bucket"). InvalidArgument if the
// scheme is neither s3 nor gs, if the bucket's name is invalid, or if the key is too long or has
// control characters. The message gives the reason. Only the key may have wildcards.
absl::StatusOr<BucketName> ParseBucketName(absl::string_view name);

// InvalidArgument if the key of `name` is empty or ends with '/'. Systole does not use objects with
// such names.
absl::Status CheckObjectName(const BucketName& name);

// Returns `error` with `name` put before its message. If the message already contains the name,
// returns `error` unchanged.
absl::Status WithName(const absl::Status& error, absl::string_view name);

// `key` with each byte percent-encoded, except letters, digits, "-._~" and '/'. Signatures require
// this form.
std::string EncodedKey(absl::string_view key);

// The query of an address: "?a=1&b=2". Sorted by name, and percent-encoded ('/', too), as
// signatures require.
std::string EncodedQuery(std::vector<std::pair<std::string, std::string>> parameters);

// Decodes a key from the answer to a request with `encoding-type=url`. A '+' becomes a blank. A
// malformed "%" stays as it is.
std::string DecodedKey(absl::string_view encoded);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_NAME_H_
