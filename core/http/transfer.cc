#include "core/http/transfer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/http/aws_signature.h"
#include "core/http/transfer_error.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The most bytes of all headers of an answer. A server could send headers without end.
constexpr size_t kMaxHeaderBytes = size_t{64} << 10;
// The most bytes that are read of the body of an answer that is not 2xx. If the body is not longer,
// the connection can be used again. Only HttpRequest::refusal_bytes of the body are kept.
constexpr uint64_t kReadRefusalBytes = uint64_t{64} << 10;
constexpr long kStallBytesPerSecond = 1024;

bool IsSuccess(int status) { return status >= 200 && status < 300; }

// The status in "HTTP/1.1 206 Partial Content", 0 if there is none.
int StatusOfLine(absl::string_view line) {
  const size_t blank = line.find(' ');
  int status = 0;
  if (blank == absl::string_view::npos || !absl::SimpleAtoi(line.substr(blank + 1, 3), &status)) {
    return 0;
  }
  return status >= 100 && status <= 999 ? status : 0;
}

template <typename Value>
bool Set(CURL* handle, CURLoption option, Value value) {
  return curl_easy_setopt(handle, option, value) == CURLE_OK;
}

bool SetIfGiven(CURL* handle, CURLoption option, const std::string& value) {
  return value.empty() || Set(handle, option, value.c_str());
}

bool Append(curl_slist*& lines, const std::string& line) {
  curl_slist* const longer = curl_slist_append(lines, line.c_str());
  if (longer == nullptr) return false;
  lines = longer;
  return true;
}

// At most a day, because libcurl cannot count longer times on all systems. No call waits for a day.
long Milliseconds(absl::Duration time) {
  return static_cast<long>(
      absl::ToInt64Milliseconds(std::clamp(time, absl::Milliseconds(1), absl::Hours(24))));
}

// Whether a part of the path is "." or "..", which libcurl would resolve.
bool HasDots(absl::string_view target) {
  const std::string path = absl::StrCat(target.substr(0, target.find('?')), "/");
  return absl::StrContains(path, "/./") || absl::StrContains(path, "/../");
}

}  // namespace

Transfer::Transfer(const HttpRequest& request, const HttpNames& names, const HttpUrl& url)
    : names_(names),
      server_(names.Server(url)),
      origin_(url.Origin()),
      method_(request.method),
      body_(request.body),
      is_ranged_(request.range.has_value()),
      refusal_bytes_(request.refusal_bytes),
      max_body_bytes_(request.into.empty() ? request.max_body_bytes : request.into.size()),
      into_(request.into) {}

Transfer::~Transfer() {
  curl_easy_cleanup(handle_);
  curl_slist_free_all(lines_);
}

absl::StatusOr<std::shared_ptr<Transfer>> Transfer::Create(
    const HttpClientOptions& options, const HttpRequest& request, const HttpNames& names,
    const HttpUrl& url, const HttpHeaders& headers, const AwsSigning* sign) {
  const std::shared_ptr<Transfer> transfer = absl::WrapUnique(new Transfer(request, names, url));
  bool good = true;
  if (request.range.has_value()) {
    good = Append(transfer->lines_,
                  absl::StrCat("range: bytes=", request.range->begin, "-", request.range->end - 1));
  }
  if (sign != nullptr) {
    for (const auto& [name, value] : AwsHeaders(*sign)) {
      good = good && Append(transfer->lines_, absl::StrCat(name, ": ", value));
    }
  }
  if (!good || !transfer->SetUp(options, request, url, headers) ||
      (sign != nullptr && !transfer->SetSigning(*sign))) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a request for ", transfer->names_.object()));
  }
  return transfer;
}

bool Transfer::SetMethod() {
  switch (method_) {
    case HttpMethod::kGet:
      return true;
    case HttpMethod::kHead:
      return Set(handle_, CURLOPT_NOBODY, 1L);
    case HttpMethod::kPost:
    case HttpMethod::kPut:
      return Set(handle_, CURLOPT_POSTFIELDSIZE_LARGE,
                 static_cast<curl_off_t>(body_.bytes().size())) &&
             // A null pointer would make libcurl read the body from a callback.
             Set(handle_, CURLOPT_POSTFIELDS, body_.empty() ? "" : body_.bytes().data()) &&
             Set(handle_, CURLOPT_CUSTOMREQUEST, method_ == HttpMethod::kPut ? "PUT" : "POST");
    case HttpMethod::kDelete:
      return Set(handle_, CURLOPT_CUSTOMREQUEST, "DELETE");
  }
  return false;
}

// libcurl signs the request when it begins to send. A signature that is made now could be too old
// then, because the transfer may wait long for a connection.
bool Transfer::SetSigning(const AwsSigning& sign) {
  return Set(handle_, CURLOPT_AWS_SIGV4, AwsProvider(sign).c_str()) &&
         // CURLOPT_USERPWD would cut the key at its first ':'.
         Set(handle_, CURLOPT_USERNAME, sign.access_key_id.c_str()) &&
         Set(handle_, CURLOPT_PASSWORD, sign.secret_access_key.c_str());
}

bool Transfer::SetUp(const HttpClientOptions& options, const HttpRequest& request,
                     const HttpUrl& url, const HttpHeaders& headers) {
  for (const auto& [name, value] : headers) {
    if (!Append(lines_, absl::StrCat(name, ": ", value))) return false;
  }
  ca_file_ = options.ca_file;
  ca_variable_ = options.ca_variable;
  handle_ = curl_easy_init();
  if (handle_ == nullptr) return false;
  std::string proxy;
  if (request.uses_proxies) {
    proxy = url.scheme == "https" ? options.https_proxy : options.http_proxy;
  }
  const long stall_s = std::max(
      int64_t{1}, absl::ToInt64Seconds(std::max(options.stall_timeout, request.stall_timeout)));
  return Set(handle_, CURLOPT_URL, url.Text().c_str()) &&
         Set(handle_, CURLOPT_PROTOCOLS_STR, "http,https") &&
         Set(handle_, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1}) &&
         // Newer versions of libcurl sign no request with this option. So it is set only if needed.
         Set(handle_, CURLOPT_PATH_AS_IS, long{request.keeps_dots && HasDots(url.target)}) &&
         SetMethod() && Set(handle_, CURLOPT_HTTPHEADER, lines_) &&
         Set(handle_, CURLOPT_USERAGENT, "systole") && Set(handle_, CURLOPT_FOLLOWLOCATION, 0L) &&
         Set(handle_, CURLOPT_NOSIGNAL, 1L) &&
         // A thread of libcurl looks up the server's address. With this option, the end of a
         // transfer does not wait for that thread.
         Set(handle_, CURLOPT_QUICK_EXIT, 1L) &&
         Set(handle_, CURLOPT_BUFFERSIZE, long{kReceiveBufferBytes}) &&
         Set(handle_, CURLOPT_CONNECTTIMEOUT_MS,
             Milliseconds(std::min(options.connect_timeout, request.connect_timeout))) &&
         Set(handle_, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond) &&
         Set(handle_, CURLOPT_LOW_SPEED_TIME, stall_s) && Set(handle_, CURLOPT_TCP_KEEPALIVE, 1L) &&
         // The proxies are set even if they are empty: otherwise libcurl takes them from the
         // environment.
         Set(handle_, CURLOPT_PROXY, proxy.c_str()) &&
         Set(handle_, CURLOPT_NOPROXY, options.no_proxy.c_str()) &&
         Set(handle_, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) &&
         SetIfGiven(handle_, CURLOPT_CAINFO, options.ca_file) &&
         SetIfGiven(handle_, CURLOPT_CAPATH, options.ca_folder) &&
         SetIfGiven(handle_, CURLOPT_PROXY_CAINFO, options.ca_file) &&
         SetIfGiven(handle_, CURLOPT_PROXY_CAPATH, options.ca_folder) &&
         Set(handle_, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader) &&
         Set(handle_, CURLOPT_HEADERDATA, static_cast<void*>(this)) &&
         Set(handle_, CURLOPT_WRITEFUNCTION, &Transfer::OnBody) &&
         Set(handle_, CURLOPT_WRITEDATA, static_cast<void*>(this));
}

bool Transfer::Fail(absl::Status status) {
  status_.Update(std::move(status));
  return false;
}

absl::Status Transfer::TooLarge() const {
  return absl::ResourceExhaustedError(absl::StrCat(
      names_.object(), ": the server sends a body of more than ", max_body_bytes_,
      " bytes, the limit here; check that the address leads to the object that you mean"));
}

size_t Transfer::OnHeader(char* data, size_t size, size_t count, void* transfer) {
  Transfer& self = *static_cast<Transfer*>(transfer);
  MutexLock lock(self.mu_);
  return self.TakeHeader(absl::string_view(data, size * count)) ? size * count : 0;
}

size_t Transfer::OnBody(char* data, size_t size, size_t count, void* transfer) {
  Transfer& self = *static_cast<Transfer*>(transfer);
  MutexLock lock(self.mu_);
  return self.TakeBody(absl::string_view(data, size * count)) ? size * count : 0;
}

bool Transfer::TakeHeader(absl::string_view line) {
  if (abandoned_) return false;
  header_bytes_ += line.size();
  if (header_bytes_ > kMaxHeaderBytes) {
    return Fail(absl::ResourceExhaustedError(
        absl::StrCat(names_.object(), ": the server sends more than ", kMaxHeaderBytes,
                     " bytes of headers; check that the address leads to a file server")));
  }
  if (absl::StripAsciiWhitespace(line).empty()) {
    return std::exchange(headers_ended_, true) || TakeEndOfHeaders();
  }
  if (absl::StartsWith(line, "HTTP/") && answer_.status < 200) {
    // An answer with a status below 200 comes before the final answer.
    answer_.status = StatusOfLine(line);
    answer_.headers.clear();
    headers_ended_ = false;
    return true;
  }
  if (headers_ended_) return true;  // A trailer, which follows the body. Trailers are not used.
  std::optional<std::pair<std::string, std::string>> header = ParseHeaderLine(line);
  if (header.has_value()) answer_.headers.push_back(*std::move(header));
  return true;
}

bool Transfer::TakeEndOfHeaders() {
  if (!IsSuccess(answer_.status) || method_ == HttpMethod::kHead) return true;
  const std::optional<uint64_t> bytes =
      ParseContentLength(FindHeader(answer_.headers, "content-length"));
  if (bytes.value_or(0) > max_body_bytes_) {
    return Fail(is_ranged_ && answer_.status == 200 ? RangesIgnored(names_.object()) : TooLarge());
  }
  // Without this, the body would grow by doubling, and could take twice as much memory as the
  // limit.
  if (into_.empty() && bytes.has_value()) answer_.body.reserve(*bytes);
  return true;
}

bool Transfer::TakeBody(absl::string_view bytes) {
  if (abandoned_) return false;
  if (!IsSuccess(answer_.status)) {
    answer_.body.append(bytes.data(), std::min(bytes.size(), refusal_bytes_ - answer_.body.size()));
    answer_.body_bytes = answer_.body.size();
    refused_bytes_ += bytes.size();
    enough_ = refused_bytes_ > kReadRefusalBytes;
    return !enough_;
  }
  if (bytes.size() > max_body_bytes_ - answer_.body_bytes) {
    return Fail(is_ranged_ && answer_.status == 200 ? RangesIgnored(names_.object()) : TooLarge());
  }
  if (!into_.empty()) {
    std::memcpy(into_.data() + answer_.body_bytes, bytes.data(), bytes.size());
  } else {
    const size_t wanted = answer_.body.size() + bytes.size();
    if (wanted > answer_.body.capacity()) {
      answer_.body.reserve(std::min<uint64_t>(max_body_bytes_, 2 * wanted));
    }
    answer_.body.append(bytes.data(), bytes.size());
  }
  if (progress_ != nullptr) progress_->Add(bytes.size());
  answer_.body_bytes += bytes.size();
  return true;
}

absl::Status Transfer::ErrorOf(CURLcode code) const {
  TransferFacts facts = {.code = code,
                         .object = names_.object(),
                         .server = server_,
                         .ca_variable = ca_variable_,
                         .body_bytes = answer_.body_bytes};
  if (!ca_file_.empty()) {
    facts.ca_file = names_.Detail(absl::StrCat(" \"", ForeignText(ca_file_), "\""), "");
  }
  curl_easy_getinfo(handle_, CURLINFO_OS_ERRNO, &facts.system_error);
  curl_easy_getinfo(handle_, CURLINFO_SSL_VERIFYRESULT, &facts.tls_verdict);
  curl_easy_getinfo(handle_, CURLINFO_HTTP_CONNECTCODE, &facts.proxy_status);
  // For a reused connection libcurl reports a connect time of 0. But if this transfer has sent its
  // request, it was connected.
  curl_off_t connect_us = 0;
  long request_bytes = 0;
  curl_easy_getinfo(handle_, CURLINFO_CONNECT_TIME_T, &connect_us);
  curl_easy_getinfo(handle_, CURLINFO_REQUEST_SIZE, &request_bytes);
  facts.was_connected = connect_us > 0 || request_bytes > 0;
  return TransferError(facts);
}

void Transfer::EndWith(CURLcode code) {
  MutexLock lock(mu_);
  // If a callback refuses bytes, libcurl reports an error of its own. The callback's error, if it
  // had one, is in status_ already. It says more than libcurl's, so status_ stays.
  if (status_.ok() && !enough_ && code != CURLE_OK) status_ = ErrorOf(code);
  if (status_.ok() && answer_.status < 200) status_ = NotHttp(names_.object());
  over_ = true;
  over_changed_.SignalAll();
}

void Transfer::EndWith(absl::Status status) {
  MutexLock lock(mu_);
  if (over_) return;
  status_ = std::move(status);
  over_ = true;
  over_changed_.SignalAll();
}

bool Transfer::is_abandoned() const {
  MutexLock lock(mu_);
  return abandoned_;
}

bool Transfer::is_interrupted() const {
  MutexLock lock(mu_);
  return !over_ && !abandoned_ && flag_ != nullptr && flag_->is_raised();
}

bool Transfer::WaitUntil(absl::Duration deadline, const MonotonicClock& now) {
  MutexLock lock(mu_);
  for (absl::Duration left = deadline - now(); !over_ && left > absl::ZeroDuration();
       left = deadline - now()) {
    over_changed_.WaitFor(mu_, left);
  }
  return over_;
}

void Transfer::Abandon() {
  MutexLock lock(mu_);
  abandoned_ = true;
}

absl::StatusOr<HttpResponse> Transfer::TakeAnswer() {
  MutexLock lock(mu_);
  // The status is moved, because a copy would share memory with this transfer. Another thread may
  // destroy the transfer while the caller uses the status.
  if (!status_.ok()) return std::exchange(status_, absl::OkStatus());
  return std::move(answer_);
}

}  // namespace systole
