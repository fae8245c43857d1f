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

// libcurl has a receive buffer of this size for each connection that is in use. No memory budget
// counts these buffers. libcurl's default of 16 KiB would cost four times as many system calls.
inline constexpr int kReceiveBufferBytes = 64 << 10;

struct HttpClientOptions {
  // The most connections in all, and the most to one origin. More connections carry more bytes at a
  // time. Each connection needs a buffer of kReceiveBufferBytes, and loads the server. A request
  // that finds no free connection waits.
  int max_connections = 64;
  int max_connections_per_origin = 64;
  // The most requests in the list of requests that wait for a connection. If the list is full, a
  // further call waits until the list has room.
  int max_waiting = 1024;
  // The time for DNS, TCP and TLS together. Without this limit a dead address would use up a
  // request's whole timeout.
  absl::Duration connect_timeout = absl::Seconds(20);
  // A transfer ends if it brings less than 1 KiB a second for this long (whole seconds). Without
  // this limit, a server that accepts a connection and sends nothing would use up a request's whole
  // timeout.
  absl::Duration stall_timeout = absl::Seconds(30);
  // A file and a folder with certificates of authorities. Empty: the default of libcurl's build.
  std::string ca_file = {};
  std::string ca_folder = {};
  // The variable that names ca_file, for messages. Empty: no variable names it.
  std::string ca_variable = {};
  // The proxies for http:// addresses and for https:// addresses, written as
  // [SCHEME://][USER:PASSWORD@]HOST:PORT. Without SCHEME, the scheme is http. libcurl also knows
  // https, socks5 and others. Empty: no proxy.
  std::string http_proxy = {};
  std::string https_proxy = {};
  // Hosts that are reached without a proxy: names, endings of names, or *, separated by commas.
  std::string no_proxy = {};
};

// The options that the usual variables of the environment give: CURL_CA_BUNDLE or SSL_CERT_FILE,
// SSL_CERT_DIR, http_proxy, https_proxy or HTTPS_PROXY, all_proxy or ALL_PROXY, no_proxy or
// NO_PROXY. HTTP_PROXY in upper case is not read, because in a CGI program this variable holds a
// header that the client sent.
//
// If none of these variables names a file of authorities, ca_file is the first of the usual files
// of Linux distributions that can be read. If none can be read, ca_file is empty. libcurl itself
// looks only for the file of the system that it was built for. That is not enough, because a Python
// wheel brings Debian's libcurl to other systems.
//
// If `first_ca_variable` is not null, this variable is read before CURL_CA_BUNDLE. For AWS it is
// AWS_CA_BUNDLE, which AWS's tools read.
HttpClientOptions HttpOptionsOfEnvironment(const char* first_ca_variable = nullptr);
// Like the function above. `can_be_read` says whether a file can be read.
HttpClientOptions HttpOptionsOfEnvironment(absl::FunctionRef<bool(const char* path)> can_be_read,
                                           const char* first_ca_variable = nullptr);

// InvalidArgument, with the field, if an option is out of range.
absl::Status CheckHttpClientOptions(const HttpClientOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_CLIENT_OPTIONS_H_
