#include "core/http/http_client.h"

#include <curl/curl.h>
#include <unistd.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/http/aws_signature.h"
#include "core/http/client_loop.h"
#include "core/http/http_names.h"
#include "core/http/transfer.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr int kMaxRedirects = 5;

// Headers whose values must stay secret, because they give access.
constexpr absl::string_view kSecretHeaders[] = {"authorization", "cookie", "proxy-authorization"};

bool HasBody(HttpMethod method) {
  return method == HttpMethod::kPost || method == HttpMethod::kPut;
}

bool Writes(HttpMethod method) { return HasBody(method) || method == HttpMethod::kDelete; }

absl::StatusOr<HttpUrl> CheckRequest(const HttpRequest& request, const HttpNames& names) {
  for (const auto& [name, value] : request.headers) {
    if (!IsSendableHeader(name, value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a request for ", names.object(),
                       " has a header that cannot be sent; want a name in lower case, and a value "
                       "of printable ASCII"));
    }
  }
  if (request.range.has_value() && request.range->begin >= request.range->end) {
    return absl::InvalidArgumentError(
        absl::StrCat("a request for ", names.object(), " asks for an empty range of bytes"));
  }
  if (!request.body.empty() && !HasBody(request.method)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a request for ", names.object(), " has a body, which only POST and PUT may have"));
  }
  if (request.sign.has_value()) {
    SYSTOLE_RETURN_IF_ERROR(CheckAwsSigning(*request.sign, names.object()));
    const curl_version_info_data& libcurl = *curl_version_info(CURLVERSION_NOW);
    SYSTOLE_RETURN_IF_ERROR(CheckLibcurlSigns(libcurl.version_num, libcurl.version));
  }
  absl::StatusOr<HttpUrl> url = ParseHttpUrl(request.url);
  if (url.ok()) return url;
  return absl::InvalidArgumentError(names.Detail(
      url.status().message(), absl::StrCat(names.object(), ": its address is malformed")));
}

absl::Status Forked(absl::string_view process) {
  return absl::FailedPreconditionError(
      absl::StrCat(process,
                   " was forked after its parent had begun to read from the web, so it has no "
                   "thread for its reads; start processes by spawn"));
}

bool IsRedirect(int status) {
  return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

// The address to which `response` redirects. `at` is the address that was requested.
absl::StatusOr<HttpUrl> NextUrl(const HttpNames& names, const HttpUrl& at,
                                const HttpResponse& response) {
  const absl::string_view location = FindHeader(response.headers, "location");
  if (location.empty()) {
    return absl::DataLossError(
        absl::StrCat(names.object(), ": the server redirects without giving an address (status ",
                     response.status, " without Location)"));
  }
  absl::StatusOr<HttpUrl> next = ResolveHttpUrl(at, location);
  if (!next.ok()) {
    return absl::DataLossError(
        absl::StrCat(names.object(), ": the server redirects to ",
                     names.Detail(next.status().message(), "an invalid address")));
  }
  if (at.scheme == "https" && next->scheme != "https") {
    return absl::FailedPreconditionError(
        absl::StrCat(names.object(), ": the server redirects to ",
                     names.Detail(ShownUrl(next->Text()), "an address"),
                     ", which is not encrypted; use an address that does not redirect to http"));
  }
  return next;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(const HttpClientOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckHttpClientOptions(options));
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<ClientLoop> loop, ClientLoop::Create(options));
  return absl::WrapUnique(new HttpClient(options, std::move(loop)));
}

HttpClient::HttpClient(const HttpClientOptions& options, std::unique_ptr<ClientLoop> loop)
    : options_(options), process_(::getpid()), loop_(std::move(loop)) {}

void HttpClient::End() {
  if (::getpid() == process_) loop_->End();
}

HttpClient::~HttpClient() {
  // ~ClientLoop() waits for the loop's thread, which a forked child does not have.
  if (::getpid() != process_) static_cast<void>(loop_.release());
}

absl::StatusOr<HttpResponse> HttpClient::FetchOnce(const HttpRequest& request,
                                                   const HttpNames& names, const HttpUrl& url,
                                                   const HttpHeaders& headers,
                                                   const AwsSigning* sign,
                                                   absl::Duration deadline) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<Transfer> transfer,
                           Transfer::Create(options_, request, names, url, headers, sign));
  const bool added = now_() < deadline && loop_->AddBefore(deadline, transfer);
  if (added && transfer->WaitUntil(deadline, now_)) return transfer->TakeAnswer();
  transfer->Abandon();
  if (added) loop_->Drop(transfer);
  return absl::DeadlineExceededError(absl::StrCat(
      names.object(), ": no whole answer within ", absl::FormatDuration(request.timeout),
      added ? "" : "; the whole time was spent in waiting for a connection",
      "; check that the server and the network path to it are not overloaded"));
}

absl::Status HttpClient::SleepFor(absl::Duration time) {
  if (::getpid() != process_) return absl::OkStatus();  // Fetch() reports the error.
  return SleepWhile([] { return true; }, time);
}

absl::Status HttpClient::SleepWhile(absl::FunctionRef<bool()> waits, absl::Duration time) {
  if (::getpid() != process_) return Forked("this process");
  const ClientLoop::Call call(*loop_);
  return loop_->SleepWhile(waits, time);
}

void HttpClient::WakeSleepers() {
  if (::getpid() == process_) loop_->WakeSleepers();
}

absl::StatusOr<HttpResponse> HttpClient::Fetch(const HttpRequest& request) {
  const HttpNames names(request);
  if (::getpid() != process_) {
    return Forked(absl::StrCat(names.object(), ": this process"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(HttpUrl url, CheckRequest(request, names));
  const ClientLoop::Call call(*loop_);
  const absl::Duration deadline = now_() + request.timeout;
  HttpHeaders headers = request.headers;
  const AwsSigning* sign = request.sign.has_value() ? &*request.sign : nullptr;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    SYSTOLE_ASSIGN_OR_RETURN(HttpResponse response,
                             FetchOnce(request, names, url, headers, sign, deadline));
    if (!IsRedirect(response.status) || request.redirects == Redirects::kReturn) return response;
    if (request.redirects == Redirects::kRefuse || Writes(request.method)) {
      return absl::FailedPreconditionError(
          absl::StrCat(names.object(), ": the server redirects (status ", response.status,
                       "), but this request must not follow a redirect; use the address "
                       "that answers without a redirect"));
    }
    SYSTOLE_ASSIGN_OR_RETURN(HttpUrl next, NextUrl(names, url, response));
    if (next.Origin() != url.Origin()) {
      for (const absl::string_view secret : kSecretHeaders) RemoveHeader(headers, secret);
      sign = nullptr;
    }
    url = std::move(next);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(names.object(), ": the server redirects more than ", kMaxRedirects, " times",
                   names.Detail(absl::StrCat(", the last time to ", ShownUrl(url.Text())), ""),
                   "; use the final address"));
}

}  // namespace systole
