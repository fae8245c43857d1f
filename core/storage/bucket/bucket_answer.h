// What the answers of buckets say in XML: a page of a list, how an upload goes on, and why a
// request was refused.
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

// What a list says of an object's state. Texts as the server writes them, of any form.
struct ListedObject {
  std::optional<uint64_t> size_bytes = {};  // Nullopt: it is not said.
  std::string etag;
  std::string generation;  // Of Cloud Storage.
};

// A page of ListObjectsV2. Its form is the same in S3 and in Cloud Storage.
struct ListPage {
  std::vector<std::string> keys;      // Decoded. Each has 1 to kMaxKeyBytes bytes.
  std::vector<ListedObject> objects;  // Of each of the keys.
  std::vector<std::string> folders;   // The same. Each ends with '/': a prefix of keys.
  std::string next_token;             // Empty: this is the last page.
};

// DataLoss or ResourceExhausted if the body is not such a page. Errors are those of ReadXml(), and
// DataLoss if the page contradicts itself.
absl::StatusOr<ListPage> ParseListPage(absl::string_view body);

struct BucketRefusal {
  std::string code;    // Letters and digits: "AccessDenied". Empty: the answer has none.
  std::string region;  // Where the bucket is, if the answer says so; fit for IsRegion().
};

// Reads the first bytes of the body of a refusal. They may be cut off, and may be any bytes.
BucketRefusal ParseRefusal(absl::string_view body);

// The most bytes of an upload's ID. The IDs of known servers have up to 400.
inline constexpr size_t kMaxUploadIdBytes = 1024;

// The ID of an upload in parts, from the answer that begins it: printable ASCII. DataLoss or
// ResourceExhausted if the body is no InitiateMultipartUploadResult.
absl::StatusOr<std::string> ParseUploadId(absl::string_view body);

// Reads the body of an answer 200 to a request that ends an upload. Nullopt: the object exists. A
// refusal: it does not exist. This can happen because the server sends 200 before it knows whether
// it can make the object. DataLoss or ResourceExhausted if the body is neither.
absl::StatusOr<std::optional<BucketRefusal>> ParseUploadEnd(absl::string_view body);

// Whether `text` can be the name of a region, which becomes a part of a host's name.
bool IsRegion(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_ANSWER_H_
