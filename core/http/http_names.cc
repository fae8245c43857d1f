#include "core/http/http_names.h"

#include "core/text/foreign_text.h"

namespace systole {

HttpNames::HttpNames(const HttpRequest& request)
    : has_own_name_(!request.called.empty()),
      object_(has_own_name_ ? ForeignName(request.called) : ShownUrl(request.url)) {}

std::string HttpNames::Server(const HttpUrl& url) const {
  return has_own_name_ ? "its server" : url.Origin();
}

std::string HttpNames::Detail(absl::string_view detail, absl::string_view otherwise) const {
  return std::string(has_own_name_ ? otherwise : detail);
}

}  // namespace systole
