#include "core/http/http_client_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace systole {
namespace {

// The value of the first of these variables that is set and not empty.
std::string FirstOf(std::initializer_list<const char*> variables) {
  for (const char* variable : variables) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return value;
  }
  return "";
}

// Where Linux distributions keep the certificates of certificate authorities.
constexpr const char* kCaFiles[] = {
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch, Gentoo.
    "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, RHEL.
    "/etc/ssl/ca-bundle.pem",              // openSUSE.
    "/etc/ssl/cert.pem",                   // Alpine.
};

}  // namespace

HttpClientOptions HttpOptionsOfEnvironment(const char* first_ca_variable) {
  return HttpOptionsOfEnvironment([](const char* path) { return ::access(path, R_OK) == 0; },
                                  first_ca_variable);
}

HttpClientOptions HttpOptionsOfEnvironment(absl::FunctionRef<bool(const char* path)> can_be_read,
                                           const char* first_ca_variable) {
  HttpClientOptions options;
  for (const char* variable : {first_ca_variable, "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (variable == nullptr) continue;
    options.ca_file = FirstOf({variable});
    if (options.ca_file.empty()) continue;
    options.ca_variable = variable;
    break;
  }
  options.ca_folder = FirstOf({"SSL_CERT_DIR"});
  if (options.ca_file.empty()) {
    const auto found = std::find_if(std::begin(kCaFiles), std::end(kCaFiles), can_be_read);
    if (found != std::end(kCaFiles)) options.ca_file = *found;
  }
  options.http_proxy = FirstOf({"http_proxy", "all_proxy", "ALL_PROXY"});
  options.https_proxy = FirstOf({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  options.no_proxy = FirstOf({"no_proxy", "NO_PROXY"});
  return options;
}

absl::Status CheckHttpClientOptions(const HttpClientOptions& options) {
  const auto refuse = [](absl::string_view field, absl::string_view want) {
    return absl::InvalidArgumentError(
        absl::StrCat("HttpClientOptions.", field, " is out of range, want ", want));
  };
  constexpr int kMost = 1024;  // No server takes so many connections from one machine.
  if (options.max_connections < 1 || options.max_connections > kMost) {
    return refuse("max_connections", "1 to 1024");
  }
  if (options.max_connections_per_origin < 1 || options.max_connections_per_origin > kMost) {
    return refuse("max_connections_per_origin", "1 to 1024");
  }
  if (options.max_waiting < 1) return refuse("max_waiting", "at least 1");
  if (options.connect_timeout <= absl::ZeroDuration()) return refuse("connect_timeout", "over 0");
  if (options.stall_timeout < absl::Seconds(1)) return refuse("stall_timeout", "at least 1 s");
  return absl::OkStatus();
}

}  // namespace systole
