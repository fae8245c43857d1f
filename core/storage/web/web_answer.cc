#include "core/storage/web/web_answer.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/http/http_headers.h"
#include "core/http/http_retry.h"
#include "core/status/status_macros.h"
#include "core/storage/store.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr absl::string_view kEtagWord = "etag ";
constexpr absl::string_view kGenerationWord = "generation ";
constexpr size_t kMaxDateBytes = 64;
constexpr size_t kMaxGenerationDigits = 20;  // The digits of a number of 64 bits.

absl::string_view Header(const HttpResponse& response, absl::string_view name) {
  return FindHeader(response.headers, name);
}

std::string EtagIn(absl::string_view text) {
  return StrongEtag(text, kMaxIdentityBytes - kEtagWord.size());
}

std::string EtagOf(const HttpResponse& response) { return EtagIn(Header(response, "etag")); }

std::string GenerationIn(absl::string_view text) {
  const bool fit = text.size() <= kMaxGenerationDigits &&
                   text.find_first_not_of("0123456789") == absl::string_view::npos;
  return fit ? std::string(text) : "";
}

std::string LastModifiedOf(const HttpResponse& response) {
  const absl::string_view date = Header(response, "last-modified");
  const bool fit =
      date.size() <= kMaxDateBytes &&
      std::all_of(date.begin(), date.end(), [](char c) { return absl::ascii_isprint(c); });
  return fit ? std::string(date) : "";
}

absl::StatusOr<WebObject> ObjectOf(absl::string_view called, uint64_t size_bytes,
                                   const HttpResponse& response) {
  if (size_bytes > kMaxWebObjectBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(called, ": the server says that the object has ", size_bytes,
                     " bytes, more than any shard; want at most ", kMaxWebObjectBytes));
  }
  return WebObject{.size_bytes = size_bytes,
                   .etag = EtagOf(response),
                   .last_modified = LastModifiedOf(response)};
}

absl::Status WrongRange(absl::string_view called, const HttpRange& asked,
                        const HttpResponse& response) {
  return absl::DataLossError(absl::StrCat(
      called, ": the server was asked for the bytes ", asked.begin, "-", asked.end - 1,
      " and answers with status ", response.status, " and Content-Range \"",
      ForeignName(Header(response, "content-range")),
      "\"; a cache or proxy on the way may be broken: use the address of the server itself"));
}

bool IsGone(int status) { return status == 404 || status == 410; }

// Whether the answer may be about `object`: its headers do not contradict the facts in `object`.
bool MayBeOf(const WebObject& object, const HttpResponse& response) {
  if (!object.generation.empty()) {
    const std::string generation = GenerationOf(response);
    return generation.empty() || generation == object.generation;
  }
  if (!object.etag.empty()) {
    return Header(response, "etag").empty() || EtagOf(response) == object.etag;
  }
  const std::string last_modified = LastModifiedOf(response);
  return object.last_modified.empty() || last_modified.empty() ||
         last_modified == object.last_modified;
}

}  // namespace

std::string WebObject::Identity() const {
  if (!generation.empty()) return absl::StrCat(kGenerationWord, generation);
  if (!etag.empty()) return absl::StrCat(kEtagWord, etag);
  return last_modified.empty() ? "" : absl::StrCat(size_bytes, " modified ", last_modified);
}

WebObject ObjectOfList(uint64_t size_bytes, absl::string_view etag, absl::string_view generation) {
  return {.size_bytes = size_bytes,
          .etag = EtagIn(etag),
          .last_modified = {},
          .generation = GenerationIn(generation)};
}

std::optional<WebObject> ObjectOfIdentity(uint64_t size_bytes, absl::string_view identity) {
  WebObject object = {.size_bytes = size_bytes, .etag = {}, .last_modified = {}};
  if (absl::ConsumePrefix(&identity, kGenerationWord)) {
    object.generation = GenerationIn(identity);
  } else if (absl::ConsumePrefix(&identity, kEtagWord)) {
    object.etag = EtagIn(identity);
  }
  if (object.Identity().empty()) return std::nullopt;
  return object;
}

absl::Status RefusalOf(absl::string_view called, const HttpResponse& response) {
  const std::string what =
      absl::StrCat(called, ": the server answers with status ", response.status);
  switch (response.status) {
    case 404:
    case 410:
      return absl::NotFoundError(
          absl::StrCat(what, ": there is no such object; check its address"));
    case 401:
    case 403:
      return absl::PermissionDeniedError(absl::StrCat(
          what,
          ": this object may not be read; make it readable without a login, or use a signed "
          "address that is still valid"));
    case 407:
      return absl::FailedPreconditionError(
          absl::StrCat(what,
                       ": the proxy wants a user name and a password; write them into "
                       "http_proxy, as http://USER:PASSWORD@HOST:PORT"));
    default:
      break;
  }
  if (MayBeTriedAgain(response)) {
    return absl::UnavailableError(absl::StrCat(
        what, "; the server is overloaded or fails: try again later, or use another server"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what, ", want 200 or 206; check that the address leads to a file server"));
}

absl::StatusOr<std::optional<WebObject>> ObjectOfHead(absl::string_view called,
                                                      const HttpResponse& response) {
  switch (response.status) {
    case 200: {
      const std::optional<uint64_t> bytes = ParseContentLength(Header(response, "content-length"));
      // If an answer has no length, the server makes the object's bytes while it sends them. A
      // length of 0 may mean that the server answers HEAD without a look at the object.
      if (bytes.value_or(0) == 0) return std::nullopt;
      return ObjectOf(called, *bytes, response);
    }
    // Perhaps only HEAD is refused, for example because an address was signed only for GET. The
    // answer to a GET will tell.
    case 403:
    case 405:
    case 501:
      return std::nullopt;
    default:
      return RefusalOf(called, response);
  }
}

std::optional<uint64_t> LengthOfHead(const HttpResponse& head) {
  if (head.status != 200) return std::nullopt;
  return ParseContentLength(Header(head, "content-length"));
}

absl::StatusOr<WebObject> ObjectOfFirstByte(absl::string_view called, const HttpResponse& head,
                                            const HttpResponse& response, WebRefusal refusal) {
  if (response.status == 200) return ObjectOf(called, response.body_bytes, response);
  if (response.status != 206 && response.status != 416) return refusal(called, response);
  const std::optional<ContentRange> range = ParseContentRange(Header(response, "content-range"));
  const bool has_no_length = Header(response, "content-range").empty();
  if (response.status == 416 && has_no_length && LengthOfHead(head) == 0) {
    return ObjectOf(called, 0, head);
  }
  const bool empty = response.status == 416 && range.has_value() && range->total == 0;
  const bool first_byte = response.status == 206 && range.has_value() && range->begin == 0 &&
                          range->end == 1 && response.body_bytes == 1;
  if (!empty && !first_byte) return WrongRange(called, {.begin = 0, .end = 1}, response);
  if (!range->total.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(called,
                     ": the server does not say how many bytes the object has; store the object as "
                     "a file, not as the output of a program"));
  }
  return ObjectOf(called, *range->total, response);
}

std::string GenerationOf(const HttpResponse& response) {
  return GenerationIn(Header(response, "x-goog-generation"));
}

bool ProvesSameObject(const WebObject& object, const HttpResponse& response) {
  if (!object.generation.empty()) return GenerationOf(response) == object.generation;
  if (!object.etag.empty()) return EtagOf(response) == object.etag;
  if (LastModifiedOf(response) != object.last_modified) return false;
  if (response.status == 200) return response.body_bytes == object.size_bytes;
  const std::optional<ContentRange> range = ParseContentRange(Header(response, "content-range"));
  return range.has_value() && range->total == object.size_bytes;
}

absl::Status CheckPiece(absl::string_view called, const WebObject& object, const HttpRange& asked,
                        const HttpResponse& response, WebRefusal refusal) {
  const absl::Status replaced = ChangedSinceOpened(called, "was replaced");
  if (IsGone(response.status)) return ChangedSinceOpened(called, "was removed");
  if (response.status == 412) return replaced;  // The precondition (If-Match) failed.
  if (response.status != 200 && response.status != 206 && response.status != 416) {
    return refusal(called, response);
  }
  if (!MayBeOf(object, response)) return replaced;
  const uint64_t wanted = asked.end - asked.begin;
  if (response.status == 200) {
    if (wanted != object.size_bytes) return WrongRange(called, asked, response);
    const std::optional<uint64_t> bytes = ParseContentLength(Header(response, "content-length"));
    if (bytes.value_or(wanted) != wanted) return replaced;
  } else {
    const std::optional<ContentRange> range = ParseContentRange(Header(response, "content-range"));
    if (range.has_value() && range->total.value_or(object.size_bytes) != object.size_bytes) {
      return replaced;
    }
    const bool same_object =
        range.has_value() &&
        (range->total.has_value() || !object.etag.empty() || !object.generation.empty());
    if (response.status == 416 || !same_object || range->begin != asked.begin ||
        range->end != asked.end) {
      return WrongRange(called, asked, response);
    }
  }
  if (response.body_bytes == wanted) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(called, ": the answer ended early, after ",
                                             response.body_bytes, " of ", wanted,
                                             " bytes at offset ", asked.begin, "; try again"));
}

}  // namespace systole
