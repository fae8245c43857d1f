#include "core/storage/web/web_source.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_names.h"
#include "core/status/status_macros.h"
#include "core/storage/store.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The most bytes that one request asks for. A longer read sends several requests, one after the
// other. So a retry repeats at most this many bytes, and between the requests of a long read other
// requests can use the network connection.
constexpr size_t kPieceBytes = size_t{8} << 20;

// The most rounds of Ask(). In a round, a first answer may say that the object is empty, and a
// second answer that the object is not empty, or is not there. Then the object was replaced or
// removed between the two answers, and Ask() begins another round.
constexpr int kMostAsks = 3;

// The object's name for errors that clients see. Never empty, because an empty HttpRequest::called
// makes errors show the address.
std::string CalledName(const std::string& name) {
  const absl::string_view shown = NameForClients(name);
  return shown == "/" ? "the object" : ForeignName(shown);
}

bool IsSuccess(const HttpResponse& response) {
  return response.status >= 200 && response.status < 300;
}

// Sets `latest_ns` to `time`, unless `latest_ns` is later already. Several threads may read one
// object, and need not call this in the order of their times.
void RaiseTo(std::atomic<int64_t>& latest_ns, absl::Duration time) {
  const int64_t time_ns = absl::ToInt64Nanoseconds(time);
  int64_t seen_ns = latest_ns.load(std::memory_order_relaxed);
  while (seen_ns < time_ns && !latest_ns.compare_exchange_weak(seen_ns, time_ns)) {
  }
}

}  // namespace

absl::StatusCode CodeBeforeRequest(const absl::Status& error) {
  const bool keeps = absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) ||
                     absl::IsCancelled(error) || absl::IsResourceExhausted(error) ||
                     absl::IsInvalidArgument(error);
  return keeps ? error.code() : absl::StatusCode::kFailedPrecondition;
}

absl::StatusOr<std::unique_ptr<WebConnection>> WebConnection::Create(const WebStoreOptions& options,
                                                                     WebDialect* dialect) {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> client, HttpClient::Create(options.client));
  return absl::WrapUnique(new WebConnection(options, dialect, std::move(client)));
}

HttpRequest WebConnection::RequestFor(const std::string& name, const std::string& called) const {
  // "identity" forbids compression on the way. In a compressed answer, lengths and offsets would be
  // wrong.
  return {.url = name,
          .headers = {{"accept-encoding", "identity"}},
          .timeout = options_.timeout,
          .called = called};
}

std::string WebConnection::ShownIn(const HttpRequest& request) const {
  if (dialect_ == nullptr || !request.called.empty()) return HttpNames(request).object();
  return ForeignText(ShownName(request.url));
}

absl::Status WebConnection::NotPrepared(const HttpRequest& request,
                                        const absl::Status& error) const {
  const absl::StatusCode code = CodeBeforeRequest(error);
  if (request.called.empty()) return absl::Status(code, error.message());
  // Clients see the error, and must not learn where the credentials come from.
  return absl::Status(code,
                      absl::StrCat(ShownIn(request), ": no request could be sent to its server (",
                                   absl::StatusCodeToString(code),
                                   "); run `systole inspect` on the shard to see why"));
}

absl::StatusOr<HttpResponse> WebConnection::Attempt(const HttpRequest& request) {
  if (dialect_ == nullptr) return client_->Fetch(request);
  const absl::Duration deadline = options_.now() + request.timeout;
  const auto time_left = [&] { return std::max(absl::ZeroDuration(), deadline - options_.now()); };
  for (int corrections = 0;; ++corrections) {
    HttpRequest prepared = request;
    prepared.timeout = time_left();
    if (const absl::Status ready = dialect_->Prepare(prepared); !ready.ok()) {
      return NotPrepared(request, ready);
    }
    prepared.timeout = time_left();
    if (prepared.timeout == absl::ZeroDuration()) {
      return NotPrepared(request, absl::DeadlineExceededError(
                                      absl::StrCat(ShownIn(request), ": all of its time, ",
                                                   absl::FormatDuration(request.timeout),
                                                   ", was spent in waiting for credentials")));
    }
    SYSTOLE_ASSIGN_OR_RETURN(HttpResponse response, client_->Fetch(prepared));
    prepared.timeout = time_left();
    if (IsSuccess(response) || corrections >= kMostCorrections ||
        !dialect_->LearnsFrom(request.url, prepared, response)) {
      return response;
    }
  }
}

absl::Status WebConnection::Refusal(absl::string_view called, const HttpResponse& response) const {
  return dialect_ == nullptr ? RefusalOf(called, response) : dialect_->RefusalOf(called, response);
}

absl::StatusOr<HttpResponse> WebConnection::Fetch(const HttpRequest& request, AnswerCheck check) {
  return retrier_.Fetch(request, [&](const HttpRequest& attempt) -> absl::StatusOr<HttpResponse> {
    SYSTOLE_ASSIGN_OR_RETURN(HttpResponse answer, Attempt(attempt));
    if (IsSuccess(answer)) SYSTOLE_RETURN_IF_ERROR(check(answer));
    return answer;
  });
}

absl::StatusOr<WebObject> WebConnection::Ask(const std::string& name, const std::string& called,
                                             absl::Duration timeout) {
  HttpRequest ask_head = RequestFor(name, called);
  ask_head.timeout = timeout;
  ask_head.method = HttpMethod::kHead;
  HttpRequest ask_first_byte = RequestFor(name, called);
  ask_first_byte.timeout = timeout;
  ask_first_byte.range = {.begin = 0, .end = 1};
  ask_first_byte.max_body_bytes = 1;
  const std::string shown = ShownIn(ask_head);
  if (dialect_ == nullptr) {
    SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse head, Fetch(ask_head));
    SYSTOLE_ASSIGN_OR_RETURN(std::optional<WebObject> object, ObjectOfHead(shown, head));
    if (object.has_value()) return *std::move(object);
    SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse first_byte, Fetch(ask_first_byte));
    return ObjectOfFirstByte(shown, head, first_byte);
  }
  // A dialect finds the reason for a refusal in the body of the answer, and an answer to HEAD has
  // no body. So the first request is a GET of the first byte.
  for (int asked = 0; asked < kMostAsks; ++asked) {
    SYSTOLE_ASSIGN_OR_RETURN(const HttpResponse first_byte, Fetch(ask_first_byte));
    const bool has_no_byte = first_byte.status == 416;
    HttpResponse head;
    if (has_no_byte) {  // The object seems empty. Some servers confirm this in an answer to HEAD.
      SYSTOLE_ASSIGN_OR_RETURN(head, Fetch(ask_head));
    }
    const std::optional<uint64_t> length = LengthOfHead(head);
    // The second answer contradicts the first: the object was replaced or removed between them.
    if (length.value_or(0) != 0 || head.status == 404) continue;
    SYSTOLE_ASSIGN_OR_RETURN(
        WebObject object,
        ObjectOfFirstByte(shown, head, first_byte,
                          [this](absl::string_view called, const HttpResponse& response) {
                            return Refusal(called, response);
                          }));
    if (dialect_->has_generations() && (!has_no_byte || length.has_value())) {
      object.generation = GenerationOf(has_no_byte ? head : first_byte);
    }
    return object;
  }
  return absl::DataLossError(absl::StrCat(
      shown, ": ", kMostAsks,
      " times in a row the server said that this object has no first byte (status 416), and then "
      "that the object is not empty, or is not there; perhaps the object is replaced all the "
      "time, or a cache or proxy on the way is broken"));
}

absl::StatusOr<SeenObject> WebConnection::Look(const std::string& name, const std::string& called,
                                               absl::Duration timeout) {
  const absl::Duration asked = options_.now();
  absl::StatusOr<WebObject> object = Ask(name, called, timeout);
  if (!object.ok()) {
    recent_.Forget(name);
    return object.status();
  }
  SeenObject seen = {.object = *std::move(object), .asked = asked};
  recent_.Remember(name, seen);
  return seen;
}

absl::StatusOr<SeenObject> WebConnection::LookIfNotSeen(const std::string& name,
                                                        const std::string& called) {
  std::optional<SeenObject> seen = recent_.Find(name, options_.now());
  if (seen.has_value()) return *std::move(seen);
  return Look(name, called, options_.open_timeout);
}

absl::StatusOr<bool> WebConnection::Read(const std::string& name, const std::string& called,
                                         const WebObject& object, uint64_t offset,
                                         absl::Span<char> out) {
  bool proven = true;
  const auto refusal = [this](absl::string_view shown, const HttpResponse& response) {
    return Refusal(shown, response);
  };
  while (!out.empty()) {
    const absl::Span<char> piece = out.subspan(0, kPieceBytes);
    const HttpRange range = {.begin = offset, .end = offset + piece.size()};
    HttpRequest request = RequestFor(name, called);
    const std::string shown = ShownIn(request);
    if (!object.generation.empty()) {
      request.headers.emplace_back("x-goog-if-generation-match", object.generation);
    } else if (!object.etag.empty()) {
      request.headers.emplace_back("if-match", object.etag);
    }
    request.range = range;
    request.into = piece;
    const absl::StatusOr<HttpResponse> response =
        retrier_.Fetch(request, [&](const HttpRequest& attempt) -> absl::StatusOr<HttpResponse> {
          SYSTOLE_ASSIGN_OR_RETURN(HttpResponse answer, Attempt(attempt));
          if (MayBeTriedAgain(answer)) return answer;
          // A body that ended early is tried again, too.
          SYSTOLE_RETURN_IF_ERROR(CheckPiece(shown, object, range, answer, refusal));
          return answer;
        });
    if (!response.ok()) return response.status();
    if (MayBeTriedAgain(response)) return refusal(shown, *response);
    proven = proven && ProvesSameObject(object, *response);
    offset += piece.size();
    out.remove_prefix(piece.size());
  }
  return proven;
}

WebSource::WebSource(WebConnection& connection, std::string name, SeenObject seen)
    : connection_(connection),
      name_(std::move(name)),
      called_(CalledName(name_)),
      object_(std::move(seen.object)),
      confirmed_ns_(absl::ToInt64Nanoseconds(seen.asked)),
      unproven_ns_(std::numeric_limits<int64_t>::min()) {}

absl::StatusOr<size_t> WebSource::ReadAt(uint64_t offset, absl::Span<char> out) const {
  if (offset >= object_.size_bytes) return size_t{0};
  out = out.subspan(0, std::min<uint64_t>(out.size(), object_.size_bytes - offset));
  if (out.empty()) return size_t{0};
  const absl::Duration asked = connection_.options().now();
  const absl::StatusOr<bool> proven = connection_.Read(name_, called_, object_, offset, out);
  if (!proven.ok()) {
    connection_.Forget(name_);  // The object may have been replaced.
    return proven.status();
  }
  if (*proven) {
    RaiseTo(confirmed_ns_, asked);
  } else {
    RaiseTo(unproven_ns_, connection_.options().now());
  }
  return out.size();
}

absl::Status WebSource::CheckUnchanged() const {
  const absl::Duration now = connection_.options().now();
  const int64_t confirmed_ns = confirmed_ns_.load(std::memory_order_relaxed);
  if (now - absl::Nanoseconds(confirmed_ns) < connection_.options().trust &&
      confirmed_ns > unproven_ns_.load(std::memory_order_relaxed) &&
      absl::Nanoseconds(confirmed_ns) > connection_.LastWrite(name_)) {
    return absl::OkStatus();
  }
  const absl::StatusOr<SeenObject> seen =
      connection_.Look(name_, called_, connection_.options().timeout);
  if (absl::IsNotFound(seen.status())) return ChangedSinceOpened(called_, "was removed");
  if (!seen.ok()) return seen.status();
  if (seen->object.size_bytes != object_.size_bytes ||
      seen->object.Identity() != object_.Identity()) {
    return ChangedSinceOpened(called_, "was replaced");
  }
  RaiseTo(confirmed_ns_, seen->asked);
  return absl::OkStatus();
}

}  // namespace systole
