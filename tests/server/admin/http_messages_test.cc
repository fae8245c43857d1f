#include "server/admin/http_messages.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The status with which the reader refuses `bytes`. 200 means that the reader accepts `bytes`, and
// 0 that `bytes` is only the beginning of a request.
int StatusOf(const std::string& bytes, bool only_loopback_names = false) {
  HttpRequestReader reader(only_loopback_names);
  if (!reader.Take(bytes)) return 0;
  return reader.refusal().has_value() ? reader.refusal()->status : 200;
}

TEST(HttpRequestReaderTest, APathIsReadWithoutItsQuery) {
  HttpRequestReader reader(false);
  ASSERT_TRUE(
      reader.Take("GET /metrics?x=/y HTTP/1.1\r\nHost: a:1\r\nAuthorization: Bearer t\r\n\r\n"));
  ASSERT_FALSE(reader.refusal().has_value());
  EXPECT_EQ(reader.request().path, "/metrics");
  EXPECT_THAT(reader.request().authorization, ElementsAre("Bearer t"));
  EXPECT_FALSE(reader.is_head());
}

TEST(HttpRequestReaderTest, PiecesOfAnySizeAreTheSameRequest) {
  const std::string bytes = "HEAD /a HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\n\r\n";
  for (size_t size = 1; size <= bytes.size(); ++size) {
    HttpRequestReader reader(true);
    bool done = false;
    for (size_t at = 0; at < bytes.size(); at += size) {
      ASSERT_FALSE(done);
      done = reader.Take(absl::string_view(bytes).substr(at, size));
    }
    ASSERT_TRUE(done) << size;
    ASSERT_FALSE(reader.refusal().has_value()) << size;
    EXPECT_EQ(reader.request().path, "/a");
    EXPECT_TRUE(reader.is_head());
  }
}

TEST(HttpRequestReaderTest, MethodsOtherThanGetOrHeadAndRequestBodiesAreRefused) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "FOO"}) {
    EXPECT_EQ(StatusOf(absl::StrCat(method, " / HTTP/1.1\r\nHost: a\r\n\r\n")), 405) << method;
  }
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"), 200);
}

TEST(HttpRequestReaderTest, Http11RequestsNeedExactlyOneValidHostHeader) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: <script>\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(absl::StrCat("GET / HTTP/1.1\r\nHost: ", std::string(300, 'a'), "\r\n\r\n")),
            400);
}

TEST(HttpRequestReaderTest, ALoopbackPortRefusesHostNamesThatAreNotLoopback) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:8471", "localhost:1", "[::1]:8471", "[::1]"}) {
    EXPECT_EQ(StatusOf(absl::StrCat("GET / HTTP/1.1\r\nHost: ", host, "\r\n\r\n"), true), 200)
        << host;
  }
  for (const char* host :
       {"evil.example", "127.evil.example:80", "localhost.evil.example", "::1"}) {
    EXPECT_EQ(StatusOf(absl::StrCat("GET / HTTP/1.1\r\nHost: ", host, "\r\n\r\n"), true), 421)
        << host;
    EXPECT_EQ(StatusOf(absl::StrCat("GET / HTTP/1.1\r\nHost: ", host, "\r\n\r\n"), false), 200);
  }
}

TEST(HttpRequestReaderTest, MalformedRequestLinesAndHeadersAreRefused) {
  EXPECT_EQ(StatusOf("\x16\x03\x01\x02\x00\x01"), 400);  // TLS.
  EXPECT_EQ(StatusOf("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET /\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf(std::string("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 28)), 400);
  EXPECT_EQ(StatusOf("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}

TEST(HttpRequestReaderTest, ARequestHeadAboveTheSizeLimitIsRefused) {
  const std::string front = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string end = "\r\n\r\n";
  const size_t room = kMaxRequestHeadBytes - front.size() - end.size();
  EXPECT_EQ(StatusOf(front + std::string(room, 'x') + end), 200);
  EXPECT_EQ(StatusOf(front + std::string(room + 1, 'x') + end), 431);
  EXPECT_EQ(StatusOf(front + std::string(100'000, 'x')), 431);
  EXPECT_EQ(StatusOf(absl::StrCat("GET /", std::string(9000, 'a'))), 431);
}

TEST(PageAnswerTest, AnAnswerToHeadHasTheContentLengthButNoBody) {
  const PageAnswer answer = {
      .status = 401, .body = "no\n", .headers = {{"WWW-Authenticate", "Bearer"}}};
  const std::string bytes = BytesOf(answer, /*is_head=*/false);
  EXPECT_THAT(bytes, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(bytes, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(bytes, HasSubstr("WWW-Authenticate: Bearer\r\n"));
  EXPECT_THAT(bytes, EndsWith("\r\n\r\nno\n"));
  EXPECT_THAT(BytesOf(answer, /*is_head=*/true), EndsWith("\r\n\r\n"));
  EXPECT_THAT(BytesOf(answer, /*is_head=*/true), HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(bytes, Not(HasSubstr("Server:")));
}

}  // namespace
}  // namespace systole
