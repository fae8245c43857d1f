// Reads the facts about an object from the answers of a web server, and checks each value before it
// is used.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_WEB_WEB_ANSWER_H_
#define SYSTOLE_CORE_STORAGE_WEB_WEB_ANSWER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/http/http_message.h"

namespace systole {

// The most bytes of an object, 8 TiB. The bound is needed because a server could claim any size.
// The largest objects of buckets have 5 TiB (S3, GCS).
inline constexpr uint64_t kMaxWebObjectBytes = uint64_t{1} << 43;

struct WebObject {
  uint64_t size_bytes = 0;
  std::string etag;           // Strong, with its quotes. Empty: there is none.
  std::string last_modified;  // As the server writes it. Empty: there is none, or it is invalid.
  // Digits that name the object's state, if the server's dialect has_generations(). Otherwise
  // empty.
  std::string generation = {};

  // See StoredState::identity.
  std::string Identity() const;
};

// The object that a list shows with this size, ETag and generation. `etag` and `generation` are as
// the list writes them. A malformed value becomes empty.
WebObject ObjectOfList(uint64_t size_bytes, absl::string_view etag, absl::string_view generation);

// The object of this size whose Identity() is `identity`. Nullopt if the identity has neither an
// ETag nor a generation: reads cannot be tied to such a state.
std::optional<WebObject> ObjectOfIdentity(uint64_t size_bytes, absl::string_view identity);

// The object that an answer to HEAD describes. Nullopt: the answer does not describe it, but the
// answer to a GET may. The length 0 does not count, because some servers answer every HEAD with 0.
// In this and the following functions, `called` is the object's name in the form that messages
// show.
absl::StatusOr<std::optional<WebObject>> ObjectOfHead(absl::string_view called,
                                                      const HttpResponse& response);

// The error for an answer that gives no object: NotFound, PermissionDenied, Unavailable or
// FailedPrecondition. The message has the answer's status, and says what to do.
absl::Status RefusalOf(absl::string_view called, const HttpResponse& response);

// A function like RefusalOf().
using WebRefusal =
    absl::FunctionRef<absl::Status(absl::string_view called, const HttpResponse& response)>;

// The length of the object, as an answer to HEAD gives it. Nullopt: the answer has no length.
std::optional<uint64_t> LengthOfHead(const HttpResponse& head);

// The object that the answer to a GET of its first byte describes. `head` is the answer to a HEAD
// for the same object, or empty if no HEAD was sent. The answer 416 means that there is no first
// byte. Then the object is empty if the Content-Range of the answer has the length 0. If the answer
// has no Content-Range, the object is empty if `head` has the length 0.
absl::StatusOr<WebObject> ObjectOfFirstByte(absl::string_view called, const HttpResponse& head,
                                            const HttpResponse& response,
                                            WebRefusal refusal = RefusalOf);

// The generation that an answer names (header x-goog-generation), empty if there is none.
std::string GenerationOf(const HttpResponse& response);

// OK if the body of an answer to a GET is exactly the bytes `asked` of `object`. `object` is the
// state that was opened.
//   FailedPrecondition  the object has changed.
//   DataLoss            the answer has another range than `asked`, such as the whole object.
//   Unavailable         the body ended early. A retry may help.
//   Errors of `refusal` for other answers than 200, 206, 404, 410, 412 and 416.
// REQUIRES: asked.end <= object.size_bytes.
absl::Status CheckPiece(absl::string_view called, const WebObject& object, const HttpRange& asked,
                        const HttpResponse& response, WebRefusal refusal = RefusalOf);

// Whether an answer to a GET proves that its bytes are those of `object`. The answer must have the
// same generation or, without generations, the same strong ETag. If the object has neither a
// generation nor an ETag, the answer must have the same Last-Modified and the same size of the
// whole object. An `If-Match` in the request proves nothing, because servers may ignore it.
bool ProvesSameObject(const WebObject& object, const HttpResponse& response);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_ANSWER_H_
