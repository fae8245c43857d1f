#include "core/http/transfer_error.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/http/no_server.h"

namespace systole {
namespace {

std::string WhyNotConnected(const TransferFacts& facts) {
  if (facts.system_error == 0) return "";
  return absl::StrCat(" (", std::generic_category().message(static_cast<int>(facts.system_error)),
                      ")");
}

// Whether the cause of this connection error is the server or the way to the server. Other causes
// are too many open files or too little memory in this process.
bool NobodyIsThere(long system_error) {
  switch (system_error) {
    case EACCES:  // A firewall of this machine.
    case EPERM:
    case EAFNOSUPPORT:
    case ECONNREFUSED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

// `verdict` is OpenSSL's number (X509_V_ERR_...). After OpenSSL has accepted the rest, libcurl
// itself compares the certificate's names with the host's name. If the names differ, the verdict is
// "unspecified" or "accepted".
std::string WhyNotTrusted(long verdict) {
  switch (verdict) {
    case 0:  // X509_V_OK
    case 1:  // X509_V_ERR_UNSPECIFIED
      return "it is for another name";
    case 9:  // X509_V_ERR_CERT_NOT_YET_VALID
      return "it is not valid yet; check this machine's clock";
    case 10:  // X509_V_ERR_CERT_HAS_EXPIRED
      return "it has expired";
    case 18:  // X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT
    case 19:  // X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN
      return "it is self-signed, or this machine does not trust the authority that signed it";
    case 2:   // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT
    case 20:  // X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
    case 21:  // X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE
      return "this machine does not trust the authority that signed it";
    default:
      return absl::StrCat("OpenSSL's verification error ", verdict);
  }
}

}  // namespace

absl::Status RangesIgnored(absl::string_view object) {
  return absl::FailedPreconditionError(absl::StrCat(
      object,
      ": the server was asked for a range of bytes and sends the whole object; use a server "
      "that supports ranges (nginx, Apache and buckets do, python3 -m http.server does not), or, "
      "if the object was replaced by a longer one, start again"));
}

absl::Status NotHttp(absl::string_view object) {
  return absl::DataLossError(absl::StrCat(
      object, ": the answer is not HTTP; check the scheme and the port of the address"));
}

absl::Status TransferError(const TransferFacts& facts) {
  const std::string at = absl::StrCat(facts.object, ": ");
  constexpr absl::string_view kCheckProxies =
      "; check http_proxy, https_proxy, all_proxy and no_proxy";
  if (facts.proxy_status >= 300) {
    return absl::UnavailableError(absl::StrCat(at, "the proxy refuses to connect to ", facts.server,
                                               " (status ", facts.proxy_status, ")",
                                               kCheckProxies));
  }
  switch (facts.code) {
    case CURLE_BAD_FUNCTION_ARGUMENT:
      return absl::InvalidArgumentError(
          absl::StrCat(at, "libcurl ", curl_version_info(CURLVERSION_NOW)->version,
                       " signs no request for a name that has '.' or '..' between two '/'; rename "
                       "the object, or let the process load libcurl 7.88"));
    case CURLE_COULDNT_RESOLVE_HOST:
      return NoServerError(
          absl::StrCat(at, "the name of ", facts.server,
                       " cannot be resolved; check how it is spelled, and this machine's name "
                       "servers"));
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return absl::UnavailableError(
          absl::StrCat(at, "the proxy cannot be found or used", kCheckProxies));
    case CURLE_COULDNT_CONNECT: {
      const std::string message =
          absl::StrCat(at, "cannot connect to ", facts.server, WhyNotConnected(facts),
                       "; check that the server runs there, and the firewalls and proxies on the "
                       "way");
      if (NobodyIsThere(facts.system_error)) return NoServerError(message);
      return absl::UnavailableError(message);
    }
    case CURLE_OPERATION_TIMEDOUT:
      if (!facts.was_connected) {
        return NoServerError(
            absl::StrCat(at, facts.server,
                         " did not answer: no connection was made in time; check that the "
                         "server runs there, and the firewalls and proxies on the way"));
      }
      return absl::UnavailableError(absl::StrCat(
          at, facts.server, " did not answer, or stopped sending after ", facts.body_bytes,
          " bytes; check that the server and the network path to it are not overloaded"));
    case CURLE_PEER_FAILED_VERIFICATION:
      return absl::FailedPreconditionError(absl::StrCat(
          at, "the certificate of ", facts.server, " is not accepted (",
          WhyNotTrusted(facts.tls_verdict),
          "); write the host's name as the certificate has it, and give the certificates of your "
          "own authorities by ",
          facts.ca_variable.empty() ? "SSL_CERT_FILE" : facts.ca_variable));
    case CURLE_SSL_CACERT_BADFILE:
      return absl::FailedPreconditionError(absl::StrCat(
          at, "the certificates of authorities", facts.ca_file, " cannot be read; ",
          facts.ca_variable.empty()
              ? "install ca-certificates, or set SSL_CERT_FILE to a file of certificates"
              : absl::StrCat("correct ", facts.ca_variable, ", which names their file")));
    case CURLE_SSL_CONNECT_ERROR:
      return absl::UnavailableError(
          absl::StrCat(at, "no TLS connection to ", facts.server,
                       "; check that the port speaks TLS; if it does not, use http://"));
    case CURLE_PARTIAL_FILE:
      return absl::UnavailableError(absl::StrCat(
          at, "the answer ended early, after ", facts.body_bytes, " bytes of its body; try again"));
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
      return NotHttp(facts.object);
    case CURLE_URL_MALFORMAT:
      return absl::InvalidArgumentError(absl::StrCat(at, "its address is malformed"));
    case CURLE_OUT_OF_MEMORY:
      return absl::ResourceExhaustedError(absl::StrCat(
          at, "no memory for the transfer, or its headers have a line of more than 100 KB"));
    default:
      // Usually the connection was reset, or closed before the answer. libcurl's text for the error
      // number holds no host and no password, so the message may show it.
      return absl::UnavailableError(absl::StrCat(at, "the transfer failed (",
                                                 curl_easy_strerror(facts.code), "); try again"));
  }
}

}  // namespace systole
