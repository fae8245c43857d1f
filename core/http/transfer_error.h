// What libcurl's results mean to a person. For transfer.cc.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_HTTP_TRANSFER_ERROR_H_
#define SYSTOLE_CORE_HTTP_TRANSFER_ERROR_H_

#include <curl/curl.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

struct TransferFacts {
  CURLcode code = CURLE_OK;
  absl::string_view url;     // As ShownUrl() shows it.
  absl::string_view origin;  // "https://host:port".
  absl::string_view detail;  // libcurl's own words. May be empty.
  int system_error = 0;      // errno of the last connection, or 0.
  uint64_t body_bytes = 0;   // That came.
};

// The error of a transfer that failed. See HttpClient::Fetch() for the codes.
// REQUIRES: facts.code != CURLE_OK.
absl::Status TransferError(const TransferFacts& facts);

// The whole object came instead of the range that was asked for.
absl::Status RangesIgnored(absl::string_view url);

absl::Status NotHttp(absl::string_view url);

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_TRANSFER_ERROR_H_
