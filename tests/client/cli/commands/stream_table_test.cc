#include "client/cli/commands/stream_table.h"

#include <cstdint>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

v1::StreamStatus Stream(int64_t number, const std::string& dataset, const std::string& client,
                        double seconds, int64_t steps, int64_t payload_bytes) {
  v1::StreamStatus stream;
  stream.set_stream(number);
  stream.set_dataset(dataset);
  stream.set_client(client);
  stream.set_feed(0xabc);
  stream.set_seconds(seconds);
  stream.set_steps(steps);
  stream.set_payload_bytes(payload_bytes);
  return stream;
}

v1::ServerStatusResponse ThreeStreams() {
  v1::ServerStatusResponse answer;
  v1::StreamStatus& slow = *answer.add_streams() =
      Stream(12, "flowers", "identity 'team-a' at ipv4:192.0.2.1:4711", 10, 312, 1'504'000'000);
  slow.mutable_trainer()->set_wait_ratio(0.46);
  slow.mutable_trainer()->set_steps_per_second(62.5);
  slow.mutable_trainer()->set_limit(v1::TrainerReport::DECODE);
  slow.set_output("image");
  v1::StreamStatus& fast = *answer.add_streams() =
      Stream(9, "flowers", "ipv4:192.0.2.7:5022", 100, 3090, 14'900'000'000);
  fast.mutable_trainer()->set_wait_ratio(0.001);
  fast.mutable_trainer()->set_limit(v1::TrainerReport::TRAINER);
  *answer.add_streams() = Stream(14, "raw", "ipv4:192.0.2.9:4040", 0.5, 2, 600'000);
  return answer;
}

std::string Table(const v1::ServerStatusResponse& now,
                  const v1::ServerStatusResponse* before = nullptr) {
  std::ostringstream out;
  PrintStreams(now, before, out);
  return out.str();
}

std::string Json(const v1::ServerStatusResponse& now,
                 const v1::ServerStatusResponse* before = nullptr) {
  JsonWriter json;
  json.BeginObject();
  AppendStreams(now, before, json);
  json.EndObject();
  return json.text();
}

TEST(StreamTableTest, TheServerReadmeShowsTheTableAsItIsPrinted) {
  EXPECT_THAT(ReadWholeFile("server/README.md"), HasSubstr("```text\n" + Table(ThreeStreams())));
}

TEST(StreamTableTest, WithoutStreamsThereIsNoTable) {
  EXPECT_EQ(Table({}), "");
  EXPECT_EQ(Json({}), R"({"streams":[],"streams_left_out":0})");
}

TEST(StreamTableTest, RatesAreThoseSinceTheEarlierAnswer) {
  const v1::ServerStatusResponse before = ThreeStreams();
  v1::ServerStatusResponse now = before;
  v1::StreamStatus& stream = *now.mutable_streams(0);
  stream.set_seconds(12);
  stream.set_steps(312 + 4);
  stream.set_payload_bytes(stream.payload_bytes() + 6'250'000);
  EXPECT_THAT(Table(now, &before), HasSubstr("\n  12      flowers  2.0      3.1 "));
  EXPECT_THAT(Json(now, &before),
              HasSubstr(R"("steps_per_second":2,"bytes_per_second":3125000,"trainer")"));
}

TEST(StreamTableTest, AfterAServerRestartRatesCountFromTheStreamsStart) {
  const v1::ServerStatusResponse before = ThreeStreams();
  v1::ServerStatusResponse now = before;
  now.mutable_streams(0)->set_seconds(11);
  now.mutable_streams(0)->set_steps(22);
  EXPECT_THAT(Table(now, &before), HasSubstr("\n  12      flowers  2.0 "));
  now.mutable_streams(0)->set_client("ipv4:192.0.2.1:1");
  now.mutable_streams(0)->set_steps(1100);
  EXPECT_THAT(Table(now, &before), HasSubstr("\n  12      flowers  100.0 "));
}

TEST(StreamTableTest, TheJsonHasWhatTheTableHas) {
  v1::ServerStatusResponse answer = ThreeStreams();
  answer.set_streams_left_out(3);
  EXPECT_THAT(
      Json(answer),
      AllOf(HasSubstr(R"({"streams":[{"stream":12,"client":"identity 'team-a' at )"
                      R"(ipv4:192.0.2.1:4711","dataset":"flowers","feed":"0000000000000abc",)"
                      R"("seconds":10,"steps":312,"payload_bytes":1504000000,)"
                      R"("steps_per_second":31.2,"bytes_per_second":150400000,)"
                      R"("trainer":{"wait_ratio":0.46,"steps_per_second":62.5,"limit":"decode",)"
                      R"("output":"image"}})"),
            // Nothing is known of the last stream.
            HasSubstr(R"("bytes_per_second":1200000}],"streams_left_out":3})")));
  EXPECT_THAT(Table(answer), HasSubstr("\n  and 3 more, whose trainers wait less\n"));
}

TEST(StreamTableTest, InvalidTrainerReportsAreShownWithinBounds) {
  v1::ServerStatusResponse answer;
  v1::StreamStatus& stream = *answer.add_streams() = Stream(1, "a", "b", 0, 5, 5);
  stream.mutable_trainer()->set_wait_ratio(1e300);
  stream.mutable_trainer()->set_limit(static_cast<v1::TrainerReport::Limit>(77));
  EXPECT_THAT(Table(answer),
              AllOf(HasSubstr("  100 %"), HasSubstr("  unknown"), Not(HasSubstr("inf"))));
}

}  // namespace
}  // namespace systole
