// The limits, authorities and proxies of an HttpClient.
//
// Thread-compatible: values.
#ifndef SYSTOLE_CORE_HTTP_HTTP_CLIENT_OPTIONS_H_
#define SYSTOLE_CORE_HTTP_HTTP_CLIENT_OPTIONS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace systole {

// libcurl receives into a buffer of its own for each connection that is in use; no budget of memory
// counts these. libcurl's 16 KiB cost a system call for each.
inline constexpr int kReceiveBufferBytes = 64 << 10;

struct HttpClientOptions {
  // Connections in all, and to one origin. More of them carry more at a time, cost a buffer of
  // kReceiveBufferBytes each, and weigh on the servers. A request beyond them waits.
  int max_connections = 64;
  int max_connections_per_origin = 64;
  // Requests that may wait for a connection. Later ones wait until there is room among these, so
  // that the list stays short, however many threads ask.
  int max_waiting = 1024;
  // For DNS, TCP and TLS together. A dead address would otherwise use up a request's whole timeout.
  absl::Duration connect_timeout = absl::Seconds(20);
  // A transfer that brings less than 1 KiB a second for so long ends (whole seconds). A server that
  // accepts and says nothing would otherwise use up a request's whole timeout.
  absl::Duration stall_timeout = absl::Seconds(30);
  // A file, and a folder, of certificates of authorities. Empty: those that libcurl was built for.
  std::string ca_file = {};
  std::string ca_folder = {};
  // The variable that names ca_file, for messages. Empty: none does.
  std::string ca_variable = {};
  // Proxies, as [SCHEME://][USER:PASSWORD@]HOST:PORT, for addresses of each scheme. SCHEME is http
  // if none is written; libcurl also knows https, socks5 and others. Empty: none.
  std::string http_proxy = {};
  std::string https_proxy = {};
  // Hosts that are asked directly: names, endings of names, or *, between commas.
  std::string no_proxy = {};
};

// Options by the usual variables of the environment: CURL_CA_BUNDLE or SSL_CERT_FILE, SSL_CERT_DIR,
// http_proxy, https_proxy or HTTPS_PROXY, all_proxy or ALL_PROXY, no_proxy or NO_PROXY. An upper
// case HTTP_PROXY is not read: in a CGI program it is a header of the client's.
//
// If none of them names a file of authorities, ca_file is the first of the usual files of Linux
// distributions that can be read; empty if there is none. Where libcurl looks by itself depends on
// the system that it was built for, and a wheel brings Debian's libcurl to other systems.
//
// If `first_ca_variable` is not null, this variable goes before CURL_CA_BUNDLE: for AWS, its tools'
// AWS_CA_BUNDLE.
HttpClientOptions HttpOptionsOfEnvironment(const char* first_ca_variable = nullptr);
// The same, where `can_be_read` says which files there are.
HttpClientOptions HttpOptionsOfEnvironment(absl::FunctionRef<bool(const char* path)> can_be_read,
                                           const char* first_ca_variable = nullptr);

// InvalidArgument, with the field, if an option is out of range.
absl::Status CheckHttpClientOptions(const HttpClientOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_CLIENT_OPTIONS_H_
