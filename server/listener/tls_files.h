// The files of a server's TLS: its certificate, its key, and the CA of its clients. The files are
// checked before they are used, at the start and whenever a file has changed.
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
  std::string key;          // Readable for this user alone (core/descriptor/secret_file.h).
  // Clients must show a certificate of one of these CAs. Empty: clients need no certificate.
  std::string client_ca;

  bool on() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
};

// What the files hold.
struct TlsMaterial {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

// Reads the files and checks them.
//   InvalidArgument   certificate or key is not named; one of the two is not PEM, or has a
//                     password; certificate and key do not belong together; other users can read
//                     the key.
//   NotFound, ..      a file cannot be read.
// Every message names the file and the remedy.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsOptions& options);

class TlsFiles {
 public:
  // When files have changed, TakeChange() calls `tell` with a sentence for people. `good` is true
  // if TakeChange() has read the files, and false if it refuses them. `tell` may be null. Returns
  // the errors of ReadTlsFiles().
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Open(
      TlsOptions options, std::function<void(absl::string_view text, bool good)> tell);

  bool verifies_clients() const { return !options_.client_ca.empty(); }

  // The first call returns the files' content. A later call returns the new content if the files
  // have changed and are good. If changed files have an error, calls `tell` once and returns
  // nullopt. The caller keeps the last good files.
  std::optional<TlsMaterial> TakeChange() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Of each file: device, inode, time of change in ns, size.
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
