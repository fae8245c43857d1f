// A bucket of S3 or Cloud Storage behind a StubHttpServer, for tests. The bucket stores objects,
// takes uploads in one request or in parts, lists keys in pages, checks signatures or tokens, and
// refuses in XML. With SetFault() a test gives other answers to some requests.
#ifndef SYSTOLE_TESTS_CORE_STORAGE_BUCKET_STUB_BUCKET_H_
#define SYSTOLE_TESTS_CORE_STORAGE_BUCKET_STUB_BUCKET_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/mutex.h"
#include "core/http/http_message.h"
#include "tests/core/http/faulty_http_server.h"
#include "tests/core/http/stub_http_server.h"

namespace systole {

// The name of each stub's only bucket.
inline constexpr char kStubBucket[] = "shards.of-test";

struct StubBucketOptions {
  // Whether the bucket is one of Cloud Storage. Objects then have generations, and requests have
  // tokens in place of signatures.
  bool is_gcs = false;
  // The signature that requests must have. Nullopt: requests need no signature.
  std::optional<AwsSigning> sign = {};
  // The token that requests must have. Empty: requests need no token.
  std::string token = {};
  // A page of a list has at most this many keys, even if a request asks for more.
  size_t page_keys = 1000;
  // The least size of a part of an upload. The last part may be smaller.
  size_t min_part_bytes = 1;
};

// Thread-safe.
class StubBucket {
 public:
  explicit StubBucket(const StubBucketOptions& options = {},
                      const StubCertificate* certificate = nullptr);

  // Puts an object, with a new ETag and generation. Returns its name: s3://BUCKET/KEY or
  // gs://BUCKET/KEY.
  std::string Put(const std::string& key, std::string bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const std::string& key) ABSL_LOCKS_EXCLUDED(mu_);
  std::string Name(const std::string& key) const;
  // The object's bytes. Nullopt: there is none.
  std::optional<std::string> Get(const std::string& key) const ABSL_LOCKS_EXCLUDED(mu_);
  // The number of uploads in parts that have begun and not ended.
  int uploads() const ABSL_LOCKS_EXCLUDED(mu_);
  void SetFault(FaultyHttpServer::Fault fault) { server_.SetFault(std::move(fault)); }
  // From now on requests must have these credentials. Requests that are signed with the earlier
  // credentials get ExpiredToken. Requests with the earlier token get AuthenticationRequired.
  void Renew(const AwsSigning& sign) ABSL_LOCKS_EXCLUDED(mu_);
  void Renew(const std::string& token) ABSL_LOCKS_EXCLUDED(mu_);

  // The answer to a request if no fault is set.
  StubAnswer Usual(const StubRequest& request) ABSL_LOCKS_EXCLUDED(mu_);

  StubHttpServer& server() { return server_.server(); }
  std::string endpoint() const { return server_.server().Url(""); }
  // The number of requests so far: lists() for lists, reads() for objects.
  int lists() const;
  int reads() const;

 private:
  struct Object {
    std::string bytes;
    int put = 0;  // The number of this put, counted from 1.
    HttpHeaders metadata = {};
  };
  struct Upload {
    std::string key;
    HttpHeaders metadata;
    std::map<int, std::string> parts;  // The key is the part's number.
  };

  // The refusal of the request; nullopt if the request is accepted.
  std::optional<StubAnswer> Refuses(const StubRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StubAnswer ServeObject(const StubRequest& request, const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A PUT, POST or DELETE.
  StubAnswer ServeWrite(const StubRequest& request, const std::string& key,
                        const std::map<std::string, std::string>& query)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StubAnswer ServeUpload(const StubRequest& request, const std::string& id, const std::string& part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  StubAnswer EndUpload(const StubRequest& request, const std::string& id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::string EtagOf(const std::string& id, int part) const {
    return id + "&" + std::to_string(part);
  }
  HttpHeaders MetadataOf(const StubRequest& request) const;
  StubAnswer ServeList(const std::map<std::string, std::string>& query)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const bool is_gcs_;
  const size_t page_keys_;
  const size_t min_part_bytes_;
  mutable Mutex mu_;
  std::optional<AwsSigning> sign_ ABSL_GUARDED_BY(mu_);
  std::string token_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> expired_ ABSL_GUARDED_BY(mu_);  // Access key IDs.
  std::map<std::string, Object> objects_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, Upload> uploads_ ABSL_GUARDED_BY(mu_);  // The key is the ID.
  int puts_ ABSL_GUARDED_BY(mu_) = 0;
  FaultyHttpServer server_;  // Last: its threads use the members above.
};

// A refusal with a code in XML.
StubAnswer RefuseInXml(int status, absl::string_view code, absl::string_view more = "",
                       const HttpHeaders& headers = {});

// A bucket of S3 that needs no credentials, for tests of code that opens stores by itself. The
// function sets the environment of the process so that s3:// names lead to this bucket's server.
// Call it before the store of s3:// is used: the store keeps its first server. So all tests of the
// process share this bucket.
StubBucket& UnsignedBucketOfProcess();
// Like UnsignedBucketOfProcess(), but the environment also has credentials. A store needs
// credentials to write.
StubBucket& SignedBucketOfProcess();

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_STORAGE_BUCKET_STUB_BUCKET_H_
