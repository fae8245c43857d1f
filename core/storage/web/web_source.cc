#include "core/storage/web/web_source.h"

#include <algorithm>
#include <optional>

#include "absl/memory/memory.h"
#include "absl/strings/str_replace.h"
#include "core/http/http_url.h"
#include "core/status/status_macros.h"
#include "core/storage/store.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The most bytes of one request. A retry asks again for no more than this, and a long read does not
// hold its connection while others wait.
constexpr size_t kPieceBytes = size_t{8} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<WebConnection>> WebConnection::Create(
    const WebStoreOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> client, HttpClient::Create(options.client));
  return absl::WrapUnique(new WebConnection(options, std::move(client)));
}

HttpRequest WebConnection::RequestFor(const std::string& name) const {
  // Compressed on the way, an object would have other lengths and offsets.
  return {.url = name, .headers = {{"accept-encoding", "identity"}}, .timeout = options_.timeout};
}

absl::StatusOr<HttpResponse> WebConnection::Fetch(const HttpRequest& request) {
  return retrier_.Fetch(request,
                        [this](const HttpRequest& attempt) { return client_->Fetch(attempt); });
}

absl::StatusOr<WebObject> WebConnection::Look(const std::string& name) {
  HttpRequest request = RequestFor(name);
  request.method = HttpMethod::kHead;
  SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse head, Fetch(request));
  SYSTOLE_ASSIGN_OR_RETURN(std::optional<WebObject> object, ObjectOfHead(name, head));
  if (object.has_value()) return *std::move(object);
  request.method = HttpMethod::kGet;
  request.range = {.begin = 0, .end = 1};
  request.max_body_bytes = 1;
  SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse first_byte, Fetch(request));
  return ObjectOfFirstByte(name, first_byte);
}

absl::Status WebConnection::Read(const std::string& name, const WebObject& object, uint64_t offset,
                                 absl::Span<char> out) {
  while (!out.empty()) {
    const absl::Span<char> piece = out.subspan(0, kPieceBytes);
    const HttpRange range = {.begin = offset, .end = offset + piece.size()};
    HttpRequest request = RequestFor(name);
    if (!object.etag.empty()) request.headers.emplace_back("if-match", object.etag);
    request.range = range;
    request.into = piece;
    const absl::StatusOr<HttpResponse> response =
        retrier_.Fetch(request, [&](const HttpRequest& attempt) -> absl::StatusOr<HttpResponse> {
          SYSTOLE_ASSIGN_OR_RETURN(HttpResponse answer, client_->Fetch(attempt));
          if (MayBeTriedAgain(answer)) return answer;
          // A body that ended early is tried again, too.
          SYSTOLE_RETURN_IF_ERROR(CheckPiece(name, object, range, answer));
          return answer;
        });
    if (!response.ok()) return response.status();
    if (MayBeTriedAgain(response)) return RefusalOf(name, *response);
    offset += piece.size();
    out.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> WebSource::ReadAt(uint64_t offset, absl::Span<char> out) const {
  if (offset >= object_.size_bytes) return size_t{0};
  out = out.subspan(0, std::min<uint64_t>(out.size(), object_.size_bytes - offset));
  if (out.empty()) return size_t{0};
  const absl::Duration asked = now_();
  SYSTOLE_RETURN_IF_ERROR(Shown(connection_.Read(name_, object_, offset, out)));
  if (!object_.etag.empty()) Confirm(asked);
  return out.size();
}

absl::Status WebSource::Shown(const absl::Status& status) const {
  const absl::StatusOr<HttpUrl> url = ParseHttpUrl(name_);
  if (status.ok() || !url.ok()) return status;
  const std::string base = ForeignName(BaseName(name_));
  return absl::Status(status.code(),
                      absl::StrReplaceAll(status.message(), {{ShownUrl(name_), base},
                                                             {ShownUrl(url->Text()), base},
                                                             {url->Origin(), "its server"}}));
}

void WebSource::Confirm(absl::Duration time) const {
  confirmed_ns_.store(absl::ToInt64Nanoseconds(time), std::memory_order_relaxed);
}

absl::Status WebSource::CheckUnchanged() const {
  const absl::Duration asked = now_();
  const absl::Duration confirmed = absl::Nanoseconds(confirmed_ns_.load(std::memory_order_relaxed));
  if (asked - confirmed < connection_.options().trust) return absl::OkStatus();
  const absl::StatusOr<WebObject> found = connection_.Look(name_);
  if (absl::IsNotFound(found.status())) return ChangedSinceOpened(name_, "was removed");
  if (!found.ok()) return Shown(found.status());
  if (found->size_bytes != object_.size_bytes || found->Identity() != object_.Identity()) {
    return ChangedSinceOpened(name_, "was replaced");
  }
  Confirm(asked);
  return absl::OkStatus();
}

}  // namespace systole
