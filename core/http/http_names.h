// The names that messages use for a request's object and servers, and the details that messages may
// show.
//
// Thread-compatible: a value.
#ifndef SYSTOLE_CORE_HTTP_HTTP_NAMES_H_
#define SYSTOLE_CORE_HTTP_HTTP_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/http/http_message.h"
#include "core/http/http_url.h"

namespace systole {

// Every address and every path in a message of core/http comes from here. So if a request has a
// name of its own (HttpRequest::called), no message about it has an address or a path.
class HttpNames {
 public:
  explicit HttpNames(const HttpRequest& request);

  // The object: the request's own name, or else the first address of the request.
  const std::string& object() const { return object_; }
  // The server of an address: "https://host:port", or "its server" if the request has a name of its
  // own.
  std::string Server(const HttpUrl& url) const;
  // Returns `detail`, or `otherwise` if `detail` must not be shown. `detail` may hold an address,
  // or a path of this machine.
  std::string Detail(absl::string_view detail, absl::string_view otherwise) const;

 private:
  bool has_own_name_;
  std::string object_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_NAMES_H_
