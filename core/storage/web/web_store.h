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

// Thread-safe. Read-only. Before the first use of a name, the store has no connection and no
// thread. Errors are also those of HttpClient::Fetch(). Messages show names without their queries.
class WebStore final : public Store {
 public:
  // The store of this process. At its first use it takes proxies and certificate authorities from
  // the environment variables. When the process exits, the store's thread ends, and its requests
  // fail with Cancelled.
  static const WebStore& OfProcess();

  explicit WebStore(const WebStoreOptions& options) : options_(options) {}

  // A pattern is the name of an object. Sends no request: Open() finds out whether there is such an
  // object. InvalidArgument, with the remedy, for a glob or a folder: HTTP has no lists.
  absl::StatusOr<std::vector<std::string>> List(const std::string& pattern,
                                                NameFilter wanted) const override;
  bool Takes(const std::string& pattern, const std::string& name) const override {
    return pattern == name;
  }
  // Returns PermissionDenied, because no folder of the web can be listed.
  absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& folder) const override;
  // Besides Store's errors: FailedPrecondition if the server cannot serve ranges of bytes.
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(const std::string& name) const override;
  absl::StatusOr<StoredState> Stat(const std::string& name) const override;
  // Sends no request if reads can be tied to the state.
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenInState(const std::string& name,
                                                          const StoredState& state) const override;
  // FailedPrecondition: nothing is written.
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

  const std::optional<WebStoreOptions> options_;  // Nullopt: taken from the environment.

  WebStore() = default;

  mutable Mutex mu_;
  mutable std::unique_ptr<WebConnection> connection_ ABSL_GUARDED_BY(mu_);  // Made once.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_STORE_H_
