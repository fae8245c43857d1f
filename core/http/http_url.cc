#include "core/http/http_url.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"
#include "core/text/web_address.h"

namespace systole {
namespace {

constexpr size_t kMaxHostBytes = 255;  // The most bytes of a name in DNS.

int OwnPortOf(absl::string_view scheme) { return scheme == "https" ? 443 : 80; }

absl::Status Malformed(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", ShownUrl(text), "\" ", why));
}

// The scheme before "://", in lower case; empty if there is none.
std::string SchemeOfUrl(absl::string_view text) {
  const size_t end = text.find_first_of(":/?#");
  if (end == absl::string_view::npos || text.substr(end, 3) != "://") return "";
  return absl::AsciiStrToLower(text.substr(0, end));
}

bool IsHost(absl::string_view host) {
  if (host.size() > kMaxHostBytes) return false;
  if (absl::StartsWith(host, "[")) {
    const absl::string_view inner = host.substr(1, host.size() - 2);
    return host.size() > 4 && host.back() == ']' && absl::StrContains(inner, ':') &&
           inner.find_first_not_of("0123456789abcdef:.") == absl::string_view::npos;
  }
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

}  // namespace

std::string HttpUrl::Origin() const { return absl::StrCat(scheme, "://", host, ":", port); }

std::string HttpUrl::Text() const {
  if (port == OwnPortOf(scheme)) return absl::StrCat(scheme, "://", host, target);
  return absl::StrCat(Origin(), target);
}

absl::StatusOr<HttpUrl> ParseHttpUrl(absl::string_view text) {
  if (text.size() > kMaxUrlBytes) {
    return Malformed(text, absl::StrCat("is an address of ", text.size(), " bytes, want at most ",
                                        kMaxUrlBytes));
  }
  HttpUrl url;
  url.scheme = SchemeOfUrl(text);
  if (url.scheme != "http" && url.scheme != "https") {
    return Malformed(text, "is not a web address; want http://HOST/PATH or https://HOST/PATH");
  }
  const auto unfit =
      std::find_if(text.begin(), text.end(), [](char c) { return !absl::ascii_isgraph(c); });
  if (unfit != text.end()) {
    return Malformed(text, absl::StrCat("has at byte ", unfit - text.begin(),
                                        " a blank or a byte that is not printable ASCII; write it "
                                        "percent-encoded (%20 for a blank)"));
  }
  absl::string_view rest = text.substr(url.scheme.size() + 3);
  const absl::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  rest.remove_prefix(authority.size());
  if (absl::StrContains(authority, '@')) {
    return Malformed(text,
                     "was written with a user name or a password, which would appear in logs; "
                     "remove the part before '@'");
  }
  if (absl::StrContains(rest, '#')) {
    return Malformed(text, "was written with a '#'; write %23 if it belongs to the name");
  }
  url.target = absl::StrCat(absl::StartsWith(rest, "/") ? "" : "/", rest);
  const size_t after = absl::StartsWith(authority, "[") ? authority.find(']') : 0;
  const absl::string_view host = authority.substr(0, authority.find(':', after));
  url.host = absl::AsciiStrToLower(host);
  url.port = OwnPortOf(url.scheme);
  if (host.size() < authority.size()) {
    const absl::string_view port = authority.substr(host.size() + 1);
    const bool digits = port.find_first_not_of("0123456789") == absl::string_view::npos;
    if (!digits || !absl::SimpleAtoi(port, &url.port) || url.port < 1 || url.port > 65535) {
      return Malformed(text, "has an invalid port; want a number from 1 to 65535");
    }
  }
  if (!IsHost(url.host)) {
    return Malformed(text, "has an invalid host; want a name, an IPv4 address or [IPv6]");
  }
  return url;
}

absl::StatusOr<HttpUrl> ResolveHttpUrl(const HttpUrl& at, absl::string_view reference) {
  reference = reference.substr(0, reference.find('#'));
  if (!SchemeOfUrl(reference).empty()) return ParseHttpUrl(reference);
  if (absl::StartsWith(reference, "//")) {
    return ParseHttpUrl(absl::StrCat(at.scheme, ":", reference));
  }
  const absl::string_view path =
      absl::string_view(at.target).substr(0, absl::string_view(at.target).find('?'));
  absl::string_view before;  // The part of at.target that stays.
  if (reference.empty()) {
    before = at.target;
  } else if (absl::StartsWith(reference, "?")) {
    before = path;
  } else if (!absl::StartsWith(reference, "/")) {
    before = path.substr(0, path.rfind('/') + 1);
  }
  return ParseHttpUrl(absl::StrCat(at.Origin(), before, reference));
}

std::string ShownUrl(absl::string_view text) { return ForeignText(ShownAddress(text)); }

}  // namespace systole
