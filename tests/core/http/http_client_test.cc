// Tests the client with servers that behave well. http_faults_test.cc has the other servers.
#include "core/http/http_client.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/read_progress.h"
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

constexpr absl::Duration kLong = absl::FromChrono(kLongestWait);

std::unique_ptr<HttpClient> MakeClient(HttpClientOptions options = {}) {
  options.connect_timeout = kLong;
  options.stall_timeout = kLong;
  absl::StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(options);
  EXPECT_THAT(client, IsOk());
  return *std::move(client);
}

HttpRequest Get(const std::string& url) { return {.url = url, .timeout = kLong}; }

TEST(HttpClientTest, AnAnswerHasStatusHeadersAndBody) {
  const StubHttpServer server([](const StubRequest&) {
    return Reply(200, "hello", {{"ETag", "\"x\""}, {"X-Empty", ""}});
  });
  const absl::StatusOr<HttpResponse> response = MakeClient()->Fetch(Get(server.Url("/a?b=c")));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "hello");
  EXPECT_EQ(response->body_bytes, 5u);
  EXPECT_EQ(FindHeader(response->headers, "etag"), "\"x\"");
  EXPECT_EQ(FindHeader(response->headers, "content-length"), "5");
  const StubRequest request = server.requests().at(0);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/a?b=c");
  EXPECT_EQ(FindHeader(request.headers, "user-agent"), "systole");
}

TEST(HttpClientTest, ARangeIsAskedForAndWrittenIntoTheCallersMemory) {
  const StubHttpServer server([](const StubRequest&) {
    return Reply(206, "cdef", {{"Content-Range", "bytes 2-5/9"}});
  });
  std::string out = "......";
  HttpRequest request = Get(server.Url("/a"));
  request.range = {.begin = 2, .end = 6};
  request.headers = {{"if-match", "\"x\""}};
  request.into = absl::MakeSpan(out);
  const absl::StatusOr<HttpResponse> response = MakeClient()->Fetch(request);
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(out, "cdef..");
  EXPECT_EQ(response->body_bytes, 4u);
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(FindHeader(server.requests()[0].headers, "range"), "bytes=2-5");
  EXPECT_EQ(FindHeader(server.requests()[0].headers, "if-match"), "\"x\"");
}

TEST(HttpClientTest, AHeadRequestReturnsTheHeadersAndNoBody) {
  const StubHttpServer server([](const StubRequest&) {
    return StubAnswer{.bytes = Head(200, {{"Content-Length", "123456789012"}})};
  });
  HttpRequest request = Get(server.Url("/a"));
  request.method = HttpMethod::kHead;
  const auto client = MakeClient();
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<HttpResponse> response = client->Fetch(request);
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(FindHeader(response->headers, "content-length"), "123456789012");
    EXPECT_EQ(response->body_bytes, 0u);
  }
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(server.requests()[0].method, "HEAD");
}

TEST(HttpClientTest, AnErrorStatusIsReturnedAndItsBodyIsNotWrittenToTheCallersMemory) {
  const StubHttpServer server(
      [](const StubRequest&) { return Reply(404, std::string(10000, 'x')); });
  std::string out = "....";
  HttpRequest request = Get(server.Url("/a"));
  request.into = absl::MakeSpan(out);
  const auto client = MakeClient();
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<HttpResponse> response = client->Fetch(request);
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->status, 404);
    EXPECT_EQ(response->body, "");
  }
  EXPECT_EQ(out, "....");
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClientTest, AnInformationalResponseBeforeTheAnswerIsSkipped) {
  const StubHttpServer server([](const StubRequest&) {
    StubAnswer answer = Reply(200, "body", {{"a", "2"}});
    answer.bytes = Head(103, {{"a", "1"}}) + answer.bytes;
    return answer;
  });
  const absl::StatusOr<HttpResponse> response = MakeClient()->Fetch(Get(server.Url("/")));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(FindHeader(response->headers, "a"), "2");
  EXPECT_EQ(response->body, "body");
}

TEST(HttpClientTest, ManyThreadsShareNoMoreConnectionsThanAllowedAndReuseThem) {
  std::atomic<int> serving = 0;
  const StubHttpServer server([&serving](const StubRequest& request) {
    ++serving;
    // Holds the first requests until all connections are in use.
    if (request.target == "/0") {
      EXPECT_TRUE(WaitUntil([&] { return serving >= 4; }));
    }
    return Reply(200, request.target);
  });
  const auto client = MakeClient({.max_connections = 4, .max_waiting = 3});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const std::string target = absl::StrCat("/", i);
        const absl::StatusOr<HttpResponse> response = client->Fetch(Get(server.Url(target)));
        ASSERT_THAT(response, IsOk());
        EXPECT_EQ(response->body, target);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server.requests().size(), 160u);
  EXPECT_EQ(server.connections(), 4);
  EXPECT_EQ(server.most_open(), 4);
}

TEST(HttpClientTest, OneServerGetsNoMoreConnectionsThanItsShare) {
  std::atomic<bool> released = false;
  std::atomic<int> held = 0;
  const StubHttpServer busy([&](const StubRequest&) {
    ++held;
    EXPECT_TRUE(WaitUntil([&] { return released.load(); }));
    return Reply(200, "");
  });
  const StubHttpServer other([](const StubRequest&) { return Reply(200, "other"); });
  const auto client = MakeClient({.max_connections = 3, .max_connections_per_origin = 2});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] { EXPECT_THAT(client->Fetch(Get(busy.Url("/"))), IsOk()); });
  }
  EXPECT_TRUE(WaitUntil([&] { return held == 2; }));
  EXPECT_THAT(client->Fetch(Get(other.Url("/"))), IsOk());
  released = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(busy.connections(), 2);
}

TEST(HttpClientTest, AnIdleConnectionIsClosedToMakeRoomForAnotherServer) {
  const auto handler = [](const StubRequest&) { return Reply(200, ""); };
  const StubHttpServer first(handler);
  const StubHttpServer second(handler);
  const auto client = MakeClient({.max_connections = 1});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(client->Fetch(Get(first.Url("/"))), IsOk());
    EXPECT_THAT(client->Fetch(Get(second.Url("/"))), IsOk());
    EXPECT_TRUE(WaitUntil([&] { return first.open_now() == 0; }));
  }
}

TEST(HttpClientTest, AnInterruptedCallReturnsAndFreesItsConnection) {
  const StubHttpServer server([](const StubRequest&) { return StubAnswer{.hangs = true}; });
  const auto client = MakeClient({.max_connections = 1});
  for (int i = 0; i < 2; ++i) {  // The second call needs the connection of the first call.
    InterruptFlag unwanted;
    std::thread caller([&] {
      const InterruptScope scope(unwanted);
      EXPECT_THAT(client->Fetch(Get(server.Url("/"))),
                  StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer needed")));
    });
    EXPECT_TRUE(WaitUntil([&] { return server.requests().size() == static_cast<size_t>(i + 1); }));
    unwanted.Raise();
    caller.join();
  }
  EXPECT_TRUE(WaitUntil([&] { return server.open_now() == 0; }));
}

TEST(HttpClientTest, ReadProgressCountsTheBytesOfABodyAndNotOfAnErrorAnswer) {
  const StubHttpServer server([&](const StubRequest& request) {
    if (request.target == "/refused") return Reply(404, "no such object");
    return StubAnswer{.bytes = Head(200, {{"content-length", "10"}}) + "123", .hangs = true};
  });
  const auto client = MakeClient();
  InterruptFlag unwanted;
  ReadProgress progress;
  std::thread caller([&] {
    const InterruptScope scope(unwanted);
    const ReadProgressScope counting(progress);
    EXPECT_THAT(client->Fetch(Get(server.Url("/refused"))), IsOk());
    std::string out(10, '.');
    HttpRequest request = Get(server.Url("/"));
    request.into = absl::MakeSpan(out);
    EXPECT_FALSE(client->Fetch(request).ok());
  });
  EXPECT_TRUE(WaitUntil([&] { return progress.bytes() == 3; }));
  unwanted.Raise();
  caller.join();
}

TEST(HttpClientTest, NothingIsWrittenToTheCallersMemoryAfterTheCall) {
  std::atomic<bool> began = false;
  const StubHttpServer server([&](const StubRequest&) {
    began = true;
    return StubAnswer{.bytes = Head(200, {}), .endless = std::string(1000, 'x')};
  });
  const auto client = MakeClient();
  InterruptFlag unwanted;
  std::thread caller([&] {
    const InterruptScope scope(unwanted);
    const auto out = std::make_unique<std::string>(size_t{256} << 20, '.');
    HttpRequest request = Get(server.Url("/"));
    request.into = absl::MakeSpan(*out);
    EXPECT_FALSE(client->Fetch(request).ok());
  });
  EXPECT_TRUE(WaitUntil([&] { return began.load(); }));
  unwanted.Raise();
  caller.join();  // ASan would find a byte that is written later.
  EXPECT_TRUE(WaitUntil([&] { return server.open_now() == 0; }));
}

TEST(HttpClientTest, TheDestructorEndsCallsThatRunAndCallsThatWait) {
  const StubHttpServer server([](const StubRequest&) { return StubAnswer{.hangs = true}; });
  auto client = MakeClient({.max_connections = 1, .max_waiting = 1});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, raw = client.get()] {
      EXPECT_THAT(raw->Fetch(Get(server.Url("/"))),
                  StatusIs(absl::StatusCode::kCancelled, HasSubstr("has ended")));
    });
  }
  // Once the server has a request, one of the two calls has the connection. Once a third call finds
  // no place to wait, the other of the two calls has the only place.
  EXPECT_TRUE(WaitUntil([&] { return server.requests().size() == 1; }));
  HttpRequest third = Get(server.Url("/"));
  third.timeout = absl::Milliseconds(50);
  EXPECT_TRUE(WaitUntil([&] {
    return absl::StrContains(client->Fetch(third).status().message(), "waiting for a connection");
  }));
  client.reset();
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpClientTest, AFetchInAForkedChildFailsWithTheAdviceToUseSpawn) {
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); });
  auto client = MakeClient();
  ASSERT_THAT(client->Fetch(Get(server.Url("/"))), IsOk());
  const pid_t child = ::fork();
  if (child == 0) {
    const absl::StatusOr<HttpResponse> response = client->Fetch(Get(server.Url("/")));
    const bool told = absl::StrContains(response.status().message(), "start processes by spawn");
    client.reset();
    ::_exit(told ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  EXPECT_EQ(result, 0);
  EXPECT_THAT(client->Fetch(Get(server.Url("/"))), IsOk());
}

TEST(HttpClientTest, ARedirectIsFollowedWithTheHeadersOfTheRequest) {
  const StubHttpServer server([](const StubRequest& request) {
    if (request.target == "/c/d?e") return Reply(206, "x", {{"Content-Range", "bytes 0-0/1"}});
    const int status = request.target == "/a" ? 301 : 307;
    return Reply(status, "elsewhere", {{"Location", status == 301 ? "/b" : "c/d?e"}});
  });
  HttpRequest request = Get(server.Url("/a"));
  request.range = {.begin = 0, .end = 1};
  request.headers = {{"authorization", "Bearer x"}};
  const absl::StatusOr<HttpResponse> response = MakeClient()->Fetch(request);
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->status, 206);
  const StubRequest last = server.requests().at(2);
  EXPECT_EQ(FindHeader(last.headers, "range"), "bytes=0-0");
  EXPECT_EQ(FindHeader(last.headers, "authorization"), "Bearer x");  // The same origin.
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClientTest, ARedirectToAnotherOriginDropsAuthorizationAndCookies) {
  const StubHttpServer other([](const StubRequest&) { return Reply(200, "there"); });
  const StubHttpServer server([&other](const StubRequest&) {
    return Reply(302, "", {{"Location", other.Url("/x")}});
  });
  HttpRequest request = Get(server.Url("/a"));
  request.headers = {{"authorization", "Bearer x"}, {"cookie", "y"}, {"if-match", "\"z\""}};
  const absl::StatusOr<HttpResponse> response = MakeClient()->Fetch(request);
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "there");
  EXPECT_EQ(FindHeader(server.requests()[0].headers, "authorization"), "Bearer x");
  const HttpHeaders sent = other.requests().at(0).headers;
  EXPECT_EQ(FindHeader(sent, "authorization"), "");
  EXPECT_EQ(FindHeader(sent, "cookie"), "");
  EXPECT_EQ(FindHeader(sent, "if-match"), "\"z\"");
}

TEST(HttpClientTest, AMalformedRequestIsRefusedBeforeAnythingIsSent) {
  const StubHttpServer server([](const StubRequest&) { return Reply(200, ""); });
  const auto client = MakeClient();
  HttpRequest request = Get(server.Url("/a?secret"));
  request.headers = {{"a", "b\r\nc: d"}};
  EXPECT_THAT(client->Fetch(request),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("cannot be sent"), Not(HasSubstr("secret")))));
  request.headers = {};
  request.range = {.begin = 5, .end = 5};
  EXPECT_THAT(client->Fetch(request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty range")));
  EXPECT_THAT(client->Fetch(Get("a b")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("http")));
  EXPECT_TRUE(server.requests().empty());
}

TEST(HttpClientTest, OptionsOutOfRangeAreRefusedByName) {
  for (const auto& [options, field] : std::vector<std::pair<HttpClientOptions, std::string>>{
           {{.max_connections = 0}, "max_connections"},
           {{.max_connections_per_origin = 5000}, "max_connections_per_origin"},
           {{.max_waiting = 0}, "max_waiting"},
           {{.connect_timeout = absl::ZeroDuration()}, "connect_timeout"},
           {{.stall_timeout = absl::Milliseconds(10)}, "stall_timeout"}}) {
    EXPECT_THAT(HttpClient::Create(options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)));
  }
}

TEST(HttpClientTest, TheBuffersOfAllConnectionsTakeAtMostFourMiB) {
  // No memory budget counts the buffers, so they must stay small.
  EXPECT_LE(HttpClientOptions().max_connections * kReceiveBufferBytes, 4 << 20);
}

TEST(HttpClientTest, ATlsServerIsTrustedByTheConfiguredCaFile) {
  const TempFolder folder;
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  const StubHttpServer server([](const StubRequest&) { return Reply(200, "safe"); }, &certificate);
  const auto client = MakeClient({.ca_file = folder.Write("ca.pem", certificate.pem)});
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<HttpResponse> response = client->Fetch(Get(server.Url("/")));
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->body, "safe");
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpClientTest, AProxyIsUsedExceptForHostsInNoProxy) {
  const StubHttpServer proxy([](const StubRequest& request) { return Reply(200, request.target); });
  const StubHttpServer server([](const StubRequest&) { return Reply(200, "direct"); });
  HttpClientOptions options = {.http_proxy = proxy.Url("")};
  EXPECT_EQ(MakeClient(options)->Fetch(Get("http://data.invalid/a"))->body,
            "http://data.invalid/a");
  options.no_proxy = "other.example,127.0.0.1";
  EXPECT_EQ(MakeClient(options)->Fetch(Get(server.Url("/")))->body, "direct");
}

TEST(HttpClientTest, EnvironmentVariablesSetProxiesAndCertificateAuthorities) {
  const char* const kVariables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy",
                                    "HTTP_PROXY",     "https_proxy",   "HTTPS_PROXY",  "all_proxy",
                                    "ALL_PROXY",      "no_proxy",      "NO_PROXY"};
  for (const char* variable : kVariables) ::unsetenv(variable);
  HttpClientOptions options = HttpOptionsOfEnvironment([](const char*) { return false; });
  EXPECT_EQ(options.ca_file + options.ca_folder + options.http_proxy + options.https_proxy +
                options.no_proxy,
            "");
  ::setenv("SSL_CERT_FILE", "ssl", 1);
  ::setenv("HTTP_PROXY", "header", 1);
  ::setenv("HTTPS_PROXY", "upper", 1);
  ::setenv("NO_PROXY", "none", 1);
  options = HttpOptionsOfEnvironment();
  EXPECT_EQ(options.ca_file, "ssl");
  EXPECT_EQ(options.ca_variable, "SSL_CERT_FILE");
  ::unsetenv("AWS_CA_BUNDLE");
  EXPECT_EQ(HttpOptionsOfEnvironment("AWS_CA_BUNDLE").ca_file, "ssl");
  ::setenv("AWS_CA_BUNDLE", "aws", 1);
  EXPECT_EQ(HttpOptionsOfEnvironment("AWS_CA_BUNDLE").ca_file, "aws");
  EXPECT_EQ(HttpOptionsOfEnvironment("AWS_CA_BUNDLE").ca_variable, "AWS_CA_BUNDLE");
  EXPECT_EQ(HttpOptionsOfEnvironment().ca_file, "ssl");
  ::unsetenv("AWS_CA_BUNDLE");
  EXPECT_EQ(options.http_proxy, "");
  EXPECT_EQ(options.https_proxy, "upper");
  EXPECT_EQ(options.no_proxy, "none");
  ::setenv("CURL_CA_BUNDLE", "curl", 1);
  ::setenv("SSL_CERT_DIR", "folder", 1);
  ::setenv("https_proxy", "lower", 1);
  ::setenv("all_proxy", "all", 1);
  options = HttpOptionsOfEnvironment([](const char*) { return true; });
  EXPECT_EQ(options.ca_file, "curl");
  EXPECT_EQ(options.ca_variable, "CURL_CA_BUNDLE");
  EXPECT_EQ(options.ca_folder, "folder");
  EXPECT_EQ(options.http_proxy, "all");
  EXPECT_EQ(options.https_proxy, "lower");
  for (const char* variable : kVariables) ::unsetenv(variable);
}

TEST(HttpClientTest, WithoutACaFileInTheEnvironmentTheFirstExistingSystemFileIsUsed) {
  for (const char* variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) ::unsetenv(variable);
  const std::vector<std::string> usual = {"/etc/ssl/certs/ca-certificates.crt",
                                          "/etc/pki/tls/certs/ca-bundle.crt",
                                          "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"};
  for (size_t first = 0; first <= usual.size(); ++first) {
    const HttpClientOptions options = HttpOptionsOfEnvironment([&](const char* path) {
      return std::find(usual.begin() + static_cast<ptrdiff_t>(first), usual.end(), path) !=
             usual.end();
    });
    EXPECT_EQ(options.ca_file, first < usual.size() ? usual[first] : "");
    EXPECT_EQ(options.ca_variable, "");
  }
}

}  // namespace
}  // namespace systole
