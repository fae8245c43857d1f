// Makes stores that read and write the bucket of a StubBucket, with fake credentials.
#ifndef SYSTOLE_TESTS_CORE_STORAGE_BUCKET_STUB_BUCKET_STORE_H_
#define SYSTOLE_TESTS_CORE_STORAGE_BUCKET_STUB_BUCKET_STORE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/status/status_macros.h"
#include "core/storage/bucket/bucket_store.h"
#include "core/storage/bucket/gcs_dialect.h"
#include "core/storage/bucket/s3_dialect.h"
#include "tests/core/storage/bucket/fake_credentials.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/wait_until.h"

namespace systole {

inline const AwsCredentials kStubCredentials = {
    .access_key_id = "AKIDOFTEST", .secret_access_key = "SECRETOFTEST", .session_token = "SESSION"};

// HMAC keys of Cloud Storage.
inline const AwsCredentials kStubHmacKeys = {.access_key_id = "GOOG1EKEYID",
                                             .secret_access_key = "SECRETOFTEST"};

// Options for a store that never uses a server's earlier answer about an object (`trust` is 0), and
// waits only a little between attempts.
inline WebStoreOptions EagerWebOptions() {
  constexpr absl::Duration kLong = absl::FromChrono(kLongestWait);
  return {.client = {.connect_timeout = kLong, .stall_timeout = kLong},
          .retry = {.max_attempts = 4,
                    .first_backoff = absl::Milliseconds(1),
                    .max_retry_after = absl::Milliseconds(5)},
          .timeout = kLong,
          .open_timeout = kLong,
          .trust = absl::ZeroDuration()};
}

// The store uses each of `credentials` until the server refuses it.
inline BucketStore S3StoreOf(const StubBucket& bucket,
                             std::vector<AwsCredentials> credentials = {kStubCredentials},
                             WebStoreOptions web = EagerWebOptions(), BucketListOptions list = {},
                             BucketSinkOptions sink = {}) {
  return BucketStore([=, endpoint = bucket.endpoint()]() -> absl::StatusOr<BucketService> {
    BucketService service = {.dialect = nullptr, .web = web, .list = list, .sink = sink};
    SYSTOLE_ASSIGN_OR_RETURN(service.dialect,
                             S3Dialect::Create({.endpoint = endpoint},
                                               std::make_unique<FakeAwsCredentials>(credentials)));
    return service;
  });
}

// The store uses `tokens` for reading and for writing.
inline BucketStore GcsStoreOf(const StubBucket& bucket, std::vector<std::string> tokens,
                              BucketSinkOptions sink = {}, GcsOptions options = {}) {
  options.endpoint = bucket.endpoint();
  return BucketStore([=]() -> absl::StatusOr<BucketService> {
    BucketService service = {
        .dialect = nullptr, .web = EagerWebOptions(), .list = {}, .sink = sink};
    SYSTOLE_ASSIGN_OR_RETURN(service.dialect,
                             GcsDialect::Create(options, std::make_unique<FakeGoogleTokens>(tokens),
                                                std::make_unique<FakeGoogleTokens>(tokens)));
    return service;
  });
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_STORAGE_BUCKET_STUB_BUCKET_STORE_H_
