// Reads any bytes as an address, and as the Location of a redirect. The text of an accepted address
// is plain ASCII, and is read as the same address. ShownUrl(), which makes the text for logs and
// errors, leaves out the query and the password.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "core/http/http_url.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(http_url, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string shown = ShownUrl(text);
  SYSTOLE_CHECK(shown.find_first_of("?#\n\r") == std::string::npos);
  const absl::StatusOr<HttpUrl> base = ParseHttpUrl("https://user.example:81/a/b?c");
  for (const absl::StatusOr<HttpUrl>& url : {ParseHttpUrl(text), ResolveHttpUrl(*base, text)}) {
    if (!url.ok()) continue;
    const std::string same = url->Text();
    for (const char c : same) SYSTOLE_CHECK(c > ' ' && c <= '~' && c != '#');
    SYSTOLE_CHECK(absl::StartsWith(url->target, "/"));
    SYSTOLE_CHECK(url->port > 0 && url->port <= 65535);
    const absl::StatusOr<HttpUrl> again = ParseHttpUrl(same);
    if (same.size() > kMaxUrlBytes) continue;  // Text() may add a port and a '/'.
    SYSTOLE_CHECK(again.ok() && again->Text() == same && again->Origin() == url->Origin());
    SYSTOLE_CHECK(!absl::StrContains(ShownUrl(same), "@") || absl::StrContains(url->target, "@"));
  }
  return 0;
}
