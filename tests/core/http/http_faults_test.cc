// Tests the client with servers and networks that fail or mean harm.
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/http/http_client.h"
#include "core/http/http_retry.h"
#include "core/http/no_server.h"
#include "core/http/transfer_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/dead_address.h"
#include "tests/loopback_socket.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kLong = absl::FromChrono(kLongestWait);

HttpClientOptions Patient(HttpClientOptions options = {}) {
  options.connect_timeout = kLong;
  options.stall_timeout = kLong;
  return options;
}

absl::StatusOr<HttpResponse> Fetch(const HttpRequest& request,
                                   const HttpClientOptions& options = Patient()) {
  const absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(options);
  EXPECT_THAT(client, IsOk());
  return (*client)->Fetch(request);
}

HttpRequest Get(const std::string& url) { return {.url = url, .timeout = kLong}; }

// The error of a GET from a server that gives this answer.
absl::Status ErrorOf(const StubAnswer& answer) {
  const StubHttpServer server([&answer](const StubRequest&) { return answer; });
  HttpRequest request = Get(server.Url("/a?secret"));
  request.max_body_bytes = 1000;
  const absl::Status status = Fetch(request).status();
  if (!status.ok()) {
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(server.Url("/a")), Not(HasSubstr("secret"))));
  }
  return status;
}

TEST(HttpFaultsTest, ARequestMaySetAShorterConnectTimeoutThanItsClient) {
  int port = 0;
  const OwnedFd silent = ListenOnLoopback(port);  // Nobody answers the TLS handshake.
  EXPECT_THAT(Fetch({.url = absl::StrCat("https://127.0.0.1:", port, "/"),
                     .timeout = kLong,
                     .connect_timeout = absl::Milliseconds(20)}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("did not answer")));
}

TEST(HttpFaultsTest, OnlyFailuresToConnectCountAsNoServer) {
  const auto is_no_server = [](const std::string& url) {
    const absl::Status status = Fetch(Get(url)).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    return IsNoServer(status);
  };
  EXPECT_TRUE(is_no_server(absl::StrCat("http://", DeadAddress(), "/")));
  EXPECT_TRUE(is_no_server(absl::StrCat("http://", kImpossibleHost, "/")));
  for (const StubAnswer& bad :
       {StubAnswer{.bytes = "", .closes = true}, StubAnswer{.bytes = "HTTP/1.1 2", .closes = true},
        StubAnswer{.bytes = Head(200, {{"content-length", "9"}}) + "x", .closes = true}}) {
    const StubHttpServer server([&bad](const StubRequest&) { return bad; });
    EXPECT_FALSE(is_no_server(server.Url("/")));
  }
}

TEST(HttpFaultsTest, AConnectTimeoutCountsAsNoServerAndALaterTimeoutDoesNot) {
  const auto is_no_server = [](const TransferFacts& facts) {
    return IsNoServer(TransferError(facts));
  };
  EXPECT_TRUE(is_no_server({.code = CURLE_OPERATION_TIMEDOUT}));
  EXPECT_FALSE(is_no_server({.code = CURLE_OPERATION_TIMEDOUT, .was_connected = true}));
  EXPECT_TRUE(is_no_server({.code = CURLE_COULDNT_CONNECT, .system_error = EHOSTUNREACH}));
  EXPECT_FALSE(is_no_server({.code = CURLE_COULDNT_CONNECT, .system_error = EMFILE}));
  EXPECT_FALSE(is_no_server({.code = CURLE_RECV_ERROR}));
}

// libcurl 7.88 signs a request whose name has a part "." or "..". Later releases refuse to sign it.
TEST(HttpFaultsTest, AnObjectNameThatLibcurlDoesNotSignIsInvalidArgumentWithARemedy) {
  EXPECT_THAT(TransferError({.code = CURLE_BAD_FUNCTION_ARGUMENT, .object = "\"s3://b/x/./y\""}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("s3://b/x/./y"), HasSubstr("'..'"), HasSubstr("rename"))));
}

TEST(HttpFaultsTest, AnUnresolvableHostIsUnavailableAndNamedInTheError) {
  const HttpClientOptions options = Patient();
  const std::string address = absl::StrCat("http://", kImpossibleHost, "/a");
  EXPECT_THAT(Fetch(Get(address + "?secret"), options),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(address), HasSubstr("cannot be resolved"),
                             HasSubstr("how it is spelled"), Not(HasSubstr("secret")))));
}

TEST(HttpFaultsTest, ARefusedConnectionIsUnavailableAndTheErrorSaysSo) {
  EXPECT_THAT(Fetch(Get(absl::StrCat("http://", DeadAddress(), "/a"))),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("Connection refused"), HasSubstr("the server runs"))));
}

TEST(HttpFaultsTest, AnInvalidProxyIsReportedWithoutItsUserAndPassword) {
  for (const std::string& host : {kImpossibleHost, std::string("no proxy")}) {
    const std::string proxy = absl::StrCat("http://user:pa55@", host, ":1");
    EXPECT_THAT(Fetch(Get("http://a.example/"), Patient({.http_proxy = proxy})),
                StatusIs(absl::StatusCode::kUnavailable,
                         AllOf(HasSubstr("check http_proxy"), Not(HasSubstr("user")),
                               Not(HasSubstr("pa55")))));
  }
}

TEST(HttpFaultsTest, AProxysRefusalToConnectIsReportedWithItsStatus) {
  const StubHttpServer proxy([](const StubRequest&) {
    StubAnswer answer = Reply(407, "");
    answer.closes = true;
    return answer;
  });
  EXPECT_THAT(Fetch(Get("https://a.example/"), Patient({.https_proxy = proxy.Url("")})),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("the proxy refuses to connect to https://a.example:443"),
                             HasSubstr("status 407"))));
}

TEST(HttpFaultsTest, AnUnknownAuthorityIsFailedPreconditionWithReasonAndRemedy) {
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); }, &certificate);
  EXPECT_THAT(Fetch(Get(server.Url("/"))),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("self-signed"), HasSubstr("SSL_CERT_FILE"))));
  EXPECT_TRUE(server.requests().empty());
}

TEST(HttpFaultsTest, ACertificateForAnotherNameIsFailedPreconditionWithThatReason) {
  const TempFolder folder;
  const StubCertificate certificate = MakeCertificate("DNS:other.example");
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); }, &certificate);
  EXPECT_THAT(
      Fetch(Get(server.Url("/")), Patient({.ca_file = folder.Write("ca.pem", certificate.pem)})),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr(server.Url("")), HasSubstr("it is for another name"))));
}

TEST(HttpFaultsTest, AMissingCaFileAndItsVariableAreNamedInTheError) {
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); }, &certificate);
  EXPECT_THAT(Fetch(Get(server.Url("/")), Patient({.ca_file = "/none/ca.pem"})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("/none/ca.pem"), HasSubstr("ca-certificates"))));
  EXPECT_THAT(Fetch(Get(server.Url("/")),
                    Patient({.ca_file = "/none/ca.pem", .ca_variable = "AWS_CA_BUNDLE"})),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("/none/ca.pem"), HasSubstr("correct AWS_CA_BUNDLE"),
                             Not(HasSubstr("SSL_CERT_FILE")))));
  EXPECT_THAT(
      Fetch(Get(server.Url("/")),
            Patient({.ca_file = TempFolder().Write("none", MakeCertificate("DNS:x").pem),
                     .ca_variable = "AWS_CA_BUNDLE"})),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("authorities by AWS_CA_BUNDLE")));
}

TEST(HttpFaultsTest, HttpsToAPortWithoutTlsIsUnavailableAndTheErrorSaysSo) {
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); });
  EXPECT_THAT(Fetch(Get(absl::StrCat("https://127.0.0.1:", server.port(), "/"))),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("speaks TLS")));
}

TEST(HttpFaultsTest, ABodyThatEndsEarlyIsUnavailable) {
  EXPECT_THAT(
      ErrorOf({.bytes = Head(200, {{"Content-Length", "10"}}) + "only", .closes = true}),
      StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr("ended early, after 4 bytes"))));
  EXPECT_THAT(ErrorOf({.bytes = Head(200, {{"Transfer-Encoding", "chunked"}}) + "a\r\nonly",
                       .closes = true}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("after 4 bytes")));
}

TEST(HttpFaultsTest, AConnectionThatIsClosedBeforeTheAnswerIsUnavailable) {
  EXPECT_THAT(ErrorOf({.bytes = "", .closes = true}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("try again")));
  EXPECT_THAT(ErrorOf({.bytes = "HTTP/1.1 200 Wo", .closes = true}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("try again")));
}

TEST(HttpFaultsTest, AnAnswerThatIsNotHttpIsDataLoss) {
  EXPECT_THAT(ErrorOf({.bytes = "SSH-2.0-OpenSSH_9.2\r\n\r\n", .closes = true}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is not HTTP")));
}

TEST(HttpFaultsTest, ABodyOverTheLimitIsRefusedWithOrWithoutAContentLength) {
  const auto refused =
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 1000 bytes"));
  EXPECT_THAT(ErrorOf({.bytes = Head(200, {{"Content-Length", "1001"}}), .hangs = true}), refused);
  EXPECT_THAT(ErrorOf({.bytes = Head(200, {}), .endless = std::string(100000, 'x')}), refused);
  EXPECT_THAT(ErrorOf({.bytes = Head(200, {{"Transfer-Encoding", "chunked"}}),
                       .endless = absl::StrCat("64\r\n", std::string(100, 'x'), "\r\n")}),
              refused);
  EXPECT_THAT(ErrorOf({.bytes = Head(200, {{"Content-Length", "99999999999999999999"}}),
                       .endless = std::string(100000, 'x')}),
              refused);
  EXPECT_THAT(ErrorOf(Reply(200, std::string(1000, 'x'))), IsOk());
}

TEST(HttpFaultsTest, ABodyLongerThanTheCallersMemoryIsRefusedAndNotWrittenBeyondIt) {
  const StubHttpServer server([](const StubRequest&) {
    return StubAnswer{.bytes = Head(206, {}), .endless = "0123456789"};
  });
  std::string out = "......";
  HttpRequest request = Get(server.Url("/"));
  request.into = absl::MakeSpan(out).subspan(0, 5);
  request.range = {.begin = 0, .end = 5};
  EXPECT_THAT(Fetch(request), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("5 bytes")));
  EXPECT_EQ(out.back(), '.');
}

TEST(HttpFaultsTest, AServerThatIgnoresRangesIsFailedPrecondition) {
  const StubHttpServer server(
      [](const StubRequest&) { return Reply(200, std::string(1000, 'x')); });
  HttpRequest request = Get(server.Url("/"));
  request.range = {.begin = 0, .end = 5};
  request.max_body_bytes = 5;
  EXPECT_THAT(Fetch(request),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("supports ranges")));
}

TEST(HttpFaultsTest, AnErrorStatusWithAnEndlessBodyIsReturnedWithoutTheBody) {
  const StubHttpServer server([](const StubRequest&) {
    return StubAnswer{.bytes = Head(500, {}), .endless = std::string(1000, 'x')};
  });
  const absl::StatusOr<HttpResponse> response = Fetch(Get(server.Url("/")));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 500);
  EXPECT_EQ(response->body, "");
}

TEST(HttpFaultsTest, AtMostRefusalBytesOfAnErrorBodyAreKept) {
  const StubHttpServer server([](const StubRequest& request) {
    if (request.target == "/short") return Reply(404, "abc");
    return StubAnswer{.bytes = Head(500, {}), .endless = std::string(1000, 'x')};
  });
  HttpRequest request = Get(server.Url("/long"));
  request.refusal_bytes = 2500;
  const absl::StatusOr<HttpResponse> cut = Fetch(request);
  ASSERT_THAT(cut, IsOk());
  EXPECT_EQ(cut->body, std::string(2500, 'x'));
  EXPECT_EQ(cut->body_bytes, 2500u);
  request.url = server.Url("/short");
  const absl::StatusOr<HttpResponse> whole = Fetch(request);
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(whole->body, "abc");
}

TEST(HttpFaultsTest, ARequestMayGetARedirectAsItsAnswerInsteadOfFollowingIt) {
  const StubHttpServer other([](const StubRequest&) { return Reply(200, ""); });
  const StubHttpServer server([&](const StubRequest&) {
    return Reply(307, "", {{"Location", other.Url("/")}, {"X-Region", "here"}});
  });
  HttpRequest request = Get(server.Url("/"));
  request.redirects = Redirects::kReturn;
  const absl::StatusOr<HttpResponse> response = Fetch(request);
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 307);
  EXPECT_EQ(FindHeader(response->headers, "x-region"), "here");
  EXPECT_EQ(other.connections(), 0);
}

TEST(HttpFaultsTest, GiantHeadersAreRefused) {
  const auto refused =
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("65536 bytes of headers"));
  EXPECT_THAT(ErrorOf({.bytes = "HTTP/1.1 200 OK\r\n", .endless = "A: b\r\n"}), refused);
  EXPECT_THAT(ErrorOf({.bytes = "HTTP/1.1 200 OK\r\nA: " + std::string(70000, 'x') + "\r\n",
                       .hangs = true}),
              refused);
  EXPECT_THAT(ErrorOf({.bytes = "HTTP/1.1 200 OK\r\nA: ", .endless = std::string(10000, 'x')}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 100 KB")));
  EXPECT_THAT(ErrorOf({.bytes = "", .endless = Head(103, {{"a", "b"}})}), refused);
}

TEST(HttpFaultsTest, ALoopOfRedirectsEndsAfterFive) {
  const StubHttpServer server([](const StubRequest&) {
    return Reply(302, "", {{"Location", "/a"}});
  });
  EXPECT_THAT(Fetch(Get(server.Url("/a"))),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("more than 5 times")));
  EXPECT_EQ(server.requests().size(), 6u);
}

TEST(HttpFaultsTest, ARedirectWithoutAValidAddressIsDataLoss) {
  EXPECT_THAT(ErrorOf(Reply(302, "")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("without giving an address")));
  for (const char* location : {"file:///etc/passwd", "http://user:pass@a/", "http://a b/"}) {
    EXPECT_THAT(ErrorOf(Reply(302, "", {{"Location", location}})),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("redirects to"), Not(HasSubstr("pass@")))));
  }
}

TEST(HttpFaultsTest, ARedirectFromHttpsToHttpIsRefusedAndNothingIsSentThere) {
  const TempFolder folder;
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  const StubHttpServer plain([](const StubRequest&) { return Reply(200, ""); });
  const StubHttpServer server(
      [&](const StubRequest&) {
        return Reply(302, "", {{"Location", plain.Url("/")}});
      },
      &certificate);
  EXPECT_THAT(
      Fetch(Get(server.Url("/")), Patient({.ca_file = folder.Write("ca.pem", certificate.pem)})),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not encrypted")));
  EXPECT_EQ(plain.connections(), 0);
}

// Timeouts that run out in the test.

TEST(HttpFaultsTest, TheTimeoutOfACallHoldsWhateverTheServerDoes) {
  const StubHttpServer server([](const StubRequest& request) -> StubAnswer {
    if (request.target == "/hang") return {.hangs = true};
    if (request.target == "/redirect") return Reply(302, "", {{"Location", "/hang"}});
    return {.bytes = Head(200, {}), .endless = "x", .endless_pause = absl::Milliseconds(5)};
  });
  for (const char* target : {"/hang", "/redirect", "/drip"}) {
    HttpRequest request = Get(server.Url(target));
    request.timeout = absl::Milliseconds(300);
    EXPECT_THAT(Fetch(request),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 300ms")))
        << target;
  }
}

TEST(HttpFaultsTest, TheTimeoutOfACallCountsTheWaitForAConnection) {
  std::atomic<bool> released = false;
  const StubHttpServer server([&](const StubRequest&) {
    EXPECT_TRUE(WaitUntil([&] { return released.load(); }));
    return Reply(200, "");
  });
  const absl::StatusOr<std::unique_ptr<HttpClient>> client =
      HttpClient::Create(Patient({.max_connections = 1, .max_waiting = 1}));
  std::thread first([&] { EXPECT_THAT((*client)->Fetch(Get(server.Url("/"))), IsOk()); });
  EXPECT_TRUE(WaitUntil([&] { return server.requests().size() == 1; }));
  std::thread second([&] { EXPECT_THAT((*client)->Fetch(Get(server.Url("/"))), IsOk()); });
  HttpRequest request = Get(server.Url("/"));
  request.timeout = absl::Milliseconds(200);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT((*client)->Fetch(request),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("200ms")));
  }
  released = true;
  first.join();
  second.join();
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(HttpFaultsTest, ASilentServerIsUnavailableAfterTheStallTimeout) {
  const StubHttpServer server([](const StubRequest&) { return StubAnswer{.hangs = true}; });
  HttpClientOptions options = Patient();
  options.stall_timeout = absl::Seconds(1);
  const absl::Status status = Fetch(Get(server.Url("/")), options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("did not answer")));
  EXPECT_FALSE(IsNoServer(status));
}

TEST(HttpFaultsTest, ARequestMaySetALongerStallTimeoutThanItsClient) {
  const StubHttpServer server([](const StubRequest&) { return StubAnswer{.hangs = true}; });
  HttpClientOptions options = Patient();
  options.stall_timeout = absl::Seconds(1);
  HttpRequest request = Get(server.Url("/"));
  request.stall_timeout = absl::Hours(1);
  request.timeout = absl::Seconds(3);
  EXPECT_THAT(Fetch(request, options),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("3s")));
}

// Client and retries together.

TEST(HttpFaultsTest, TransientFaultsAreRetriedUntilTheRequestSucceeds) {
  std::atomic<int> asked = 0;
  const StubHttpServer server([&](const StubRequest&) -> StubAnswer {
    switch (asked++) {
      case 0:
        return Reply(500, "");
      case 1:
        return Reply(503, "slow down", {{"Retry-After", "1"}});
      case 2:
        return Reply(429, "");
      case 3:
        return {.bytes = Head(206, {{"Content-Length", "4"}}) + "ab", .closes = true};
      case 4:
        return {.bytes = "", .closes = true};
      default:
        return Reply(206, "abcd", {{"Content-Range", "bytes 0-3/9"}});
    }
  });
  const absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(Patient());
  HttpRetrier retrier(
      {.first_backoff = absl::Milliseconds(1), .max_retry_after = absl::Milliseconds(5)},
      {.sleep = [&](absl::Duration time) { return (*client)->SleepFor(time); }});
  std::string out = "....";
  HttpRequest request = Get(server.Url("/"));
  request.range = {.begin = 0, .end = 4};
  request.into = absl::MakeSpan(out);
  const absl::StatusOr<HttpResponse> response =
      retrier.Fetch(request, [&](const HttpRequest& attempt) { return (*client)->Fetch(attempt); });
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(out, "abcd");
  EXPECT_EQ(asked, 6);
}

}  // namespace
}  // namespace systole
