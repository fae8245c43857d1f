// Explains libcurl's results to a person. For transfer.cc.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_HTTP_TRANSFER_ERROR_H_
#define SYSTOLE_CORE_HTTP_TRANSFER_ERROR_H_

#include <curl/curl.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

// What a message may show: numbers and names. libcurl's own texts about a transfer are not used,
// because they hold user names and passwords of proxies, and names of hosts.
struct TransferFacts {
  CURLcode code = CURLE_OK;
  std::string object = {};   // HttpNames::object().
  std::string server = {};   // HttpNames::Server().
  std::string ca_file = {};  // Begins with a blank. Empty: there is none, or it must not be shown.
  std::string ca_variable = {};  // HttpClientOptions::ca_variable.
  long system_error = 0;         // errno of the last connection, or 0.
  long tls_verdict = 0;          // CURLINFO_SSL_VERIFYRESULT.
  long proxy_status = 0;         // The status of the proxy's answer to CONNECT, or 0.
  uint64_t body_bytes = 0;       // How many bytes of the body came.
  bool was_connected = false;
};

// The error of a transfer that failed. See HttpClient::Fetch() for the codes. IsNoServer() is true
// for the error if no connection to a server could be made. REQUIRES: facts.code != CURLE_OK.
absl::Status TransferError(const TransferFacts& facts);

// The error if the whole object came instead of the range that was asked for. In both functions
// `object` is HttpNames::object().
absl::Status RangesIgnored(absl::string_view object);

absl::Status NotHttp(absl::string_view object);

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_TRANSFER_ERROR_H_
