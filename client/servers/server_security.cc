#include "client/servers/server_security.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/descriptor/secret_file.h"
#include "core/status/status_macros.h"
#include "core/storage/local/small_file.h"
#include "core/text/loopback_host.h"

namespace systole {
namespace {

constexpr uint64_t kMaxPemBytes = 1 << 20;
constexpr uint64_t kMaxTokenBytes = 4096;

// An error if other users may read or write the file.
absl::Status CheckSecret(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0 || !OthersMayUse(info, ::geteuid())) {
    return absl::OkStatus();  // If the file is missing, reading it fails and says so.
  }
  return absl::PermissionDeniedError(
      absl::StrCat("other users can read \"", path, "\", which is a secret; run chmod 600 on it"));
}

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  if (path.empty()) return std::string();
  SYSTOLE_ASSIGN_OR_RETURN(std::string text, ReadSmallFile(path, kMaxPemBytes));
  if (!absl::StrContains(text, "-----BEGIN ")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\" is not a PEM file: it has no line -----BEGIN .."));
  }
  return text;
}

absl::StatusOr<TlsTexts> ReadTlsTexts(const ServerSecurity& security) {
  SYSTOLE_RETURN_IF_ERROR(CheckSecret(security.key_file));
  TlsTexts texts;
  SYSTOLE_ASSIGN_OR_RETURN(texts.ca, ReadPem(security.ca_file));
  SYSTOLE_ASSIGN_OR_RETURN(texts.certificate, ReadPem(security.certificate_file));
  SYSTOLE_ASSIGN_OR_RETURN(texts.key, ReadPem(security.key_file));
  return texts;
}

// The token in `text`. `where` names the source of `text` in messages.
absl::StatusOr<std::string> TokenIn(absl::string_view text, absl::string_view where) {
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  const bool good = !token.empty() && token.size() <= kMaxTokenBytes &&
                    std::all_of(token.begin(), token.end(), absl::ascii_isgraph);
  if (good) return std::string(token);
  return absl::InvalidArgumentError(
      absl::StrCat(where, " holds no token: want one word, as `systole token` prints it"));
}

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  SYSTOLE_RETURN_IF_ERROR(CheckSecret(path));
  SYSTOLE_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMaxTokenBytes));
  return TokenIn(text, absl::StrCat("\"", path, "\""));
}

// The host of "HOST:PORT".
absl::string_view HostOf(absl::string_view address) {
  return address.substr(0, address.rfind(':'));
}

bool StaysOnThisHost(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  absl::ConsumePrefix(&address, "dns:///");
  return IsLoopbackHost(HostOf(address));
}

}  // namespace

absl::StatusOr<std::string> NameInCertificates(const ServerSecurity& security,
                                               const std::vector<std::string>& servers) {
  if (!security.tls || !security.server_name.empty()) return security.server_name;
  std::set<std::string> names;
  size_t named = 0;
  for (absl::string_view server : servers) {
    if (!absl::ConsumePrefix(&server, "dns:///")) continue;
    names.insert(std::string(HostOf(server)));
    ++named;
  }
  if (names.empty()) return std::string();
  if (names.size() == 1 && named == servers.size()) return *names.begin();
  return absl::InvalidArgumentError(
      "with TLS, a list of dns:/// names and other servers needs one name that all their "
      "certificates have: give this name by --tls-server-name");
}

absl::StatusOr<std::shared_ptr<const ChannelSecurity>> ChannelSecurity::Open(
    const ServerSecurity& security, const std::vector<std::string>& servers) {
  auto open = std::make_shared<ChannelSecurity>();
  open->security_ = security;
  if (!security.tls && !(security.ca_file.empty() && security.certificate_file.empty() &&
                         security.key_file.empty() && security.server_name.empty())) {
    return absl::InvalidArgumentError(
        "a CA, certificate, key or server name is given without TLS: add --tls");
  }
  if (security.certificate_file.empty() != security.key_file.empty()) {
    return absl::InvalidArgumentError(
        "a client's certificate and its key go together (--tls-certificate, --tls-key)");
  }
  SYSTOLE_ASSIGN_OR_RETURN(open->security_.server_name, NameInCertificates(security, servers));
  for (const std::string& server : servers) {
    if (security.tls || security.token_file.empty() || StaysOnThisHost(server)) continue;
    // The addresses in a file are checked when a token is sent there (AddToken()).
    if (absl::StartsWith(server, "file:")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the token would go to ", server,
                     " in plain text, where others can read it: use TLS (--tls)"));
  }
  MutexLock lock(open->mu_);
  SYSTOLE_ASSIGN_OR_RETURN(open->texts_, ReadTlsTexts(security));
  std::string& token_file = open->security_.token_file;
  if (token_file.empty()) token_file = Environment("SYSTOLE_TOKEN_FILE");
  const std::string given = Environment("SYSTOLE_TOKEN");
  if (!token_file.empty()) {
    SYSTOLE_ASSIGN_OR_RETURN(open->token_, ReadToken(token_file));
  } else if (!given.empty()) {
    SYSTOLE_ASSIGN_OR_RETURN(open->token_, TokenIn(given, "$SYSTOLE_TOKEN"));
  }
  return open;
}

std::shared_ptr<grpc::ChannelCredentials> ChannelSecurity::ChannelCredentials() const {
  absl::StatusOr<TlsTexts> texts = ReadTlsTexts(security_);
  MutexLock lock(mu_);
  const bool changed = texts.ok() && *texts != texts_;
  if (changed) texts_ = *std::move(texts);
  if (changed || credentials_ == nullptr) {
    credentials_ = security_.tls ? grpc::SslCredentials({.pem_root_certs = texts_.ca,
                                                         .pem_private_key = texts_.key,
                                                         .pem_cert_chain = texts_.certificate})
                                 : grpc::InsecureChannelCredentials();
  }
  return credentials_;
}

void ChannelSecurity::AddToken(absl::string_view address, grpc::ClientContext& context) const {
  if (!security_.tls && !StaysOnThisHost(address)) return;
  MutexLock lock(mu_);
  if (!security_.token_file.empty()) {
    if (absl::StatusOr<std::string> token = ReadToken(security_.token_file); token.ok()) {
      token_ = *std::move(token);
    }
  }
  if (!token_.empty()) context.AddMetadata("authorization", absl::StrCat("Bearer ", token_));
}

}  // namespace systole
