// Tests the names in messages. If an object has a name of its own, messages have only this name.
// Otherwise they have the object's address, and the address to which a server redirects.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kLong = absl::FromChrono(kLongestWait);

std::unique_ptr<HttpClient> MakeClient(HttpClientOptions options = {}) {
  options.connect_timeout = kLong;
  options.stall_timeout = kLong;
  absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(options);
  EXPECT_THAT(client, IsOk());
  return *std::move(client);
}

// The message of the error of this request. "a" is the object's own name, if it has one.
std::string ErrorOf(HttpClient& client, const std::string& url, bool own_name,
                    absl::Duration timeout = kLong) {
  const absl::StatusOr<HttpResponse> response = client.Fetch(
      {.url = url, .timeout = timeout, .max_body_bytes = 1000, .called = own_name ? "a" : ""});
  EXPECT_FALSE(response.ok());
  return std::string(response.status().message());
}

// Answers each target with another fault.
StubAnswer Bad(const StubRequest& request) {
  if (request.target == "/dir/hang") return {.bytes = "", .hangs = true};
  if (request.target == "/dir/close") return {.bytes = "", .closes = true};
  if (request.target == "/dir/body") return Reply(200, std::string(2000, 'x'));
  if (request.target == "/dir/headers") {
    return {.bytes = "HTTP/1.1 200 OK\r\n", .endless = "A: b\r\n"};
  }
  if (request.target == "/dir/cut") {
    return {.bytes = Head(200, {{"Content-Length", "10"}}) + "only", .closes = true};
  }
  if (request.target == "/dir/no-http") return {.bytes = "SSH-2.0\r\n\r\n", .closes = true};
  return Reply(302, "", {{"Location", request.target}});  // "/dir/loop"
}

TEST(HttpNamesTest, ErrorsOfANamedObjectShowNoAddressWhereverItsServerRedirects) {
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  const StubHttpServer untrusted(Bad, &certificate);
  const StubHttpServer other(Bad);
  std::vector<std::string> locations = {
      "",
      "file:///dir/a",
      "http://user:pa55@host.example/dir/a",
      absl::StrCat("http://", kImpossibleHost, "/dir/a"),
      absl::StrCat("http://", DeadAddress(), "/dir/a"),
      absl::StrCat("https://127.0.0.1:", other.port(), "/dir/a"),
      untrusted.Url("/dir/a"),
  };
  for (const char* target :
       {"/dir/close", "/dir/body", "/dir/headers", "/dir/cut", "/dir/no-http", "/dir/loop"}) {
    locations.push_back(other.Url(target));
  }
  const auto client = MakeClient();
  for (const std::string& location : locations) {
    const StubHttpServer first([&location](const StubRequest&) {
      return Reply(302, "", {{"Location", location}});
    });
    const std::string url = first.Url("/dir/b?secret");
    EXPECT_THAT(ErrorOf(*client, url, /*own_name=*/true),
                AllOf(StartsWith("a: "), Not(HasSubstr("127.0.0.1")), Not(HasSubstr("example")),
                      Not(HasSubstr("xxx")), Not(HasSubstr("/dir")), Not(HasSubstr("pa55"))))
        << location;
    EXPECT_THAT(
        ErrorOf(*client, url, /*own_name=*/false),
        AllOf(StartsWith(first.Url("/dir/b: ")), Not(HasSubstr("secret")), Not(HasSubstr("pa55"))))
        << location;
  }
}

TEST(HttpNamesTest, ErrorsOfAnUnnamedObjectShowItsAddressAndTheFailedServer) {
  const std::string dead = DeadAddress();
  const StubHttpServer first([&dead](const StubRequest&) {
    return Reply(302, "", {{"Location", absl::StrCat("http://", dead, "/a")}});
  });
  EXPECT_THAT(ErrorOf(*MakeClient(), first.Url("/a"), /*own_name=*/false),
              AllOf(StartsWith(first.Url("/a: ")), HasSubstr(dead)));
}

TEST(HttpNamesTest, MalformedUrlTimeoutAndCaFileErrorsShowOnlyTheObjectsName) {
  const StubHttpServer server(Bad);
  EXPECT_EQ(ErrorOf(*MakeClient(), "http://127.0.0.1:x/dir", /*own_name=*/true),
            "a: its address is malformed");
  EXPECT_THAT(ErrorOf(*MakeClient(), server.Url("/dir/hang"), true, absl::Milliseconds(200)),
              AllOf(StartsWith("a: no whole answer within 200ms"), Not(HasSubstr("127.0.0.1"))));
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  const StubHttpServer encrypted(Bad, &certificate);
  const auto client = MakeClient({.ca_file = "/none/ca.pem"});
  EXPECT_THAT(ErrorOf(*client, encrypted.Url("/dir/a"), true),
              AllOf(StartsWith("a: the certificates of authorities cannot be read"),
                    Not(HasSubstr("/none"))));
}

TEST(HttpNamesTest, ARedirectFromHttpsToHttpIsRefusedWithTheObjectsOwnName) {
  const TempFolder folder;
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  const StubHttpServer first(
      [](const StubRequest&) {
        return Reply(302, "", {{"Location", "http://host.example/dir"}});
      },
      &certificate);
  const auto client = MakeClient({.ca_file = folder.Write("ca.pem", certificate.pem)});
  EXPECT_THAT(ErrorOf(*client, first.Url("/a"), /*own_name=*/true),
              AllOf(StartsWith("a: the server redirects to an address, which is not encrypted"),
                    Not(HasSubstr("example"))));
}

}  // namespace
}  // namespace systole
