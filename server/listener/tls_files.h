// Reads the files that a server needs for TLS: its certificate, its key, and the CA of its clients.
// They are read at the start and again whenever one has changed, and are checked each time.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_LISTENER_TLS_FILES_H_
#define SYSTOLE_SERVER_LISTENER_TLS_FILES_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/concurrency/mutex.h"

namespace systole {

// Paths of PEM files. All empty: no TLS.
struct TlsOptions {
  std::string certificate;  // The server's certificate, then the chain to its CA.
  std::string key;          // Other users must not have access (core/descriptor/secret_file.h).
  // Clients must show a certificate of one of the CAs in this file. Empty: clients need no
  // certificate.
  std::string client_ca;

  bool on() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
};

// The content of the files.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

// Reads the files and checks them.
//   InvalidArgument   certificate or key is not named; a file is not PEM or is too large; the key
//                     has a password; certificate and key do not belong together; the certificate
//                     has expired; other users can read the key.
//   NotFound, ..      a file cannot be read.
// The messages name the file, and most say what to do.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsOptions& options);

class TlsFiles {
 public:
  // Returns the errors of ReadTlsFiles(). When files have changed, TakeChange() calls `tell` with a
  // sentence for people, and with `good`: whether the changed files have no error. `tell` may be
  // null.
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Open(
      TlsOptions options, std::function<void(absl::string_view text, bool good)> tell);

  bool verifies_clients() const { return !options_.client_ca.empty(); }

  // The first call returns the content that Open() read. A later call returns the new content if
  // the files have changed and have no error. Otherwise it returns nullopt, and the caller goes on
  // with the content that it has. `tell` is called once for each change.
  std::optional<TlsMaterial> TakeChange() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // For each file: device, inode, time of the last change in ns, size in bytes.
  using Stamp = std::vector<std::tuple<dev_t, ino_t, int64_t, off_t>>;

  TlsFiles(TlsOptions options, std::function<void(absl::string_view, bool)> tell, Stamp stamp,
           TlsMaterial first)
      : options_(std::move(options)),
        tell_(std::move(tell)),
        seen_(std::move(stamp)),
        first_(std::move(first)) {}
  static Stamp StampOf(const TlsOptions& options);

  const TlsOptions options_;
  const std::function<void(absl::string_view, bool)> tell_;
  Mutex mu_;
  Stamp seen_ ABSL_GUARDED_BY(mu_);
  std::optional<TlsMaterial> first_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_TLS_FILES_H_
