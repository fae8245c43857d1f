// The files of a server's TLS: its certificate and key, and whom it trusts. They are checked before
// they are used, at the start and whenever one of them has changed.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_DOOR_TLS_FILES_H_
#define SYSTOLE_SERVER_DOOR_TLS_FILES_H_

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
  std::string certificate;  // The server's, then those that lead from it to a CA.
  std::string key;          // For this user's eyes alone: mode 0600 or less.
  // Clients must show a certificate of one of these CAs. Empty: clients show none.
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
//   InvalidArgument   certificate or key is not named; one of them is not PEM, or has a password;
//                     they do not belong together; the key can be read by others.
//   NotFound, ..      a file cannot be read.
// Every message names the file and the remedy.
absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsOptions& options);

class TlsFiles {
 public:
  // `tell` gets a sentence, and whether it is good news, when files were taken anew or refused. May
  // be null. Called on the thread that calls TakeChange(). Errors of ReadTlsFiles().
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Open(
      TlsOptions options, std::function<void(absl::string_view text, bool good)> tell);

  bool verifies_clients() const { return !options_.client_ca.empty(); }

  // What the files hold, the first time; then only if they have changed and are good. Files that
  // are not are told of once, and nothing is returned: what was taken last stays.
  std::optional<TlsMaterial> TakeChange() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Device, inode, time of change in ns, size: of each file.
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

#endif  // SYSTOLE_SERVER_DOOR_TLS_FILES_H_
