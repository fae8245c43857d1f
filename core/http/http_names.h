// What messages call the object of a request, the servers that are asked for it, and the rest.
//
// Thread-compatible: a value.
#ifndef SYSTOLE_CORE_HTTP_HTTP_NAMES_H_
#define SYSTOLE_CORE_HTTP_HTTP_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "core/http/http_message.h"
#include "core/http/http_url.h"

namespace systole {

// Every address and every path in a message of this room comes from here. So no message about a
// request that has a name of its own (HttpRequest::called) holds one.
class HttpNames {
 public:
  explicit HttpNames(const HttpRequest& request);

  // The object: its own name, or the address that was asked for first.
  const std::string& object() const { return object_; }
  // The server of an address: "https://host:port", or "its server".
  std::string Server(const HttpUrl& url) const;
  // `detail`, which may hold an address or a path of this machine; `otherwise` if it must not be
  // shown.
  std::string Detail(absl::string_view detail, absl::string_view otherwise) const;

 private:
  bool has_own_name_;
  std::string object_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_NAMES_H_
