// Requests with a body, and requests that are signed for AWS.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/aws_signature.h"
#include "core/http/http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/sigv4_verifier.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kLong = absl::FromChrono(kLongestWait);

std::unique_ptr<HttpClient> MakeClient(HttpClientOptions options = {}) {
  options.connect_timeout = kLong;
  options.stall_timeout = kLong;
  absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(options);
  EXPECT_THAT(client, IsOk());
  return *std::move(client);
}

AwsSigning Keys() {
  return {.access_key_id = "key-id:x/y",
          .secret_access_key = "se+cret:k/ey",
          .session_token = "to:ken+/==",
          .region = "eu-central-1"};
}

HttpRequest Signed(const std::string& url) {
  return {.url = url, .sign = Keys(), .timeout = kLong};
}

TEST(HttpBodyTest, PostAndPutSendTheirBodyOnAKeptConnection) {
  const StubHttpServer server([](const StubRequest& request) { return Reply(200, request.body); });
  const auto client = MakeClient();
  const std::string bodies[] = {"", "a=b&c=%20", std::string("\0\r\n\r\nx", 6),
                                std::string(3 << 20, 'x')};
  for (const auto& [method, name] :
       {std::pair(HttpMethod::kPost, "POST"), std::pair(HttpMethod::kPut, "PUT")}) {
    for (const std::string& body : bodies) {
      const absl::StatusOr<HttpResponse> response =
          client->Fetch({.method = method,
                         .url = server.Url("/a"),
                         .headers = {{"content-type", "text/x"}},
                         .body = HttpBody(body),
                         .timeout = kLong,
                         .max_body_bytes = 4 << 20});
      ASSERT_THAT(response, IsOk());
      EXPECT_EQ(response->body, body);
      const StubRequest request = server.requests().back();
      EXPECT_EQ(request.method, name);
      EXPECT_EQ(FindHeader(request.headers, "content-length"), absl::StrCat(body.size()));
      EXPECT_EQ(FindHeader(request.headers, "content-type"), "text/x");
    }
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpBodyTest, ADeleteIsSentWithoutABodyAndItsAnswerNeedsNone) {
  const StubHttpServer server([](const StubRequest&) { return StubAnswer{Head(204, {})}; });
  const auto client = MakeClient();
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<HttpResponse> response = client->Fetch(
        {.method = HttpMethod::kDelete, .url = server.Url("/a?b=1"), .timeout = kLong});
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->status, 204);
  }
  const StubRequest request = server.requests().back();
  EXPECT_EQ(request.method, "DELETE");
  EXPECT_EQ(request.target, "/a?b=1");
  EXPECT_EQ(request.body, "");
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpBodyTest, GetHeadAndDeleteWithABodyAreInvalid) {
  for (const HttpMethod method : {HttpMethod::kGet, HttpMethod::kHead, HttpMethod::kDelete}) {
    EXPECT_THAT(MakeClient()->Fetch(
                    {.method = method, .url = "http://127.0.0.1:1/", .body = HttpBody("secret")}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("only POST and PUT"), Not(HasSubstr("secret")))));
  }
}

TEST(HttpBodyTest, ARedirectOfARequestThatMustNotBeRedirectedIsRefused) {
  const StubHttpServer server([](const StubRequest&) {
    return Reply(307, "", {{"Location", "/elsewhere"}});
  });
  const auto client = MakeClient();
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("redirects (status 307)"), Not(HasSubstr("body"))));
  for (const HttpMethod method : {HttpMethod::kPost, HttpMethod::kPut}) {
    EXPECT_THAT(
        client->Fetch(
            {.method = method, .url = server.Url("/"), .body = HttpBody("body"), .timeout = kLong}),
        refused);
  }
  EXPECT_THAT(
      client->Fetch({.method = HttpMethod::kDelete, .url = server.Url("/"), .timeout = kLong}),
      refused);
  EXPECT_THAT(
      client->Fetch({.url = server.Url("/"), .timeout = kLong, .redirects = Redirects::kRefuse}),
      refused);
  EXPECT_EQ(server.requests().size(), 4u);
}

TEST(HttpBodyTest, ARequestMayBypassTheProxy) {
  const StubHttpServer server([](const StubRequest&) { return Reply(200, "direct"); });
  const StubHttpServer proxy([](const StubRequest&) { return Reply(200, "by proxy"); });
  const auto client = MakeClient({.http_proxy = proxy.Url("")});
  HttpRequest request = {.url = server.Url("/"), .timeout = kLong};
  EXPECT_EQ(client->Fetch(request)->body, "by proxy");
  request.uses_proxies = false;
  EXPECT_EQ(client->Fetch(request)->body, "direct");
}

TEST(HttpBodyTest, DotSegmentsOfAPathAreKeptIfTheRequestSaysSo) {
  const StubHttpServer server(
      [](const StubRequest& request) { return Reply(200, request.target); });
  const auto client = MakeClient();
  HttpRequest request = {.url = server.Url("/a/../b/./c//d"), .timeout = kLong};
  EXPECT_EQ(client->Fetch(request)->body, "/b/c//d");
  request.keeps_dots = true;
  EXPECT_EQ(client->Fetch(request)->body, "/a/../b/./c//d");
}

TEST(HttpSigningTest, SignedGetHeadPostAndPutRequestsPassVerification) {
  const StubHttpServer server([](const StubRequest& request) {
    StubAnswer answer = Reply(200, "");
    const absl::Status status = VerifySigV4(request, Keys());
    EXPECT_THAT(status, IsOk()) << request.method << " " << request.target;
    return answer;
  });
  const auto client = MakeClient();
  const std::vector<std::string> targets = {
      "/",
      "/bucket/key",
      "/bucket/a%20b%2B%28c%29/~_-.%C3%A9%25",
      "/bucket/../a//./b",
      "/bucket?list-type=2&prefix=",
      "/bucket?continuation-token=a%2Fb%2B%3D&delimiter=%2F&list-type=2&prefix=x%20y",
  };
  for (const std::string& target : targets) {
    HttpRequest request = Signed(server.Url(target));
    request.keeps_dots = true;
    EXPECT_THAT(client->Fetch(request), IsOk());
    request.range = {.begin = 5, .end = 9};
    request.headers = {{"if-match", "\"e tag\""}};
    EXPECT_THAT(client->Fetch(request), IsOk());
    request.range.reset();
    request.method = HttpMethod::kHead;
    EXPECT_THAT(client->Fetch(request), IsOk());
    request.headers = {{"content-type", "text/plain"}};
    for (const HttpMethod method : {HttpMethod::kPost, HttpMethod::kPut}) {
      request.method = method;
      request.body = HttpBody("some bytes");
      EXPECT_THAT(client->Fetch(request), IsOk());
    }
  }
  EXPECT_EQ(server.requests().size(), 5 * targets.size());
  for (const StubRequest& request : server.requests()) {
    EXPECT_EQ(
        std::count_if(request.headers.begin(), request.headers.end(),
                      [](const auto& header) { return header.first == "x-amz-content-sha256"; }),
        1);
  }
}

TEST(HttpSigningTest, RequestsWithoutASessionTokenOrForOtherServicesPassVerification) {
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); });
  const auto client = MakeClient();
  AwsSigning sign = Keys();
  sign.session_token = "";
  HttpRequest request = Signed(server.Url("/a"));
  request.sign = sign;
  EXPECT_THAT(client->Fetch(request), IsOk());
  EXPECT_THAT(VerifySigV4(server.requests().back(), sign), IsOk());
  sign.service = "sts";
  request.sign = sign;
  request.method = HttpMethod::kPost;
  request.body = HttpBody("Action=GetCallerIdentity&Version=2011-06-15");
  EXPECT_THAT(client->Fetch(request), IsOk());
  EXPECT_THAT(VerifySigV4(server.requests().back(), sign), IsOk());
}

TEST(HttpSigningTest, CloudStorageRequestsAreSignedByGooglesSchemeWithoutASessionToken) {
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); });
  const auto client = MakeClient();
  const AwsSigning sign = {.access_key_id = "GOOG1EKEYID",
                           .secret_access_key = "se+cret:k/ey",
                           .region = "auto",
                           .service = "storage",
                           .scheme = SigningScheme::kGoogle};
  for (const char* target : {"/bucket/a%20b%2B%28c%29/~_-.%C3%A9%25", "/bucket/../a//./b",
                             "/bucket?delimiter=%2F&list-type=2&prefix=x%20y"}) {
    HttpRequest request = {.url = server.Url(target), .sign = sign, .timeout = kLong};
    request.keeps_dots = true;
    request.range = {.begin = 5, .end = 9};
    request.headers = {{"x-goog-user-project", "me"}, {"x-goog-if-generation-match", "12"}};
    EXPECT_THAT(client->Fetch(request), IsOk());
    EXPECT_THAT(VerifySigV4(server.requests().back(), sign), IsOk()) << target;
  }
  // Cloud Storage has no temporary keys.
  HttpRequest request = {.url = server.Url("/"), .sign = sign, .timeout = kLong};
  request.sign->session_token = "to:ken";
  EXPECT_THAT(client->Fetch(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("session token"), Not(HasSubstr("to:ken")))));
}

// libcurl signs the parameters of a query in the order in which they are written. A server sorts
// them before it checks the signature.
TEST(HttpSigningTest, AQueryThatIsNotSortedIsRefusedByServers) {
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); });
  EXPECT_THAT(MakeClient()->Fetch(Signed(server.Url("/b?prefix=x&delimiter=y"))), IsOk());
  EXPECT_THAT(VerifySigV4(server.requests().at(0), Keys()),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("does not fit")));
}

TEST(HttpSigningTest, RedirectsAreSignedAnewWithinTheOriginAndNotSignedElsewhere) {
  const StubHttpServer other([](const StubRequest&) { return Reply(200, "other"); });
  const StubHttpServer server([&other](const StubRequest& request) {
    EXPECT_THAT(VerifySigV4(request, Keys()), IsOk());
    if (request.target == "/a") return Reply(307, "", {{"Location", "/b"}});
    return Reply(307, "", {{"Location", other.Url("/c")}});
  });
  const absl::StatusOr<HttpResponse> response = MakeClient()->Fetch(Signed(server.Url("/a")));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "other");
  EXPECT_EQ(server.requests().size(), 2u);
  const StubRequest last = other.requests().at(0);
  for (const auto& [name, value] : last.headers) {
    EXPECT_TRUE(name != "authorization" && !absl::StartsWith(name, "x-amz-")) << name;
  }
}

TEST(HttpSigningTest, InvalidSigningValuesAreRefusedAndNotShown) {
  const auto client = MakeClient();
  const auto refused = [&client](AwsSigning sign, const std::string& field) {
    HttpRequest request = Signed("http://127.0.0.1:1/");
    request.sign = std::move(sign);
    EXPECT_THAT(client->Fetch(request), StatusIs(absl::StatusCode::kInvalidArgument,
                                                 AllOf(HasSubstr(field), Not(HasSubstr("bad")),
                                                       Not(HasSubstr("se+cret")))));
  };
  for (const std::string bad : {"", "bad x", "bad\r\nx: y", "bad,x", "bad\x80"}) {
    AwsSigning sign = Keys();
    sign.access_key_id = bad;
    refused(sign, "access key ID");
  }
  for (const std::string bad : {"", "bad:x", "bad/x", "bad x", "bad\n"}) {
    AwsSigning sign = Keys();
    sign.region = bad;
    refused(sign, "region");
    sign = Keys();
    sign.service = bad;
    refused(sign, "service");
  }
  AwsSigning sign = Keys();
  sign.session_token = "bad\r\nx: y";
  refused(sign, "session token");
  sign = Keys();
  sign.secret_access_key = "";
  refused(sign, "secret access key");
  sign.secret_access_key = std::string("bad\0x", 5);
  refused(sign, "secret access key");
}

TEST(HttpSigningTest, ErrorsOfSignedRequestsHoldNoSecret) {
  const auto client = MakeClient();
  for (const std::string& url : {absl::StrCat("http://", DeadAddress(), "/"),
                                 absl::StrCat("http://", kImpossibleHost, "/")}) {
    const absl::Status status = client->Fetch(Signed(url)).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 AllOf(Not(HasSubstr("key-id")), Not(HasSubstr("se+cret")),
                                       Not(HasSubstr("to:ken")))));
  }
}

TEST(HttpSigningTest, ALibcurlTooOldToSignIsRefusedWithItsVersion) {
  EXPECT_THAT(CheckLibcurlSigns(0x075600, "7.86.0"), IsOk());
  EXPECT_THAT(CheckLibcurlSigns(0x080000, "8.0.0"), IsOk());
  EXPECT_THAT(CheckLibcurlSigns(0x075500, "7.85.0"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("libcurl 7.85.0")));
}

}  // namespace
}  // namespace systole
