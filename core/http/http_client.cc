#include "core/http/http_client.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/http/client_loop.h"
#include "core/http/transfer.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr int kMaxRedirects = 5;

// Headers that let their bearer in.
constexpr absl::string_view kSecretHeaders[] = {"authorization", "cookie", "proxy-authorization"};

absl::Status CheckRequest(const HttpRequest& request) {
  for (const auto& [name, value] : request.headers) {
    if (!IsSendableHeader(name, value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a request to ", ShownUrl(request.url),
                       " has a header that cannot be sent; want a name in lower case, and a value "
                       "of printable ASCII"));
    }
  }
  if (request.range.has_value() && request.range->begin >= request.range->end) {
    return absl::InvalidArgumentError(
        absl::StrCat("a request to ", ShownUrl(request.url), " asks for an empty range of bytes"));
  }
  return absl::OkStatus();
}

bool IsRedirect(int status) {
  return (status >= 301 && status <= 303) || status == 307 || status == 308;
}

// Where the answer to a request to `at` leads.
absl::StatusOr<HttpUrl> NextUrl(const HttpUrl& at, const HttpResponse& response) {
  const std::string from = ShownUrl(at.Text());
  const absl::string_view location = FindHeader(response.headers, "location");
  if (location.empty()) {
    return absl::DataLossError(absl::StrCat(from, ": the server redirects to nowhere (status ",
                                            response.status, " without Location)"));
  }
  absl::StatusOr<HttpUrl> next = ResolveHttpUrl(at, location);
  if (!next.ok()) {
    return absl::DataLossError(
        absl::StrCat(from, ": the server redirects to ", next.status().message()));
  }
  if (at.scheme == "https" && next->scheme != "https") {
    return absl::FailedPreconditionError(
        absl::StrCat(from, ": the server redirects to ", ShownUrl(next->Text()),
                     ", which is not encrypted; name an address that stays with https"));
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

HttpClient::~HttpClient() {
  // In a forked child there is no thread that could be waited for.
  if (::getpid() != process_) static_cast<void>(loop_.release());
}

absl::StatusOr<HttpResponse> HttpClient::FetchOnce(const HttpRequest& request, const HttpUrl& url,
                                                   const HttpHeaders& headers,
                                                   absl::Duration deadline) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<Transfer> transfer,
                           Transfer::Create(options_, request, url, headers));
  bool added = false;
  while (true) {
    const absl::Duration left = deadline - now_();
    if (left <= absl::ZeroDuration() || InterruptRequested()) {
      transfer->Abandon();
      if (added) loop_->Drop(transfer);
      if (InterruptRequested()) return InterruptedError();
      return absl::DeadlineExceededError(absl::StrCat(
          ShownUrl(url.Text()), ": no whole answer within ", absl::FormatDuration(request.timeout),
          added ? "" : ", all of it spent in waiting for a connection",
          "; check that the server and the way to it are not overloaded"));
    }
    const absl::Duration slice = std::min(left, kInterruptLook);
    if (!added) {
      added = loop_->AddWithin(slice, transfer);
    } else if (transfer->WaitFor(slice)) {
      return transfer->TakeAnswer();
    }
  }
}

absl::StatusOr<HttpResponse> HttpClient::Fetch(const HttpRequest& request) {
  if (::getpid() != process_) {
    return absl::FailedPreconditionError(
        absl::StrCat(ShownUrl(request.url),
                     ": this process was forked after its parent had begun to read from "
                     "the web, and has no thread for that; start processes by spawn"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckRequest(request));
  SYSTOLE_ASSIGN_OR_RETURN(HttpUrl url, ParseHttpUrl(request.url));
  const ClientLoop::Call call(*loop_);
  const absl::Duration deadline = now_() + request.timeout;
  HttpHeaders headers = request.headers;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    SYSTOLE_ASSIGN_OR_RETURN(HttpResponse response, FetchOnce(request, url, headers, deadline));
    if (!IsRedirect(response.status)) return response;
    SYSTOLE_ASSIGN_OR_RETURN(HttpUrl next, NextUrl(url, response));
    if (next.Origin() != url.Origin()) {
      for (const absl::string_view secret : kSecretHeaders) RemoveHeader(headers, secret);
    }
    url = std::move(next);
  }
  return absl::FailedPreconditionError(
      absl::StrCat(ShownUrl(request.url), ": the server redirects more than ", kMaxRedirects,
                   " times, the last time to ", ShownUrl(url.Text()),
                   "; name the address that it should lead to"));
}

}  // namespace systole
