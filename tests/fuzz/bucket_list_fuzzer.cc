// Reads any bytes as a page of a bucket's list, as an answer to an upload, and as a refusal.
// Accepted values are within their bounds. A key that is encoded and decoded again stays the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "core/status/check.h"
#include "core/storage/bucket/bucket_answer.h"
#include "core/storage/bucket/bucket_name.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(bucket_list, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view body(reinterpret_cast<const char*>(data), size);
  if (const absl::StatusOr<ListPage> page = ParseListPage(body); page.ok()) {
    for (const std::vector<std::string>* keys : {&page->keys, &page->folders}) {
      for (const std::string& key : *keys) {
        SYSTOLE_CHECK(!key.empty() && key.size() <= kMaxKeyBytes);
        SYSTOLE_CHECK(DecodedKey(EncodedKey(key)) == key);
      }
    }
    for (const std::string& folder : page->folders) SYSTOLE_CHECK(folder.back() == '/');
  } else {
    SYSTOLE_CHECK(absl::IsDataLoss(page.status()) || absl::IsResourceExhausted(page.status()));
  }
  if (const absl::StatusOr<std::string> id = ParseUploadId(body); id.ok()) {
    SYSTOLE_CHECK(!id->empty() && id->size() <= kMaxUploadIdBytes);
    SYSTOLE_CHECK(EncodedQuery({{"uploadId", *id}}).find('/') == std::string::npos);
  }
  if (const auto end = ParseUploadEnd(body); !end.ok()) {
    SYSTOLE_CHECK(absl::IsDataLoss(end.status()) || absl::IsResourceExhausted(end.status()));
  } else if (end->has_value()) {
    SYSTOLE_CHECK((*end)->code == ParseRefusal(body).code || absl::ascii_isspace(body[0]));
  }
  const BucketRefusal refusal = ParseRefusal(body.substr(0, kRefusalBytes));
  SYSTOLE_CHECK(refusal.code.size() <= 64);
  SYSTOLE_CHECK(std::all_of(refusal.code.begin(), refusal.code.end(),
                            [](char c) { return absl::ascii_isalnum(c); }));
  SYSTOLE_CHECK(refusal.region.empty() || IsRegion(refusal.region));
  return 0;
}
