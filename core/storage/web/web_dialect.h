// How requests to one kind of server differ from plain HTTP: where its objects are, which
// authorization a request needs, and what a refusal means.
#ifndef SYSTOLE_CORE_STORAGE_WEB_WEB_DIALECT_H_
#define SYSTOLE_CORE_STORAGE_WEB_WEB_DIALECT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/http/http_message.h"

namespace systole {

// Thread-safe: every implementation must allow concurrent calls of all its methods.
class WebDialect {
 public:
  virtual ~WebDialect() = default;
  WebDialect(const WebDialect&) = delete;
  WebDialect& operator=(const WebDialect&) = delete;

  // Prepares a request for one attempt. Replaces the object's name in `request.url` by its address,
  // and adds authorization. Called for each attempt, because credentials expire. Waits for
  // request.timeout at most. An error becomes the outcome of the attempt, so another attempt is
  // made after Unavailable. The error's message is for operators.
  virtual absl::Status Prepare(HttpRequest& request) = 0;

  // Learns from an answer that is not 2xx, for example that credentials must be renewed or that the
  // object is elsewhere. Returns whether another attempt, prepared with what was learned, may
  // succeed. `name` is the url that Prepare() got, and `sent` is the request that it made. Waits
  // for sent.timeout at most. At most kMostCorrections attempts in a row are made for this reason.
  virtual bool LearnsFrom(const std::string& name, const HttpRequest& sent,
                          const HttpResponse& response) = 0;

  // RefusalOf() (web_answer.h) in words for this kind of server.
  virtual absl::Status RefusalOf(absl::string_view called, const HttpResponse& response) const = 0;

  // Whether an object's state is named by its generation (WebObject::generation).
  virtual bool has_generations() const = 0;

 protected:
  WebDialect() = default;
};

// Enough for a request that needs both another address and new credentials.
inline constexpr int kMostCorrections = 2;

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_DIALECT_H_
