// Parses the XML in answers of buckets: a page of a list, the answers about an upload, and the
// reason why a request was refused.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_ANSWER_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

// How many bytes of a refusal's body are kept, to find its code there.
inline constexpr size_t kRefusalBytes = 4096;

// The state of an object as a list shows it. The texts are as the server writes them, and may have
// any form.
struct ListedObject {
  std::optional<uint64_t> size_bytes = {};  // Nullopt: the list does not show the size.
  std::string etag;
  std::string generation;  // Only in Cloud Storage.
};

// A page of ListObjectsV2. Its form is the same in S3 and in Cloud Storage.
struct ListPage {
  std::vector<std::string> keys;      // Decoded. Each has 1 to kMaxKeyBytes bytes.
  std::vector<ListedObject> objects;  // One for each of `keys`.
  std::vector<std::string> folders;   // Decoded. Prefixes of keys that end with '/'.
  std::string next_token;             // Empty: this is the last page.
};

// Errors are those of ReadXml(). Also DataLoss if the body is not a page of ListObjectsV2, or if
// the page contradicts itself.
absl::StatusOr<ListPage> ParseListPage(absl::string_view body);

struct BucketRefusal {
  std::string code;    // Letters and digits: "AccessDenied". Empty: there is no code.
  std::string region;  // The bucket's region; IsRegion() is true. Empty: there is none.
};

// Reads the code and the region from a refusal's body, or from the first kRefusalBytes of a longer
// body. The body may be any bytes.
BucketRefusal ParseRefusal(absl::string_view body);

// The most bytes of an upload's ID. The IDs of known servers have up to 400 bytes.
inline constexpr size_t kMaxUploadIdBytes = 1024;

// The ID of an upload in parts, from the answer that begins it: printable ASCII. DataLoss or
// ResourceExhausted if the body is not an InitiateMultipartUploadResult.
absl::StatusOr<std::string> ParseUploadId(absl::string_view body);

// Reads the body of an answer 200 to a request that ends an upload. Nullopt: the object exists. A
// refusal: the server could not make the object. A refusal after 200 is possible, because the
// server sends 200 before it knows whether the object can be made. DataLoss or ResourceExhausted if
// the body is neither a result nor a refusal.
absl::StatusOr<std::optional<BucketRefusal>> ParseUploadEnd(absl::string_view body);

// Whether `text` can be the name of a region, which becomes a part of a host's name.
bool IsRegion(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_ANSWER_H_
