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

// The most bytes of a refusal's body that are kept. ParseRefusal() reads the code from these bytes.
inline constexpr size_t kRefusalBytes = 4096;

// The state of an object as a list shows it. `etag` and `generation` are the server's text,
// unchecked.
struct ListedObject {
  std::optional<uint64_t> size_bytes = {};  // Nullopt: the list does not show the size.
  std::string etag;
  std::string generation;  // Only Cloud Storage has generations.
};

// A page of ListObjectsV2. Its form is the same in S3 and in Cloud Storage.
struct ListPage {
  std::vector<std::string> keys;      // Decoded. Each has 1 to kMaxKeyBytes bytes.
  std::vector<ListedObject> objects;  // objects[i] has the key keys[i].
  std::vector<std::string> folders;   // Decoded beginnings of keys, up to a '/'.
  std::string next_token;             // Empty: this is the last page.
};

// Returns the errors of ReadXml(). DataLoss if the body is not a page of ListObjectsV2, if a key or
// a folder is invalid, or if more pages follow but next_token is missing.
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

// Reads the ID of an upload in parts from the answer to the request that begins the upload. The ID
// is printable ASCII. DataLoss or ResourceExhausted if the body is not an
// InitiateMultipartUploadResult with such an ID.
absl::StatusOr<std::string> ParseUploadId(absl::string_view body);

// Reads the body of an answer 200 to a request that ends an upload. The server may send 200 before
// it knows whether it can make the object. So there are two results:
//   nullopt     the object exists.
//   a refusal   the server could not make the object.
// DataLoss or ResourceExhausted if the body is neither a result nor a refusal.
absl::StatusOr<std::optional<BucketRefusal>> ParseUploadEnd(absl::string_view body);

// Whether `text` can be the name of a region. Only such a text may become a part of a host's name.
bool IsRegion(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_ANSWER_H_
