// Objects on web servers, by their addresses: https://host/a.tfrecord, or http://.
#ifndef SYSTOLE_CORE_STORAGE_WEB_WEB_STORE_H_
#define SYSTOLE_CORE_STORAGE_WEB_WEB_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"
#include "core/storage/web/web_source.h"

namespace systole {

// Thread-safe. Read-only. The first call that may need a request makes the connection and its
// thread. Calls that send requests also return the errors of HttpClient::Fetch(). Messages show
// names without their queries.
class WebStore final : public Store {
 public:
  // The store of this process. When it makes its connection, it reads from environment variables
  // which proxies and certificate authorities to use. When the process exits, the store's thread
  // ends, and requests fail with Cancelled.
  static const WebStore& OfProcess();

  explicit WebStore(const WebStoreOptions& options) : options_(options) {}

  // Returns `pattern` itself if `wanted` accepts it, else nothing. The pattern must be the name of
  // one object. HTTP has no lists, so a glob or a folder is InvalidArgument. Sends no request:
  // Open() finds out whether the object exists.
  absl::StatusOr<std::vector<std::string>> List(const std::string& pattern,
                                                NameFilter wanted) const override;
  bool Takes(const std::string& pattern, const std::string& name) const override {
    return pattern == name;
  }
  // Returns PermissionDenied, because no folder of the web can be listed.
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) const override;
  // Has the errors of Store::Open(). FailedPrecondition if the answer to HEAD does not describe the
  // object and the server cannot serve ranges of bytes.
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& name) const override;
  absl::StatusOr<StoredState> Stat(const std::string& name) const override;
  // Sends no request if the identity in `state` is a strong ETag, because each read can require
  // this ETag. Otherwise sends the requests of Open().
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenInState(const std::string& name,
                                                          const StoredState& state) const override;
  // Always FailedPrecondition: the store is read-only.
  absl::StatusOr<std::unique_ptr<ByteSink>> Create(const std::string& name) const override;
  absl::Status Remove(const std::string& name) const override { return Create(name).status(); }
  // The address with its host in lower case, and without the default port of the scheme.
  std::string FullName(const std::string& name) const override;

 private:
  // Ends the connection's thread, if there is one.
  void End() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<WebConnection*> Connection() const ABSL_LOCKS_EXCLUDED(mu_);
  // The server's answer about an object. It may be as old as WebStoreOptions::trust.
  absl::StatusOr<SeenObject> Look(const std::string& name) const;

  const std::optional<WebStoreOptions> options_;  // Nullopt: HttpOptionsOfEnvironment().

  WebStore() = default;

  mutable Mutex mu_;
  mutable std::unique_ptr<WebConnection> connection_ ABSL_GUARDED_BY(mu_);  // Made once.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_STORE_H_
