// Reads any bytes as the name of an object in a bucket. The text of an accepted name is the name
// itself, perhaps with a '/' at the end. A name has two addresses, and both are valid URLs. One has
// the server's host and base path. The other has the bucket's name before the host.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_url.h"
#include "core/status/check.h"
#include "core/storage/bucket/bucket_dialect.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/storage/byte_source.h"
#include "core/text/web_address.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(bucket_name, const uint8_t* data, size_t size) {
  using namespace systole;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<HttpUrl> server = ParseHttpUrl("http://host:81/base");
  DecodedKey(text);
  for (const std::string& name : {text, "s3://" + text, "gs://bucket/" + text}) {
    const absl::StatusOr<BucketName> parsed = ParseBucketName(name);
    if (!parsed.ok()) continue;
    SYSTOLE_CHECK(parsed->Text() == name || parsed->Text() == name + "/");
    SYSTOLE_CHECK(IsBucketName(name) && !MayHoldSecrets(name) && ShownName(name) == name);
    SYSTOLE_CHECK(DecodedKey(EncodedKey(parsed->key)) == parsed->key);
    const BucketTarget target = {.name = *parsed, .query = ""};
    const std::string path = absl::StrCat("/base/", parsed->bucket, "/", EncodedKey(parsed->key));
    const absl::StatusOr<HttpUrl> in_path = ParseHttpUrl(AddressInPath(*server, target));
    SYSTOLE_CHECK(in_path.ok() && in_path->host == "host" && in_path->target == path);
    const absl::StatusOr<HttpUrl> at_host = ParseHttpUrl(AddressAtHost(*server, target));
    SYSTOLE_CHECK(at_host.ok() && at_host->host == parsed->bucket + ".host");
    SYSTOLE_CHECK(!absl::StrContains(in_path->target, '?'));
  }
  return 0;
}
