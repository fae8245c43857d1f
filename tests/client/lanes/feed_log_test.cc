#include "client/lanes/feed_log.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/feed/feed_client.h"
#include "core/concurrency/mutex.h"
#include "core/log/event_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Collects the lines of a log, which threads of a feed write.
class Lines {
 public:
  std::shared_ptr<EventLog> Log(LogFormat format = LogFormat::kText) {
    return std::make_shared<EventLog>(
        [this](LogLevel level, const std::string& line) {
          const MutexLock lock(mu_);
          lines_.push_back(Prefix(level) + line);
        },
        EventLogOptions{.format = format});
  }
  std::vector<std::string> lines() const {
    const MutexLock lock(mu_);
    return lines_;
  }

 private:
  static std::string Prefix(LogLevel level) {
    return level == LogLevel::kWarn ? "W " : level == LogLevel::kInfo ? "I " : "";
  }

  mutable Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

// Drains a feed and destroys its client, so that all lines are written.
DrainedFeed DrainOnce(const FakeFeed& feed, const FeedClientOptions& options) {
  const auto client = MustCreate(feed, options);
  return client == nullptr ? DrainedFeed() : Drain(*client);
}

std::vector<std::string> TextsOf(FeedLog& log) {
  std::vector<std::string> texts;
  for (const LogLine& line : log.Take()) texts.push_back(line.text);
  return texts;
}

TEST(FeedLogTest, ALostStreamIsLoggedWithFeedServerDatasetAndStep) {
  const FakeFeed feed = {.spoil = [](int stream, int, FakeChunk& piece) {
    if (stream == 0 && piece.header.step == 4) piece.end = absl::UnavailableError("gone");
  }};
  const FakeServer server(feed);
  Lines lines;
  FeedClientOptions options = Quick({server.address()});
  options.log = lines.Log(LogFormat::kJson);
  ExpectAllSteps(DrainOnce(feed, options), 0, 20);
  EXPECT_THAT(
      lines.lines(),
      ElementsAre(
          AllOf(HasSubstr(R"("level":"warn","cause":"server_lost")"),
                HasSubstr(absl::StrCat("server ", server.address(), " was lost at step 4: gone")),
                ContainsRegex(absl::StrCat(R"("feed":"[0-9a-f]{16}","server":")", server.address(),
                                           R"(","dataset":"[a-z]+","step":4\})"))),
          AllOf(HasSubstr(R"("level":"info","cause":"server_lost")"), HasSubstr("answers again"))));
}

TEST(FeedLogTest, AnUnreachableServerIsNotLoggedAtEachAttempt) {
  const FakeFeed feed = {.epochs = 0};
  auto dead = std::make_unique<FakeServer>(feed);
  const std::string address = dead->address();
  dead.reset();
  const FakeServer server(feed);
  Lines lines;
  {
    FeedClientOptions options = Quick({address, server.address()});
    options.log = lines.Log();
    const auto client = MustCreate(feed, options);
    ASSERT_NE(client, nullptr);
    while (client->stats().probes < 5) ASSERT_THAT(client->Next(), IsOk());
  }
  int told = 0;
  for (const std::string& line : lines.lines()) {
    told += absl::StartsWith(line, absl::StrCat("W no answer from server ", address)) ? 1 : 0;
  }
  // gRPC does not always use the same words for one cause.
  EXPECT_GE(told, 1);
  EXPECT_LE(told, 3);
}

TEST(FeedLogTest, TheErrorThatEndsTheFeedIsNotLogged) {
  const FakeFeed feed = {.spoil = [](int, int, FakeChunk& piece) {
    if (piece.header.step == 4) piece.end = absl::DataLossError("damaged");
  }};
  const FakeServer server(feed);
  Lines lines;
  FeedClientOptions options = Quick({server.address()});
  options.log = lines.Log();
  EXPECT_EQ(DrainOnce(feed, options).steps, Range(0, 4));
  EXPECT_THAT(lines.lines(), Not(Contains(HasSubstr("damaged"))));
}

TEST(FeedLogTest, ALateStepThatIsHedgedIsLogged) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 60};
  FakeFeed hung = feed;
  hung.spoil = [](int, int, FakeChunk& piece) { piece.hang = piece.header.step == 21; };
  const FakeServer a(feed), b(hung);
  Lines lines;
  FeedClientOptions options = Quick({a.address(), b.address()});
  options.hedge_fraction = 0.1;
  options.log = lines.Log();
  ExpectAllSteps(DrainOnce(feed, options), 0, 60);
  EXPECT_THAT(lines.lines(),
              Contains(absl::StrCat("I step 21 is late from server ", b.address(), "; server ",
                                    a.address(), " is asked for it, too")));
}

TEST(FeedLogTest, StepsMovedFromALaggingServerAreLogged) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 200};
  FakeFeed hung = feed;
  hung.spoil = [](int, int, FakeChunk& piece) { piece.hang = piece.header.step >= 20; };
  const FakeServer a(feed), b(hung);
  Lines lines;
  FeedClientOptions options = Quick({a.address(), b.address()});
  options.hedge_fraction = 0;
  options.log = lines.Log();
  ExpectAllSteps(DrainOnce(feed, options), 0, 200);
  EXPECT_THAT(lines.lines(), Contains(absl::StrCat("I step 21 is late from server ", b.address(),
                                                   "; other servers go on with its steps")));
}

TEST(FeedLogTest, SaysWhichServersJoinDrainAndLeaveAndWhyAListIsNotTaken) {
  FeedLog log(/*wanted=*/true, v1::FeedSpec());
  log.ServerJoined("a:1");
  log.ServerDrains("b:2", 5);
  log.ServerLeft("b:2");
  log.ListIsUnreadable(absl::NotFoundError("servers.txt: no such file"));
  EXPECT_THAT(TextsOf(log),
              ElementsAre("server a:1 joined", "server b:2 drains; its stream ended at step 5",
                          "server b:2 left the list",
                          "the feed keeps the servers that it has: servers.txt: no such file"));
  EXPECT_TRUE(log.empty());
}

TEST(FeedLogTest, NamesAFewMaskedRecordsOfAStepAndTheDatasets) {
  v1::FeedSpec spec;
  spec.add_mixture()->set_dataset("cats");
  spec.add_mixture()->set_dataset("dogs");
  FeedLog log(/*wanted=*/true, spec);
  log.SetFeed(7);
  MissingExamples missing = {.padded = 3};
  log.Masked(1, missing);
  EXPECT_TRUE(log.empty());
  missing.masked_records = {5, 9};
  log.Masked(2, missing);
  missing.masked_records.assign(1000, 4);
  log.Masked(3, missing);
  const std::vector<LogLine> lines = log.Take();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].text,
            "step 2: examples masked for damage: 2; record_id 5, 9; the servers' logs say where "
            "they are");
  EXPECT_LT(lines[1].text.size(), 200u);
  EXPECT_EQ(lines[0].fields.dataset, "cats,dogs");
  EXPECT_EQ(lines[0].fields.feed, 7u);
  EXPECT_EQ(lines[0].fields.step, 2);
}

TEST(FeedLogTest, LinesThatNobodyTakesAreBounded) {
  FeedLog log(/*wanted=*/true, v1::FeedSpec());
  for (int i = 0; i < 10'000; ++i) log.ServerJoined("a:1");
  EXPECT_EQ(log.Take().size(), FeedLog::kMaxWaiting);
}

TEST(FeedLogTest, WithoutALogNothingIsCollected) {
  FeedLog log(/*wanted=*/false, v1::FeedSpec());
  log.ServerJoined("a:1");
  log.StreamLost("a:1", 4, absl::UnavailableError("gone"));
  EXPECT_THAT(log.Take(), IsEmpty());
}

}  // namespace
}  // namespace systole
