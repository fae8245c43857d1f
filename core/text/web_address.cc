#include "core/text/web_address.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace systole {
namespace {

// Some programs treat a backslash like a slash.
constexpr absl::string_view kSlashes = "/\\";

// The beginnings of names in buckets. The last two are Hadoop's. Systole does not read names that
// begin with these two, but people may copy such a name from Hadoop, with an access key and its
// secret in it.
constexpr absl::string_view kBucketSchemes[] = {"s3", "gs", "s3a", "s3n"};

// `text` without blanks and quotes at its front, which people may copy along with an address.
absl::string_view WithoutFront(absl::string_view text) {
  // This function runs for the name of each shard. find_first_not_of() would be slow: it would make
  // a table of all characters in each call.
  while (!text.empty() &&
         (absl::ascii_isspace(text.front()) || text.front() == '"' || text.front() == '\'')) {
    text.remove_prefix(1);
  }
  return text;
}

// The part of the address before the host: "https://". Empty if there is none.
absl::string_view SchemePart(absl::string_view address) {
  const absl::string_view scheme = address.substr(0, address.find(':'));
  const bool may_be = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '+' || c == '.' || c == '-';
  });
  if (!may_be || scheme.empty() || scheme.size() == address.size()) return "";
  const size_t end =
      std::min(address.size(), address.find_first_not_of(kSlashes, scheme.size() + 1));
  // "host:80" and "user:/password@host" have no scheme. "https:host" has a scheme, but its slashes
  // are missing.
  const bool has_slashes = end > scheme.size() + 2;
  return has_slashes || IsWebAddress(address) ? address.substr(0, end) : "";
}

bool IsPort(absl::string_view text) {
  int port = 0;
  return text.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(text, &port) && port > 0 && port < 65536;
}

bool IsIpv6(absl::string_view text) {
  return absl::StrContains(text, ':') &&
         text.find_first_not_of("0123456789abcdefABCDEF:.") == absl::string_view::npos;
}

bool IsHostName(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_';
  });
}

// Whether `scheme` and `rest` form a valid address. ParseHttpUrl() of core/http accepts only such
// addresses. A valid address has no user name and no password, so its host and its query cannot be
// parts of a password.
bool IsSound(absl::string_view scheme, absl::string_view rest) {
  if (!absl::EqualsIgnoreCase(scheme, "https://") && !absl::EqualsIgnoreCase(scheme, "http://")) {
    return false;
  }
  if (!std::all_of(rest.begin(), rest.end(), [](char c) { return absl::ascii_isgraph(c); }) ||
      absl::StrContains(rest, '#')) {
    return false;
  }
  absl::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  if (absl::ConsumePrefix(&authority, "[")) {
    const size_t end = std::min(authority.size(), authority.find(']'));
    if (!IsIpv6(authority.substr(0, end))) return false;
    authority.remove_prefix(end);
    return authority == "]" || (absl::ConsumePrefix(&authority, "]:") && IsPort(authority));
  }
  const size_t colon = authority.find(':');
  return IsHostName(authority.substr(0, colon)) &&
         (colon == absl::string_view::npos || IsPort(authority.substr(colon + 1)));
}

// The parts of an address. `rest` may still hold a user name and a password: see ShownAddress() for
// what may be shown.
struct Cut {
  absl::string_view scheme;
  absl::string_view rest;  // The text after the scheme, up to the query.
  bool is_sound = false;
  // Whether `rest` may be a user name and the first part of a password. Then the '?' or '#' after
  // `rest` belongs to the password, too.
  bool may_be_secret = false;
};

Cut CutOf(absl::string_view address) {
  const absl::string_view clean = WithoutFront(address);
  Cut cut;
  cut.scheme = SchemePart(clean);
  const absl::string_view rest = clean.substr(cut.scheme.size());
  cut.rest = rest.substr(0, rest.find_first_of("?#"));
  cut.is_sound = clean.size() == address.size() && IsSound(cut.scheme, rest);
  cut.may_be_secret = !cut.is_sound && rest.find('@', cut.rest.size()) != absl::string_view::npos;
  return cut;
}

// The part of `text` after the last character that is one of `characters`.
absl::string_view AfterLast(absl::string_view text, absl::string_view characters) {
  return text.substr(text.find_last_of(characters) + 1);  // npos + 1 is 0.
}

}  // namespace

bool IsWebAddress(absl::string_view name) {
  name = WithoutFront(name);
  return absl::StartsWithIgnoreCase(name, "http:") || absl::StartsWithIgnoreCase(name, "https:");
}

bool IsBucketName(absl::string_view name) {
  return absl::StartsWith(name, "s3://") || absl::StartsWith(name, "gs://");
}

bool MayHoldSecrets(absl::string_view name) {
  if (IsWebAddress(name)) return true;
  name = WithoutFront(name);
  const size_t colon = std::min(name.size(), name.find(':'));
  const absl::string_view scheme = name.substr(0, colon);
  if (colon == name.size() ||
      std::none_of(std::begin(kBucketSchemes), std::end(kBucketSchemes),
                   [scheme](absl::string_view s) { return absl::EqualsIgnoreCase(s, scheme); })) {
    return false;
  }
  // An '@' may follow a secret, which may hold a '/'. But an '@' may also belong to the key of an
  // object. It belongs to the key if the text before the first '/' has the form of a bucket's name.
  const absl::string_view rest = name.substr(colon + 1);
  if (!absl::StartsWith(rest, "//")) return absl::StrContains(rest, '@');
  return !IsHostName(rest.substr(2, rest.find('/', 2) - 2));
}

std::string ShownAddress(absl::string_view address) {
  const Cut cut = CutOf(address);
  if (cut.may_be_secret) return absl::StrCat(cut.scheme, "...");
  const size_t at = cut.rest.rfind('@');
  if (at == absl::string_view::npos) return absl::StrCat(cut.scheme, cut.rest);
  return absl::StrCat(cut.scheme, "...", cut.rest.substr(at));
}

absl::string_view AddressBaseName(absl::string_view address) {
  const Cut cut = CutOf(address);
  if (cut.may_be_secret) return cut.rest.substr(cut.rest.size());
  const absl::string_view base = AfterLast(cut.rest, kSlashes);
  return cut.is_sound ? base : AfterLast(base, "@");
}

}  // namespace systole
