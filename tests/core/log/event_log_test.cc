#include "core/log/event_log.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A log that keeps its lines, and a clock that the test sets.
struct Written {
  std::vector<std::string> lines;
  absl::Duration now = absl::Seconds(1000);

  LogSink Sink() {
    return [this](LogLevel level, const std::string& line) {
      constexpr const char* kLevels[] = {"D ", "I ", "W ", "E "};
      lines.push_back(absl::StrCat(kLevels[static_cast<int>(level)], line));
    };
  }
  EventLogOptions Options(LogLevel least = LogLevel::kInfo) {
    return {.least = least, .max_lines = 3, .clock = [this] { return now; }};
  }
};

TEST(EventLogTest, AHostileMessageBecomesOneEscapedLineOfBoundedLength) {
  Written written;
  EventLog log(written.Sink(), written.Options());
  log.Add(LogCause::kRefused, LogLevel::kInfo,
          absl::StrCat("a\n[error] forged\x1b[2J", std::string(1 << 20, 'x')));
  ASSERT_EQ(written.lines.size(), 1u);
  EXPECT_THAT(written.lines[0],
              AllOf(HasSubstr("a\\n[error] forged\\x1b[2J"), Not(HasSubstr("\n"))));
  EXPECT_LT(written.lines[0].size(), 3000u);
}

TEST(EventLogTest, LinesBeyondTheLimitOfACauseAreCountedAtTheIntervalsEnd) {
  Written written;
  EventLog log(written.Sink(), written.Options());
  for (int i = 0; i < 2000; ++i) log.Add(LogCause::kRefused, LogLevel::kInfo, absl::StrCat(i));
  EXPECT_THAT(written.lines, ElementsAre("I 0", "I 1", "I 2"));
  log.Tick();
  EXPECT_EQ(written.lines.size(), 3u);  // The interval is not over yet.
  written.lines.clear();
  written.now += absl::Seconds(30);
  log.Tick();
  EXPECT_THAT(written.lines, ElementsAre("I 1997 more requests refused within 30s"));
  log.Tick();
  EXPECT_EQ(written.lines.size(), 1u);
  log.Add(LogCause::kRefused, LogLevel::kInfo, "again");
  EXPECT_THAT(written.lines, ElementsAre(HasSubstr("1997 more"), "I again"));
}

TEST(EventLogTest, ALineAfterTheIntervalFirstReportsTheLinesLeftOut) {
  Written written;
  EventLog log(written.Sink(), written.Options());
  for (int i = 0; i < 4; ++i) log.Add(LogCause::kDamage, LogLevel::kWarn, "old");
  written.now += absl::Seconds(31);
  written.lines.clear();
  log.Add(LogCause::kDamage, LogLevel::kWarn, "new");
  EXPECT_THAT(written.lines, ElementsAre("W 1 more damaged records within 30s", "W new"));
}

TEST(EventLogTest, EachCauseHasItsOwnLineLimitAndProgramLinesHaveNone) {
  Written written;
  EventLog log(written.Sink(), written.Options());
  for (int i = 0; i < 10; ++i) log.Add(LogCause::kRefused, LogLevel::kInfo, "refused");
  written.lines.clear();
  log.Add(LogCause::kStreamOpened, LogLevel::kInfo, "opened");
  EXPECT_THAT(written.lines, ElementsAre("I opened"));
  for (int i = 0; i < 10; ++i) log.Add(LogCause::kProgram, LogLevel::kInfo, "program");
  EXPECT_EQ(written.lines.size(), 11u);
}

TEST(EventLogTest, FlushWritesTheCountOfLeftOutLinesBeforeTheIntervalEnds) {
  Written written;
  EventLog log(written.Sink(), written.Options());
  for (int i = 0; i < 5; ++i) log.Add(LogCause::kStreamEnded, LogLevel::kInfo, "ended");
  written.lines.clear();
  log.Flush();
  EXPECT_THAT(written.lines, ElementsAre("I 2 more streams ended within 30s"));
}

TEST(EventLogTest, LinesBelowTheLevelAreNeitherWrittenNorCounted) {
  Written written;
  EventLog log(written.Sink(), written.Options(LogLevel::kWarn));
  for (int i = 0; i < 10; ++i) log.Add(LogCause::kGrpc, LogLevel::kInfo, "quiet");
  log.Add(LogCause::kGrpc, LogLevel::kWarn, "loud");
  log.Flush();
  EXPECT_THAT(written.lines, ElementsAre("W loud"));
}

// 2026-01-31T23:59:59.123Z.
absl::Time LastOfJanuary() { return absl::FromUnixMillis(1769903999123); }

EventLogOptions Json(Written& written) {
  EventLogOptions options = written.Options();
  options.format = LogFormat::kJson;
  options.wall_clock = LastOfJanuary;
  return options;
}

TEST(EventLogTest, JsonLinesAreObjectsWithOnlyTheFieldsThatAreSet) {
  Written written;
  EventLog log(written.Sink(), Json(written));
  log.Add(LogCause::kStreamOpened, LogLevel::kInfo, "opened",
          {.feed = 0xabc,
           .client = "ipv4:192.0.2.1:4711",
           .identity = "trainer-a",
           .dataset = "flowers",
           .step = 0,
           .shard = "a.tfrecord",
           .record = int64_t{1} << 60,
           .trace = "4bf92f3577b34da6a3ce929d0e0e4736"});
  log.Add(LogCause::kProgram, LogLevel::kError, "the end");
  EXPECT_THAT(
      written.lines,
      ElementsAre(R"(I {"time":"2026-01-31T23:59:59.123Z","level":"info","cause":"stream_opened",)"
                  R"("message":"opened","feed":"0000000000000abc","client":"ipv4:192.0.2.1:4711",)"
                  R"("identity":"trainer-a","dataset":"flowers","step":0,"shard":"a.tfrecord",)"
                  R"("record":1152921504606846976,)"
                  R"("trace":"4bf92f3577b34da6a3ce929d0e0e4736"})",
                  R"(E {"time":"2026-01-31T23:59:59.123Z","level":"error","cause":"program",)"
                  R"("message":"the end"})"));
}

TEST(EventLogTest, TheCountOfLeftOutLinesIsAJsonObjectToo) {
  Written written;
  EventLog log(written.Sink(), Json(written));
  for (int i = 0; i < 5; ++i) log.Add(LogCause::kDamage, LogLevel::kWarn, "x", {.record = i});
  written.lines.clear();
  log.Flush();
  EXPECT_THAT(written.lines,
              ElementsAre(R"(W {"time":"2026-01-31T23:59:59.123Z","level":"warn","cause":"damage",)"
                          R"("message":"2 more damaged records within 30s","left_out":2})"));
}

TEST(EventLogTest, HostileTextsBecomeOneEscapedJsonLineOfBoundedLength) {
  Written written;
  EventLog log(written.Sink(), Json(written));
  const std::string hostile =
      absl::StrCat("\",\"level\":\"error\n{\x1b\xff", std::string(1 << 20, '\\'));
  log.Add(LogCause::kRefused, LogLevel::kInfo, hostile,
          {.client = hostile, .identity = hostile, .dataset = hostile, .shard = hostile});
  ASSERT_EQ(written.lines.size(), 1u);
  EXPECT_THAT(written.lines[0],
              AllOf(HasSubstr(R"("message":"\",\"level\":\"error\\n{\\x1b\\xff\\)"),
                    HasSubstr(R"("dataset":"\",\"level\":)"), Not(HasSubstr("\n"))));
  EXPECT_LT(written.lines[0].size(), 6000u);
}

TEST(EventLogTest, WithoutASinkNoLineIsMade) {
  Written written;
  EventLogOptions options = Json(written);
  int times_asked = 0;  // A line in JSON asks for the time.
  options.wall_clock = [&] {
    ++times_asked;
    return LastOfJanuary();
  };
  EventLog log(nullptr, options);
  for (int i = 0; i < 9; ++i) log.Add(LogCause::kDamage, LogLevel::kError, "x");
  log.Add(LogCause::kProgram, LogLevel::kError, "x");
  written.now += absl::Seconds(31);
  log.Tick();
  log.Flush();
  EXPECT_EQ(times_asked, 0);
}

}  // namespace
}  // namespace systole
