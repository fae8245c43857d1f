#include "server/traces/stream_trace.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::Duration Ms(int64_t ms) { return absl::Milliseconds(ms); }

TraceContext Parent(bool sampled) {
  return {.trace = {.high = 0x4bf92f3577b34da6, .low = 0xa3ce929d0e0e4736},
          .span = 0xf067aa0ba902b7,
          .sampled = sampled,
          .state = "a=b"};
}

class StreamTraceTest : public testing::Test {
 protected:
  // A tracer whose clocks stand still. Its spans go to a collector if `exports`.
  std::unique_ptr<Tracer> MakeTracer(bool exports) {
    TracerOptions options;
    options.clock = [this] { return now_; };
    options.time_of_day = [this] { return absl::FromUnixSeconds(1'000'000'000) + now_; };
    if (exports) {
      OtlpOptions otlp;
      otlp.url = collector_.Url("/v1/traces");
      otlp.timeout = absl::Minutes(5);
      otlp.interval = absl::Minutes(5);
      auto exporter = SpanExporter::Create(std::move(otlp), nullptr);
      EXPECT_THAT(exporter, IsOk());
      spans_ = *std::move(exporter);
      options.spans = spans_;
    }
    return std::make_unique<Tracer>(std::move(options));
  }
  // The spans that the collector got, each as its JSON.
  std::vector<std::string> Sent() {
    EXPECT_TRUE(spans_->End(absl::Minutes(5)));
    std::vector<std::string> spans;
    for (const StubRequest& request : collector_.requests()) {
      std::vector<std::string> parts = absl::StrSplit(request.body, "{\"traceId\":");
      spans.insert(spans.end(), parts.begin() + 1, parts.end());
    }
    return spans;
  }
  void SendStep(StreamTrace& stream, int64_t step, absl::Duration make = Ms(2)) {
    stream.BeginSlice(0, {.make = make});
    now_ += Ms(1);
    stream.EndSlice();
    stream.EndStep(step);
  }

  absl::Duration now_ = absl::Seconds(100);
  StubHttpServer collector_{[](const StubRequest&) { return Reply(200, "{}"); }};
  std::shared_ptr<SpanExporter> spans_;
};

TEST_F(StreamTraceTest, AStepHasItsSlowestSlicesTimesAndTheSendTimeOfAllSlices) {
  const auto tracer = MakeTracer(false);
  StreamTrace stream(*tracer, tracer->Begin(Parent(false)),
                     {.dataset = "flowers", .core_begin = 2, .core_end = 4});
  stream.BeginSlice(2, {.read = Ms(10), .make = Ms(5), .wait = Ms(1)});
  now_ += Ms(3);
  stream.EndSlice();
  now_ += Ms(7);
  stream.BeginSlice(3, {.read = Ms(12), .make = Ms(6), .wait = Ms(2)});
  now_ += Ms(4);
  stream.EndSlice();
  stream.EndStep(8);
  SendStep(stream, 9, Ms(1));
  const SlowStepLists lists = tracer->slow_steps().Read([](const std::string&) { return true; });
  ASSERT_THAT(lists.made, SizeIs(2));
  const SlowStep& step = lists.made[0];
  EXPECT_EQ(step.step, 8);
  EXPECT_EQ(step.dataset, "flowers");
  EXPECT_EQ(step.core_begin, 2);
  EXPECT_EQ(step.core_end, 4);
  EXPECT_EQ(step.slowest_core, 3);
  EXPECT_EQ(step.times.read, Ms(12));
  EXPECT_EQ(step.times.make, Ms(6));
  EXPECT_EQ(step.times.wait, Ms(2));
  EXPECT_EQ(step.times.send, Ms(7));
  EXPECT_EQ(HexOf(step.trace), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(step.ended, absl::FromUnixSeconds(1'000'000'100) + Ms(14));
  // No times of the first step were added to the second step.
  EXPECT_EQ(lists.made[1].times.send, Ms(1));
  EXPECT_EQ(lists.made[1].times.read, Ms(0));
}

TEST_F(StreamTraceTest, ADatasetsNameIsEscapedAndCut) {
  const auto tracer = MakeTracer(false);
  for (int i = 0; i < 20; ++i) {
    StreamTrace stream(*tracer, {}, {.dataset = "\n" + std::string(10'000, 'x'), .core_end = 1});
    SendStep(stream, i);
  }
  const SlowStepLists lists = tracer->slow_steps().Read([](const std::string&) { return true; });
  ASSERT_THAT(lists.made, SizeIs(SlowSteps::kSlowestMade));
  EXPECT_LE(lists.made[0].dataset.size(), 160u);
  EXPECT_THAT(lists.made[0].dataset, AllOf(HasSubstr("\\nxxx"), Not(HasSubstr("\n"))));
}

TEST_F(StreamTraceTest, TheSpansOfACallAreChildrenOfItsCallersSpan) {
  const auto tracer = MakeTracer(true);
  const CallTrace call = tracer->Begin(Parent(true));
  EXPECT_EQ(call.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
  StreamTrace stream(*tracer, call,
                     {.dataset = "fl\nowers", .feed = 0xabc, .first_step = 7, .core_end = 1});
  SendStep(stream, 7, Ms(20));
  stream.End(absl::UnavailableError("no\nroom"));
  const std::vector<std::string> spans = Sent();
  ASSERT_THAT(spans, SizeIs(2));
  const std::string own = HexOf(call.span);
  EXPECT_THAT(spans[0],
              AllOf(HasSubstr("\"4bf92f3577b34da6a3ce929d0e0e4736\""), HasSubstr("\"step\""),
                    HasSubstr(absl::StrCat("\"parentSpanId\":\"", own, "\"")),
                    HasSubstr(R"("startTimeUnixNano":"1000000099980000000")"),
                    HasSubstr(R"("endTimeUnixNano":"1000000100001000000")"),
                    HasSubstr(R"({"key":"systole.step","value":{"intValue":"7"}})"),
                    HasSubstr(R"({"key":"systole.make_seconds","value":{"doubleValue":0.02}})"),
                    HasSubstr(R"({"key":"systole.send_seconds","value":{"doubleValue":0.001}})")));
  EXPECT_THAT(spans[1],
              AllOf(HasSubstr("\"4bf92f3577b34da6a3ce929d0e0e4736\""),
                    HasSubstr(absl::StrCat("\"spanId\":\"", own, "\"")),
                    HasSubstr("\"parentSpanId\":\"00f067aa0ba902b7\",\"flags\":769"),
                    HasSubstr("\"traceState\":\"a=b\""),
                    HasSubstr("\"name\":\"systole.v1.Systole/StreamSteps\",\"kind\":2"),
                    HasSubstr(R"({"key":"rpc.grpc.status_code","value":{"intValue":"14"}})"),
                    HasSubstr(R"({"key":"systole.dataset","value":{"stringValue":"fl\\nowers"}})"),
                    HasSubstr(R"({"key":"systole.steps","value":{"intValue":"1"}})"),
                    HasSubstr(R"("status":{"message":"no\\nroom","code":2})")));
}

TEST_F(StreamTraceTest, AnUnsampledCallHasATraceIdButNoSpans) {
  const auto tracer = MakeTracer(true);
  StreamTrace stream(*tracer, tracer->Begin(Parent(false)), {.dataset = "a", .core_end = 1});
  SendStep(stream, 0);
  stream.End(absl::OkStatus());
  EXPECT_EQ(tracer->Begin(Parent(false)).id(), "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_THAT(tracer->slow_steps().Read([](const std::string&) { return true; }).made, SizeIs(1));
  EXPECT_THAT(Sent(), IsEmpty());
}

TEST_F(StreamTraceTest, ACallWithoutATraceBeginsOneIfThereIsACollector) {
  const auto alone = MakeTracer(false);
  EXPECT_EQ(alone->Begin(std::nullopt).id(), "");
  const auto tracer = MakeTracer(true);
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(tracer->Begin(std::nullopt).id());
  EXPECT_THAT(ids, SizeIs(100));
  EXPECT_EQ(ids.begin()->size(), 32u);
  // Another server draws other ids.
  const auto other = MakeTracer(true);
  EXPECT_EQ(ids.count(other->Begin(std::nullopt).id()), 0u);
  other->End(other->Begin(std::nullopt), "ResolveFeed", absl::InvalidArgumentError("x"), {});
  const std::vector<std::string> spans = Sent();
  ASSERT_THAT(spans, SizeIs(1));
  EXPECT_THAT(spans[0],
              AllOf(HasSubstr("systole.v1.Systole/ResolveFeed"), HasSubstr("\"flags\":257"),
                    Not(HasSubstr("parentSpanId")), Not(HasSubstr("\"status\":{"))));
}

TEST_F(StreamTraceTest, SpansOfStepsThatAreNotSlowAreRateLimited) {
  const auto tracer = MakeTracer(true);
  StreamTrace stream(*tracer, tracer->Begin(Parent(true)), {.dataset = "a", .core_end = 1});
  // The first steps count as slow, because the list of the slowest steps is not full yet. Later
  // steps are not slower. The clock moves by 1 ms with each step: by 1 s in all.
  for (int i = 0; i < 1000; ++i) SendStep(stream, i);
  EXPECT_EQ(tracer->span_counts().no_room, 0);
  const size_t spans = Sent().size();
  const size_t slow = SlowSteps::kSlowestMade;
  EXPECT_GE(spans, slow + static_cast<size_t>(Tracer::kStepSpansAtOnce));
  // The 1000 steps lie in two minutes at most, each with `slow` slow steps.
  EXPECT_LE(spans, 2 * slow + static_cast<size_t>(Tracer::kStepSpansAtOnce +
                                                  Tracer::kStepSpansPerSecond + 1));
}

TEST_F(StreamTraceTest, ASlowStepAlwaysHasASpan) {
  const auto tracer = MakeTracer(true);
  StreamTrace stream(*tracer, tracer->Begin(Parent(true)), {.dataset = "a", .core_end = 1});
  for (int i = 0; i < 500; ++i) SendStep(stream, i);
  SendStep(stream, 4711, Ms(20));
  std::string all;
  for (const std::string& span : Sent()) all += span;
  EXPECT_THAT(all, HasSubstr("\"intValue\":\"4711\""));
}

TEST_F(StreamTraceTest, CallsThatComeTooFastAreCountedInsteadOfTraced) {
  const auto tracer = MakeTracer(true);
  int traced = 0;
  for (int i = 0; i < 1000; ++i) traced += tracer->Begin(Parent(true)).span != 0 ? 1 : 0;
  EXPECT_EQ(traced, static_cast<int>(Tracer::kCallsAtOnce));
  EXPECT_EQ(tracer->span_counts().too_many, 1000 - traced);
  now_ += absl::Seconds(1);
  for (int i = 0; i < 1000; ++i) traced += tracer->Begin(Parent(true)).span != 0 ? 1 : 0;
  EXPECT_EQ(traced, static_cast<int>(Tracer::kCallsAtOnce + Tracer::kCallsPerSecond));
}

TEST_F(StreamTraceTest, RefusedCallsDoNotKeepALaterStreamFromBeingTraced) {
  const auto tracer = MakeTracer(true);
  for (int i = 0; i < 1000; ++i) {
    tracer->End(tracer->Begin(Parent(true)), "StreamSteps", absl::UnauthenticatedError(""), {});
  }
  const CallTrace call = tracer->Begin(Parent(true));
  EXPECT_NE(call.span, 0u);
  StreamTrace(*tracer, call, {.dataset = "a", .core_end = 1}).End(absl::CancelledError(""));
  EXPECT_EQ(tracer->span_counts().too_many, 1000 - static_cast<int>(Tracer::kCallsAtOnce));
  EXPECT_THAT(Sent(), SizeIs(static_cast<size_t>(Tracer::kCallsAtOnce) + 1));
}

}  // namespace
}  // namespace systole
