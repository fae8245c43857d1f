#include "core/http/http_url.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Parsed(absl::string_view text) {
  const absl::StatusOr<HttpUrl> url = ParseHttpUrl(text);
  return url.ok() ? url->Origin() + " " + url->target : std::string(url.status().message());
}

TEST(HttpUrlTest, AnAddressIsSchemeHostPortAndTarget) {
  EXPECT_EQ(Parsed("http://a"), "http://a:80 /");
  EXPECT_EQ(Parsed("https://a/b"), "https://a:443 /b");
  EXPECT_EQ(Parsed("HTTPS://A.Example:8443/B/c.tfrecord?x=/y:z@w"),
            "https://a.example:8443 /B/c.tfrecord?x=/y:z@w");
  EXPECT_EQ(Parsed("http://a?x"), "http://a:80 /?x");
  EXPECT_EQ(Parsed("http://[2001:DB8::1]:1/a"), "http://[2001:db8::1]:1 /a");
  EXPECT_EQ(Parsed("http://127.0.0.1:65535/"), "http://127.0.0.1:65535 /");
}

TEST(HttpUrlTest, PercentEncodingStaysAsItIsWritten) {
  EXPECT_EQ(Parsed("http://a/%2f%2F+%20~%zz"), "http://a:80 /%2f%2F+%20~%zz");
}

TEST(HttpUrlTest, TextGivesAnEquivalentAddressWithoutTheDefaultPort) {
  for (const char* text : {"http://a/", "https://a/b?c", "https://a:80/", "http://[::1]:443/x"}) {
    EXPECT_EQ(ParseHttpUrl(text)->Text(), text);
  }
  EXPECT_EQ(ParseHttpUrl("https://A:443")->Text(), "https://a/");
}

TEST(HttpUrlTest, AnInvalidAddressIsRefusedWithTheReason) {
  for (const auto& [text, reason] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "not a web address"},
           {"a", "not a web address"},
           {"ftp://a/b", "not a web address"},
           {"http:/a", "not a web address"},
           {"http://", "invalid host"},
           {"http:///a", "invalid host"},
           {"http://a b/", "at byte 8 a blank"},
           {"http://a/\n", "percent-encoded"},
           {"http://a/\xc3\xbc", "percent-encoded"},
           {"http://a/b#c", "%23"},
           {"http://a:/", "port"},
           {"http://a:0/", "port"},
           {"http://a:65536/", "port"},
           {"http://a:+1/", "port"},
           {"http://a:1:2/", "port"},
           {"http://:1/", "invalid host"},
           {"http://[]/", "invalid host"},
           {"http://[abc]/", "invalid host"},
           {"http://[::1/", "invalid host"},
           {"http://[::1]x/", "invalid host"},
           {"http://a%41/", "invalid host"},
           {"http://u:secret@a/", "remove the part before '@'"}}) {
    EXPECT_THAT(ParseHttpUrl(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                             AllOf(HasSubstr(reason), Not(HasSubstr("secret")))))
        << text;
  }
  EXPECT_THAT(ParseHttpUrl("http://a/" + std::string(kMaxUrlBytes, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("8201 bytes")));
}

TEST(HttpUrlTest, ALocationIsResolvedAgainstTheAddressThatSentIt) {
  const HttpUrl at = *ParseHttpUrl("https://a:1/b/c?d");
  for (const auto& [reference, target] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "https://a:1/b/c?d"},
           {"x", "https://a:1/b/x"},
           {"x?y", "https://a:1/b/x?y"},
           {"/x", "https://a:1/x"},
           {"?y", "https://a:1/b/c?y"},
           {"//z/x", "https://z/x"},
           {"http://z/x#part", "http://z/x"},
           {"/x?u=http://z", "https://a:1/x?u=http://z"}}) {
    const absl::StatusOr<HttpUrl> url = ResolveHttpUrl(at, reference);
    ASSERT_THAT(url, IsOk()) << reference;
    EXPECT_EQ(url->Text(), target);
  }
  EXPECT_THAT(ResolveHttpUrl(at, "file:///etc/passwd"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a web address")));
}

TEST(HttpUrlTest, ShownUrlHidesCredentialsQueryAndFragment) {
  EXPECT_EQ(ShownUrl("https://a:1/b/c?secret#secret"), "https://a:1/b/c");
  EXPECT_EQ(ShownUrl("https://user:secret@a/b"), "https://...@a/b");
  EXPECT_EQ(ShownUrl("https://secret@secret@a"), "https://...@a");
  EXPECT_EQ(ShownUrl("https://user:sec/ret@a/b"), "https://...@a/b");
  EXPECT_EQ(ShownUrl("https://user:sec?ret@a/b"), "https://...");
  EXPECT_EQ(ShownUrl("https://user:sec#ret@a/b"), "https://...");
  EXPECT_EQ(ShownUrl("user:secret@a/b"), "...@a/b");
  EXPECT_EQ(ShownUrl("user:secret@a://b"), "...@a://b");
  EXPECT_EQ(ShownUrl("https://a/b?mail=x@y"), "https://a/b");
  EXPECT_EQ(ShownUrl("https://a/b@c"), "https://...@c");
  EXPECT_EQ(ShownUrl("a\nb"), "a\\nb");
}

// Makes texts of separators and words. Each word occurs only once, so a word that is shown tells
// where it stood.
TEST(HttpUrlTest, ShownUrlHidesCredentialsAndQueryOfRandomTexts) {
  constexpr const char* kSeparators[] = {"://", "/", "/", ":", ":", "@",  "@", "@", "?",
                                         "#",   ".", "[", "]", "%", "//", " ", "\n"};
  CounterRng draws(/*seed=*/1, /*epoch=*/0, /*record=*/0, /*purpose=*/0);
  const auto draw = [&draws](size_t count) {
    return static_cast<size_t>(draws.UniformInt(0, static_cast<int64_t>(count)));
  };
  for (int i = 0; i < 20000; ++i) {
    // Where each word begins, and the word.
    std::vector<std::pair<size_t, std::string>> words;
    std::string text = draw(2) == 0 ? "https://" : "";
    for (size_t pieces = draw(12); pieces > 0; --pieces) {
      if (draw(2) == 0) {
        text += kSeparators[draw(std::size(kSeparators))];
      } else {
        words.emplace_back(text.size(), absl::StrCat("w", words.size(), "w"));
        text += words.back().second;
      }
    }
    const size_t end = std::min(text.find_first_of("?#"), text.size());
    const size_t at = text.substr(0, end).rfind('@');
    const size_t colon = text.find("://");
    const size_t begin = colon == std::string::npos ? 0 : colon + 3;
    const bool is_address = ParseHttpUrl(text).ok();
    const bool all_may_be_secret = !is_address && text.find('@', end) != std::string::npos;
    const std::string shown = ShownUrl(text);
    for (const auto& [place, word] : words) {
      const bool hidden = place >= end ||
                          (at != std::string::npos && place >= begin && place < at) ||
                          (all_may_be_secret && place >= begin);
      EXPECT_FALSE(hidden && absl::StrContains(shown, word)) << text << " is shown as " << shown;
    }
    EXPECT_EQ(shown.find_first_of("?#\n"), std::string::npos) << text;
    const absl::Status refused = ParseHttpUrl(text).status();
    if (refused.ok()) continue;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(absl::StrCat("\"", shown, "\"")));
  }
}

TEST(HttpUrlTest, APasswordInAnAddressThatIsTooLongIsNotShown) {
  const std::string text = "http://user:secret" + std::string(kMaxUrlBytes, 'x') + "@a/b";
  EXPECT_THAT(ParseHttpUrl(text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("http://...@a/b"), Not(HasSubstr("secret")))));
}

}  // namespace
}  // namespace systole
