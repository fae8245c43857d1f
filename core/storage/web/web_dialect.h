// How requests to one kind of server differ from plain HTTP: where its objects are, what lets a
// request in, and what a refusal means.
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

  // Makes an attempt fit to be sent. `request.url` is the name of an object, and becomes its
  // address. Called for each attempt, because credentials end. Waits for request.timeout at most.
  // An error is the attempt's outcome, so Unavailable is tried again. Its message is for operators.
  virtual absl::Status Prepare(HttpRequest& request) = 0;

  // Whether another attempt, prepared anew, may be answered better, because this one learned from
  // the answer: credentials were renewed, or the object is elsewhere. `name` is what Prepare() got,
  // and `sent` what it made of that. Called for answers that are no 2xx. Waits for sent.timeout at
  // most. At most kMostCorrections attempts follow each other in this way.
  virtual bool LearnsFrom(const std::string& name, const HttpRequest& sent,
                          const HttpResponse& response) = 0;

  // RefusalOf() (web_answer.h) in words for this kind of server.
  virtual absl::Status RefusalOf(absl::string_view called, const HttpResponse& response) const = 0;

  // Whether an object's state is named by its generation (WebObject::generation).
  virtual bool has_generations() const = 0;

 protected:
  WebDialect() = default;
};

// Enough for another place and new credentials in one request.
inline constexpr int kMostCorrections = 2;

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_DIALECT_H_
