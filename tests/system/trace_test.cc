// Traces of a feed, from the client's environment to the log, the page and the collector.
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/admin/http_client.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kSecret[] = "do-not-show-this";

class SystemTraceTest : public testing::Test {
 protected:
  void SetUp() override { folder_.Write("raw.tfrecord", RawShard(0, 64, 784)); }

  void Serve(std::vector<std::string> more, std::vector<std::string> environment) {
    more.insert(more.end(), {"--dataset", absl::StrCat("raw=", folder_ / "raw.tfrecord"), "--admin",
                             "127.0.0.1:0", "--admin-port-file", folder_ / "port"});
    absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start(more, {.environment = std::move(environment)});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    ASSERT_TRUE(absl::SimpleAtoi(ReadWholeFile(folder_ / "port"), &port_));
  }
  Finished Feed(const std::vector<std::string>& more, std::vector<std::string> environment) {
    std::vector<std::string> args = {"feed",
                                     "--server",
                                     server_->address(),
                                     "--spec",
                                     folder_.Write("spec.textproto", RawSpec(784, 3)),
                                     "--digest"};
    args.insert(args.end(), more.begin(), more.end());
    return RunSystole(args, {.environment = std::move(environment)});
  }
  // Stops the server, so that its log is complete and its spans are sent.
  std::string LogOf() {
    server_->process().Signal(SIGTERM);
    const Finished finished = server_->process().Wait();
    EXPECT_EQ(finished.exit_code, 0);
    return finished.err;
  }
  // The spans that the collector got, each as its JSON.
  std::vector<std::string> Spans() const {
    std::vector<std::string> spans;
    for (const StubRequest& request : collector_.requests()) {
      EXPECT_EQ(request.target, "/v1/traces");
      EXPECT_EQ(FindHeader(request.headers, "x-api-key"), kSecret);
      EXPECT_THAT(request.body, HasSubstr("{\"stringValue\":\"feeds-of-a-test\"}"));
      const std::vector<std::string> parts = absl::StrSplit(request.body, "{\"traceId\":");
      spans.insert(spans.end(), parts.begin() + 1, parts.end());
    }
    return spans;
  }
  std::vector<std::string> ServerEnvironment() const {
    return {absl::StrCat("OTEL_EXPORTER_OTLP_HEADERS=x-api-key=", kSecret),
            "OTEL_SERVICE_NAME=feeds-of-a-test"};
  }

  const TempFolder folder_;
  StubHttpServer collector_{[](const StubRequest&) { return Reply(200, "{}"); }};
  std::unique_ptr<ServerProcess> server_;
  int port_ = 0;
};

TEST_F(SystemTraceTest, AFeedsTraceIsInTheLogOnThePageAndAtTheCollector) {
  ASSERT_NO_FATAL_FAILURE(Serve({"--otlp-endpoint", collector_.Url("")}, ServerEnvironment()));
  const Finished feed = Feed({}, {absl::StrCat("TRACEPARENT=", kParent), "TRACESTATE=a=b"});
  ASSERT_EQ(feed.exit_code, 0) << feed.err;
  const TestHttpAnswer page = HttpGet(port_, "/tracez");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.head, HasSubstr("text/html"));
  EXPECT_THAT(page.body, AllOf(HasSubstr(kTraceId), HasSubstr("<td class=\"text\">raw</td>")));
  EXPECT_THAT(HttpGet(port_, "/tracez.json").body,
              HasSubstr(absl::StrCat("\"trace\":\"", kTraceId, "\"")));
  const std::string config = HttpGet(port_, "/configz").body;
  EXPECT_THAT(config,
              AllOf(HasSubstr("otlp_endpoint: \"http://127.0.0.1:"), Not(HasSubstr(kSecret))));
  const std::string log = LogOf();
  EXPECT_THAT(log, ContainsRegex(absl::StrCat("opened: dataset 'raw'.*, trace ", kTraceId)));
  EXPECT_THAT(log, HasSubstr("spans go to the collector of traces at http://127.0.0.1:"));
  EXPECT_THAT(log, Not(HasSubstr(kSecret)));
  const std::vector<std::string> spans = Spans();
  const std::string head = absl::StrCat("\"", kTraceId, "\".*\"traceState\":\"a=b\".*");
  const std::string of_caller = "\"parentSpanId\":\"00f067aa0ba902b7\"";
  for (const char* method : {"StreamSteps", "ResolveFeed"}) {
    EXPECT_THAT(spans, Contains(AllOf(ContainsRegex(head), HasSubstr(of_caller),
                                      HasSubstr(absl::StrCat("systole.v1.Systole/", method)))));
  }
  EXPECT_THAT(spans, Contains(AllOf(ContainsRegex(head), Not(HasSubstr(of_caller)),
                                    HasSubstr("\"name\":\"step\""),
                                    HasSubstr("{\"key\":\"systole.make_seconds\""))));
}

TEST_F(SystemTraceTest, TheTraceparentOptionOverridesTheVariableAndIsValidated) {
  ASSERT_NO_FATAL_FAILURE(Serve({"--log-format", "json"}, {}));
  const std::string other =
      absl::StrCat("TRACEPARENT=00-", std::string(32, '1'), "-", std::string(16, '2'), "-01");
  ASSERT_EQ(Feed({"--traceparent", kParent}, {other}).exit_code, 0);
  const Finished refused = Feed({"--traceparent", "none"}, {});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("--traceparent is 'none', want a traceparent"));
  ASSERT_EQ(Feed({}, {"TRACEPARENT=none"}).exit_code, 0);
  const std::string log = LogOf();
  for (const char* cause : {"stream_opened", "stream_ended"}) {
    EXPECT_THAT(log, ContainsRegex(
                         absl::StrCat("\"cause\":\"", cause, "\".*\"trace\":\"", kTraceId, "\"")));
  }
  EXPECT_THAT(log, Not(HasSubstr(std::string(32, '1'))));
  EXPECT_THAT(collector_.requests(), IsEmpty());
}

TEST_F(SystemTraceTest, ACollectorThatHangsDelaysNeitherTheFeedNorTheEnd) {
  StubHttpServer hanging([](const StubRequest&) { return StubAnswer{.bytes = "", .hangs = true}; });
  ASSERT_NO_FATAL_FAILURE(Serve({}, {absl::StrCat("OTEL_EXPORTER_OTLP_ENDPOINT=", hanging.Url("")),
                                     "OTEL_EXPORTER_OTLP_TIMEOUT=60000"}));
  ASSERT_EQ(Feed({}, {}).exit_code, 0);
  // The request to the collector is still waiting. Its timeout is a minute.
  const std::string log = LogOf();
  EXPECT_THAT(log, HasSubstr("drained"));
  EXPECT_THAT(log, HasSubstr("spans go to "));
}

TEST_F(SystemTraceTest, AnInvalidOtlpFlagStopsTheServerAndInvalidVariablesDoNot) {
  ASSERT_NO_FATAL_FAILURE(Serve({}, {"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4317",
                                     "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}));
  ASSERT_EQ(Feed({}, {}).exit_code, 0);
  EXPECT_THAT(LogOf(), HasSubstr("no spans are sent: OTEL_EXPORTER_OTLP_PROTOCOL: "));
  EXPECT_THAT(ServerProcess::Start({"--otlp-endpoint", "localhost:4318", "--dataset",
                                    absl::StrCat("raw=", folder_ / "raw.tfrecord")}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("--otlp-endpoint: ")));
}

}  // namespace
}  // namespace systole
