#include "server/admin/http_server.h"

#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/admin/http_client.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HttpServerTest : public testing::Test {
 protected:
  // Time limits that never run out, unless a test sets others.
  static HttpServerOptions Patient() {
    HttpServerOptions options;
    options.patience = absl::InfiniteDuration();
    options.request_time = options.answer_time = absl::FromChrono(kLongestWait);
    return options;
  }
  void Serve(
      HttpServerOptions options, HttpServer::Handler handler = [](const PageRequest& request) {
        return PageAnswer{.body = absl::StrCat("this is ", request.path, "\n")};
      }) {
    absl::StatusOr<ListeningSockets> sockets = ListenOnTcp("127.0.0.1", 0);
    ASSERT_THAT(sockets, IsOk());
    port_ = sockets->port;
    absl::StatusOr<std::unique_ptr<HttpServer>> server =
        HttpServer::Start(*std::move(sockets), std::move(options), std::move(handler));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }
  // Opens connections that send nothing.
  std::vector<std::unique_ptr<TestHttpConnection>> OpenIdle(int count) {
    std::vector<std::unique_ptr<TestHttpConnection>> idle;
    for (int i = 0; i < count; ++i) idle.push_back(std::make_unique<TestHttpConnection>(port_));
    EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == count; }));
    return idle;
  }

  int port_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ARequestIsAnsweredAndTheConnectionEnds) {
  std::string peer;
  Serve(Patient(), [&peer](const PageRequest& request) {
    peer = request.peer;
    return PageAnswer{.body = "page\n"};
  });
  const TestHttpAnswer answer = HttpGet(port_, "/a?b");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "page\n");
  EXPECT_THAT(answer.head, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(peer, testing::MatchesRegex("ipv4:127\\.0\\.0\\.1:[0-9]+"));
}

TEST_F(HttpServerTest, AnAnswerOfManyBytesArrives) {
  const std::string body(16 << 20, 'x');
  Serve(Patient(), [&body](const PageRequest&) { return PageAnswer{.body = body}; });
  EXPECT_EQ(HttpGet(port_, "/").body, body);
}

TEST_F(HttpServerTest, TheSeventeenthConnectionIsClosedAtOnce) {
  Serve(Patient());
  auto idle = OpenIdle(16);
  TestHttpConnection further(port_);
  EXPECT_EQ(further.ReadAll(), "");
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().refused == 1; }));
  // The sixteen connections that were open before are still served.
  ASSERT_TRUE(idle[3]->Send("GET /3 HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(AnswerOf(idle[3]->ReadAll()).body, "this is /3\n");
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 15; }));
  EXPECT_EQ(HttpGet(port_, "/now").body, "this is /now\n");
}

// If old connections kept their places, sixteen clients that send nothing could keep a probe out.
TEST_F(HttpServerTest, ANewConnectionAtTheLimitDisplacesTheOldestOne) {
  HttpServerOptions options = Patient();
  options.patience = absl::ZeroDuration();
  Serve(std::move(options));
  const auto idle = OpenIdle(16);
  EXPECT_EQ(HttpGet(port_, "/probe").body, "this is /probe\n");
  EXPECT_EQ(idle[0]->ReadAll(), "");
  EXPECT_EQ(server_->counters().displaced, 1);
  ASSERT_TRUE(idle[1]->Send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(AnswerOf(idle[1]->ReadAll()).status, 200);
}

TEST_F(HttpServerTest, ARequestThatIsNotCompleteInTimeIsDropped) {
  HttpServerOptions options = Patient();
  options.request_time = absl::Milliseconds(50);
  Serve(std::move(options));
  TestHttpConnection slow(port_);
  ASSERT_TRUE(slow.Send("GET / HTTP/1.1\r\nX: "));
  EXPECT_TRUE(WaitUntil([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    slow.Send("x");
    return server_->counters().late == 1;
  }));
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 0; }));
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsDropped) {
  HttpServerOptions options = Patient();
  options.answer_time = absl::Milliseconds(50);
  const std::string body(64 << 20, 'x');  // More than sockets hold.
  Serve(std::move(options), [&body](const PageRequest&) { return PageAnswer{.body = body}; });
  TestHttpConnection deaf(port_);
  ASSERT_TRUE(deaf.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().late == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 0; }));
}

TEST_F(HttpServerTest, ARequestOfNineKibibytesIsRefusedAndTheConnectionEnds) {
  Serve(Patient());
  TestHttpConnection large(port_);
  large.Send(absl::StrCat("GET / HTTP/1.1\r\nHost: a\r\nX: ", std::string(9 << 10, 'x')));
  EXPECT_EQ(AnswerOf(large.ReadAll()).status, 431);
  EXPECT_EQ(server_->counters().bad, 1);
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 0; }));
}

TEST_F(HttpServerTest, AMalformedRequestGetsStatus400AndTheConnectionEnds) {
  Serve(Patient());
  TestHttpConnection garbage(port_);
  garbage.Send("\x16\x03\x01\x02");
  EXPECT_EQ(AnswerOf(garbage.ReadAll()).status, 400);
}

// A handler that answers "begin " and then sends `events` events: "e0 ", "e1 " and so on.
HttpServer::Handler CountingEvents(int events) {
  return [events](const PageRequest& request) {
    if (!request.may_have_events) return PageAnswer{.status = 503, .body = "too many\n"};
    PageAnswer answer = {.body = "begin "};
    answer.next_event = [events, i = 0]() mutable -> std::optional<std::string> {
      if (i == events) return std::nullopt;
      return absl::StrCat("e", i++, " ");
    };
    return answer;
  };
}

constexpr int kForEver = 1 << 30;
constexpr char kRequest[] = "GET /events HTTP/1.1\r\nHost: a\r\n\r\n";

HttpServerOptions Quick(HttpServerOptions options) {
  options.event_interval = absl::Milliseconds(1);
  return options;
}

TEST_F(HttpServerTest, EventsArriveInOrderAndThenTheConnectionEnds) {
  Serve(Quick(Patient()), CountingEvents(3));
  const TestHttpAnswer answer = HttpGet(port_, "/events");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, Not(HasSubstr("Content-Length")));
  EXPECT_EQ(answer.body, "begin e0 e1 e2 ");
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 0; }));
  EXPECT_EQ(server_->counters().event_streams, 0);
}

TEST_F(HttpServerTest, AFifthEventStreamIsRefusedUntilAViewerLeaves) {
  Serve(Quick(Patient()), CountingEvents(kForEver));
  std::vector<std::unique_ptr<TestHttpConnection>> viewers;
  for (int i = 0; i < 4; ++i) {
    viewers.push_back(std::make_unique<TestHttpConnection>(port_));
    ASSERT_TRUE(viewers.back()->Send(kRequest));
    EXPECT_THAT(viewers.back()->ReadUntil("e1 "), HasSubstr("begin e0 e1 "));
  }
  EXPECT_EQ(server_->counters().event_streams, 4);
  EXPECT_EQ(HttpGet(port_, "/events").status, 503);
  viewers.pop_back();
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().event_streams == 3; }));
  TestHttpConnection next(port_);
  ASSERT_TRUE(next.Send(kRequest));
  EXPECT_THAT(next.ReadUntil("e0 "), HasSubstr("begin e0 "));
}

TEST_F(HttpServerTest, AnEventStreamMayLastLongerThanTheAnswerTimeout) {
  HttpServerOptions options = Patient();
  options.answer_time = absl::Seconds(1);
  options.event_interval = absl::Milliseconds(300);
  Serve(std::move(options), CountingEvents(5));
  EXPECT_EQ(HttpGet(port_, "/events").body, "begin e0 e1 e2 e3 e4 ");
  EXPECT_EQ(server_->counters().late, 0);
}

TEST_F(HttpServerTest, AViewerThatDoesNotReadItsEventsIsDropped) {
  HttpServerOptions options = Quick(Patient());
  options.answer_time = absl::Milliseconds(50);
  Serve(std::move(options), [](const PageRequest&) {
    PageAnswer answer;
    answer.next_event = [] { return std::string(1 << 20, 'x'); };
    return answer;
  });
  TestHttpConnection deaf(port_);
  ASSERT_TRUE(deaf.Send(kRequest));
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().late == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 0; }));
  EXPECT_EQ(server_->counters().event_streams, 0);
}

TEST_F(HttpServerTest, AViewerThatSendsMoreDuringAnEventStreamIsDisconnected) {
  Serve(Quick(Patient()), CountingEvents(kForEver));
  TestHttpConnection chatty(port_);
  ASSERT_TRUE(chatty.Send(kRequest));
  chatty.ReadUntil("e3 ");
  chatty.Send("more");
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 0; }));
}

TEST_F(HttpServerTest, ANewConnectionDisplacesAnIdleOneButNoEventStream) {
  HttpServerOptions options = Quick(Patient());
  options.patience = absl::ZeroDuration();
  Serve(std::move(options), CountingEvents(kForEver));
  TestHttpConnection viewer(port_);
  ASSERT_TRUE(viewer.Send(kRequest));
  viewer.ReadUntil("e0 ");
  std::vector<std::unique_ptr<TestHttpConnection>> idle;
  for (int i = 0; i < 15; ++i) idle.push_back(std::make_unique<TestHttpConnection>(port_));
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 16; }));
  TestHttpConnection further(port_);
  EXPECT_EQ(idle[0]->ReadAll(), "");
  EXPECT_EQ(server_->counters().displaced, 1);
  EXPECT_EQ(server_->counters().event_streams, 1);
  EXPECT_THAT(viewer.ReadUntil(" "), Not(testing::IsEmpty()));
}

TEST_F(HttpServerTest, AHeadRequestForAnEventStreamEndsWithoutEvents) {
  Serve(Quick(Patient()), CountingEvents(kForEver));
  TestHttpConnection head(port_);
  ASSERT_TRUE(head.Send("HEAD /events HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(AnswerOf(head.ReadAll()).body, "");
  EXPECT_EQ(server_->counters().event_streams, 0);
}

TEST_F(HttpServerTest, AHundredViewersThatComeAndGoLeakNoStreamsOrDescriptors) {
  Serve(Quick(Patient()), CountingEvents(kForEver));
  const auto files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = files();
  for (int i = 0; i < 100; ++i) {
    TestHttpConnection viewer(port_);
    ASSERT_TRUE(viewer.Send(kRequest));
    // The previous viewer's place may not be free yet.
    if (viewer.ReadUntil(i % 2 == 0 ? "begin" : "e2 ").find(" 503 ") != std::string::npos) {
      ASSERT_TRUE(WaitUntil([&] { return server_->counters().event_streams == 0; }));
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return server_->counters().open == 0; }));
  EXPECT_EQ(server_->counters().event_streams, 0);
  EXPECT_TRUE(WaitUntil([&] { return files() == before; }));
}

TEST_F(HttpServerTest, TheServerStopsWhileEventStreamsAreOpen) {
  Serve(Quick(Patient()), CountingEvents(kForEver));
  TestHttpConnection viewer(port_);
  ASSERT_TRUE(viewer.Send(kRequest));
  viewer.ReadUntil("e0 ");
  server_ = nullptr;
  viewer.ReadAll();  // The stream of events ends.
}

TEST_F(HttpServerTest, TheServerStopsWhileConnectionsAreOpen) {
  Serve(Patient());
  const auto idle = OpenIdle(3);
  server_ = nullptr;
  for (const auto& connection : idle) EXPECT_EQ(connection->ReadAll(), "");
}

}  // namespace
}  // namespace systole
