#include "core/http/transfer_error.h"

#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// libcurl's words in brackets, or nothing.
std::string Detail(const TransferFacts& facts) {
  const absl::string_view words =
      facts.detail.empty() ? absl::string_view(curl_easy_strerror(facts.code)) : facts.detail;
  return absl::StrCat(" (", ForeignText(words, 400), ")");
}

std::string WhyNotConnected(const TransferFacts& facts) {
  if (facts.system_error == 0) return Detail(facts);
  return absl::StrCat(" (", std::generic_category().message(facts.system_error), ")");
}

}  // namespace

absl::Status RangesIgnored(absl::string_view url) {
  return absl::FailedPreconditionError(absl::StrCat(
      url,
      ": the server was asked for a range of bytes and sends the whole object; use a server "
      "that supports ranges (nginx, Apache and buckets do, python3 -m http.server does not)"));
}

absl::Status NotHttp(absl::string_view url) {
  return absl::DataLossError(absl::StrCat(
      url, ": what comes from there is not HTTP; check the scheme and the port of the address"));
}

absl::Status TransferError(const TransferFacts& facts) {
  const std::string at = absl::StrCat(facts.url, ": ");
  switch (facts.code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return absl::UnavailableError(
          absl::StrCat(at, "the host's name cannot be resolved", Detail(facts),
                       "; check how it is spelled, and this machine's name servers"));
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return absl::UnavailableError(
          absl::StrCat(at, "the proxy cannot be used", Detail(facts),
                       "; check http_proxy, https_proxy, all_proxy and no_proxy"));
    case CURLE_COULDNT_CONNECT:
      return absl::UnavailableError(
          absl::StrCat(at, "cannot connect to ", facts.origin, WhyNotConnected(facts),
                       "; check that the server runs there, and the firewalls on the way"));
    case CURLE_OPERATION_TIMEDOUT:
      return absl::UnavailableError(
          absl::StrCat(at, facts.origin, " did not answer, or stopped to send", Detail(facts),
                       "; check that the server and the way to it are not overloaded"));
    case CURLE_PEER_FAILED_VERIFICATION:
      return absl::FailedPreconditionError(absl::StrCat(
          at, "the certificate of ", facts.origin, " is not accepted", Detail(facts),
          "; write the host's name as the certificate has it, and give the certificates of your "
          "own authorities by SSL_CERT_FILE"));
    case CURLE_SSL_CACERT_BADFILE:
      return absl::FailedPreconditionError(
          absl::StrCat(at, "the certificates of authorities cannot be read", Detail(facts),
                       "; check CURL_CA_BUNDLE and SSL_CERT_FILE, or install ca-certificates"));
    case CURLE_SSL_CONNECT_ERROR:
      return absl::UnavailableError(
          absl::StrCat(at, "no TLS connection to ", facts.origin, Detail(facts),
                       "; check that the port speaks TLS: http:// is for those that do not"));
    case CURLE_PARTIAL_FILE:
      return absl::UnavailableError(absl::StrCat(at, "the answer ended early, after ",
                                                 facts.body_bytes, " bytes of its body",
                                                 Detail(facts), "; try again"));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return NotHttp(facts.url);
    case CURLE_URL_MALFORMAT:
      return absl::InvalidArgumentError(
          absl::StrCat(at, "the address is malformed", Detail(facts)));
    case CURLE_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(absl::StrCat(at, "no memory for the transfer"));
    default:  // Mostly a connection that was reset, or closed before the answer.
      return absl::UnavailableError(
          absl::StrCat(at, "the transfer failed", Detail(facts), "; try again"));
  }
}

}  // namespace systole
