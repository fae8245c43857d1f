// How requests to one kind of server differ from plain HTTP: the addresses of objects, the
// authorization of requests, and the meaning of refusals.
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

  // Prepares a request for one attempt. Replaces the object's name in `request.url` by the object's
  // address, and adds authorization. Called for each attempt, because credentials expire. Takes
  // request.timeout at most. An error becomes the outcome of the attempt: after Unavailable,
  // another attempt is made. The error's message is for operators.
  virtual absl::Status Prepare(HttpRequest& request) = 0;

  // Learns from an answer that is not 2xx, for example that credentials must be renewed or that the
  // object is elsewhere. Returns whether another attempt may succeed, if Prepare() uses what was
  // learned. `name` is the url that Prepare() got, and `sent` is the request that Prepare() made of
  // it. Takes sent.timeout at most. The caller makes at most kMostCorrections such attempts in a
  // row.
  virtual bool LearnsFrom(const std::string& name, const HttpRequest& sent,
                          const HttpResponse& response) = 0;

  // RefusalOf() (web_answer.h) in words for this kind of server.
  virtual absl::Status RefusalOf(absl::string_view called, const HttpResponse& response) const = 0;

  // Whether objects have generations, which identify their states (WebObject::generation).
  virtual bool has_generations() const = 0;

 protected:
  WebDialect() = default;
};

// The most attempts that LearnsFrom() causes in a row. A request may need both another address and
// new credentials.
inline constexpr int kMostCorrections = 2;

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_DIALECT_H_
