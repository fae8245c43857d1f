#include "server/listener/tls_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/descriptor/owned_fd.h"
#include "core/descriptor/secret_file.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "openssl/err.h"
#include "openssl/x509.h"
#include "server/listener/pem.h"

namespace systole {
namespace {

// A bundle of all the CAs that browsers know has 220 KB.
constexpr off_t kMaxFileBytes = 4 << 20;

absl::Status Bad(const char* flag, const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " '", ForeignName(path), "': ", why));
}

// `secret`: other users must not be able to read the file.
absl::StatusOr<std::string> ReadFile(const char* flag, const std::string& path, bool secret) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info = {};
  if (!fd.ok() || ::fstat(fd.get(), &info) != 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat(flag, ": cannot read '", ForeignName(path), "'"));
  }
  if (secret && OthersMayUse(info, ::geteuid())) {
    return Bad(flag, path,
               absl::StrCat("other users can read the key; run: chmod 600 ", ForeignName(path)));
  }
  if (!S_ISREG(info.st_mode) || info.st_size > kMaxFileBytes) {
    return Bad(flag, path, absl::StrCat("want a file of at most ", kMaxFileBytes, " bytes"));
  }
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  const ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), 0);
  if (got != info.st_size) return Bad(flag, path, "it changed while it was read; try again");
  return bytes;
}

absl::StatusOr<Certificate> FirstCertificate(const char* flag, const std::string& path,
                                             const std::string& pem) {
  std::vector<Certificate> all = CertificatesIn(pem);
  if (!all.empty()) return std::move(all.front());
  return Bad(flag, path, "it holds no PEM certificate (-----BEGIN CERTIFICATE-----)");
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsFiles(const TlsOptions& options) {
  if (options.certificate.empty() || options.key.empty()) {
    return absl::InvalidArgumentError(
        "TLS needs both --tls-certificate and --tls-key; deploy/make_certificates.sh makes them");
  }
  TlsMaterial material;
  SYSTOLE_ASSIGN_OR_RETURN(material.certificate,
                           ReadFile("--tls-certificate", options.certificate, /*secret=*/false));
  SYSTOLE_ASSIGN_OR_RETURN(
      const Certificate certificate,
      FirstCertificate("--tls-certificate", options.certificate, material.certificate));
  SYSTOLE_ASSIGN_OR_RETURN(material.key, ReadFile("--tls-key", options.key, /*secret=*/true));
  const PrivateKey key = PrivateKeyIn(material.key);
  const bool match = key != nullptr && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (key == nullptr)
    return Bad("--tls-key", options.key, "it holds no PEM key, or its key has a password");
  if (!match) {
    return Bad(
        "--tls-key", options.key,
        absl::StrCat("it is not the key of the certificate '", ForeignName(options.certificate),
                     "'; give the pair that was made "
                     "together"));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    return Bad("--tls-certificate", options.certificate, "it has expired; make a new one");
  }
  if (!options.client_ca.empty()) {
    SYSTOLE_ASSIGN_OR_RETURN(material.client_ca,
                             ReadFile("--tls-client-ca", options.client_ca, /*secret=*/false));
    SYSTOLE_RETURN_IF_ERROR(
        FirstCertificate("--tls-client-ca", options.client_ca, material.client_ca).status());
  }
  return material;
}

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Open(
    TlsOptions options, std::function<void(absl::string_view, bool)> tell) {
  // Takes the stamp before it reads the files: a change in between then shows in TakeChange().
  Stamp stamp = StampOf(options);
  SYSTOLE_ASSIGN_OR_RETURN(TlsMaterial first, ReadTlsFiles(options));
  return absl::WrapUnique(
      new TlsFiles(std::move(options), std::move(tell), std::move(stamp), std::move(first)));
}

TlsFiles::Stamp TlsFiles::StampOf(const TlsOptions& options) {
  Stamp stamp;
  for (const std::string& path : {options.certificate, options.key, options.client_ca}) {
    struct stat info = {};
    if (path.empty() || ::stat(path.c_str(), &info) != 0) info = {};
    stamp.emplace_back(info.st_dev, info.st_ino,
                       int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
                       info.st_size);
  }
  return stamp;
}

std::optional<TlsMaterial> TlsFiles::TakeChange() {
  absl::StatusOr<TlsMaterial> material = TlsMaterial();
  {
    MutexLock lock(mu_);
    if (first_.has_value()) return std::exchange(first_, std::nullopt);
    Stamp stamp = StampOf(options_);
    if (stamp == seen_) return std::nullopt;
    seen_ = std::move(stamp);
    material = ReadTlsFiles(options_);
  }
  if (tell_ != nullptr) {
    tell_(material.ok() ? "the TLS files have changed; new connections use them"
                        : absl::StrCat("the TLS files have changed, and the old ones stay in use: ",
                                       material.status().message()),
          material.ok());
  }
  if (!material.ok()) return std::nullopt;
  return *std::move(material);
}

}  // namespace systole
