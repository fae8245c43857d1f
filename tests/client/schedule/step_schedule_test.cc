// Tests single decisions of the schedule. simulation_test.cc tests what must hold at all times.
#include "client/schedule/step_schedule.h"

#include <optional>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Duration kNever = absl::Hours(1000);

// A schedule, and the actions that the last event caused.
class Scheduled {
 public:
  explicit Scheduled(const ScheduleOptions& options = {}) : schedule_(options) {}

  void Tell(const ScheduleEvent& event) {
    actions_.clear();
    schedule_.Handle(event, now_, actions_);
  }
  // Ticks until an `Action` comes, and returns how long that took. Returns nullopt if no `Action`
  // comes within `time`.
  template <typename Action>
  std::optional<absl::Duration> WaitFor(absl::Duration time) {
    const absl::Duration begin = now_;
    while (now_ < begin + time) {
      now_ = std::min(std::max(schedule_.wake_at(), now_ + absl::Microseconds(1)), begin + time);
      Tell(Tick());
      if (!All<Action>().empty()) return now_ - begin;
    }
    return std::nullopt;
  }
  // Lets `time` pass without a tick, as if the process was stopped.
  void Stop(absl::Duration time) { now_ += time; }

  template <typename Action>
  std::vector<Action> All() const {
    std::vector<Action> found;
    for (const ScheduleAction& action : actions_) {
      if (const Action* const one = std::get_if<Action>(&action)) found.push_back(*one);
    }
    return found;
  }
  // Starts a feed of 1,000 steps with servers 0 .. `servers` - 1, which have answered.
  void Start(int servers, int64_t window) {
    for (int i = 0; i < servers; ++i) {
      Tell(ServerJoined{.server = i});
      Tell(Answered{.server = i});
    }
    Tell(FeedStarted{.first_step = 0, .end_step = 1000, .window = window});
  }
  // The lane gets a step, 100 ms after the previous event.
  void Arrive(int lane) {
    now_ += absl::Milliseconds(100);
    Tell(StepArrived{.lane = lane});
  }
  const ScheduleCounts& counts() const { return schedule_.counts(); }

 private:
  StepSchedule schedule_;
  absl::Duration now_ = absl::Hours(5);
  ScheduleActions actions_;
};

TEST(StepScheduleTest, EachServerHasEveryNthStep) {
  Scheduled feed;
  feed.Start(/*servers=*/3, /*window=*/10);
  const std::vector<OpenStream> opened = feed.All<OpenStream>();
  ASSERT_EQ(opened.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(opened[static_cast<size_t>(i)].server, i);
    EXPECT_EQ(opened[static_cast<size_t>(i)].first_step, i);
    EXPECT_EQ(opened[static_cast<size_t>(i)].stride, 3);
  }
}

TEST(StepScheduleTest, ANewServerGetsStepsBeyondTheCurrentWindow) {
  Scheduled feed;
  feed.Start(1, /*window=*/4);
  feed.Tell(ServerJoined{.server = 1});
  feed.Tell(Answered{.server = 1});
  EXPECT_THAT(feed.All<OpenStream>(), IsEmpty());  // Server 0 makes all steps in the window.
  std::vector<OpenStream> opened;
  for (int step = 0; step < 8; ++step) {
    if (step < 4) feed.Arrive(/*lane=*/0);
    if (step >= 4) break;
    feed.Tell(StepTaken());
    for (const OpenStream& one : feed.All<OpenStream>()) opened.push_back(one);
  }
  ASSERT_EQ(opened.size(), 2u);
  EXPECT_EQ(opened[0].first_step, 4);
  EXPECT_EQ(opened[0].stride, 2);
  EXPECT_EQ(opened[1].first_step, 5);
  EXPECT_EQ(opened[0].server + opened[1].server, 1);
}

TEST(StepScheduleTest, AServerWhoseStreamBreaksAfterItsLastStepHasToAnswerAgain) {
  Scheduled feed;
  for (int i = 0; i < 2; ++i) {
    feed.Tell(ServerJoined{.server = i});
    feed.Tell(Answered{.server = i});
  }
  feed.Tell(FeedStarted{.first_step = 0, .end_step = 4, .window = 10});
  for (int i = 0; i < 2; ++i) feed.Arrive(/*lane=*/0);  // Steps 0 and 2, all steps of lane 0.
  feed.Tell(StreamEnded{.lane = 0, .failure = Failure()});
  ASSERT_THAT(feed.All<AskServer>(), SizeIs(1));
  EXPECT_EQ(feed.All<AskServer>()[0].server, 0);
  feed.Tell(StreamEnded{.lane = 1, .failure = Failure()});
  EXPECT_THAT(feed.All<OpenStream>(), IsEmpty());
  feed.Tell(Answered{.server = 0});
  ASSERT_THAT(feed.All<OpenStream>(), SizeIs(1));
  EXPECT_EQ(feed.All<OpenStream>()[0].first_step, 1);
}

TEST(StepScheduleTest, ALateLaneMovesToAnotherServerAfterASecondAndTwoStepTimes) {
  Scheduled feed({.hedge_fraction = 0});
  feed.Start(2, /*window=*/100);
  feed.Arrive(0);
  const std::optional<absl::Duration> late = feed.WaitFor<StopStream>(absl::Seconds(10));
  ASSERT_TRUE(late.has_value());
  EXPECT_GT(*late, absl::Seconds(0.9));
  EXPECT_LT(*late, absl::Seconds(1.3));
  EXPECT_EQ(feed.All<StopStream>()[0].lane, 1);
  EXPECT_EQ(feed.counts().relieved_steps, 50);
  ASSERT_EQ(feed.All<StepLate>().size(), 1u);
  EXPECT_EQ(feed.All<StepLate>()[0].step, 1);
  EXPECT_EQ(feed.All<StepLate>()[0].server, 1);
  EXPECT_EQ(feed.All<StepLate>()[0].second, std::nullopt);
  feed.Tell(StreamEnded{.lane = 1});
  ASSERT_EQ(feed.All<OpenStream>().size(), 1u);
  EXPECT_EQ(feed.All<OpenStream>()[0].server, 0);
  EXPECT_EQ(feed.All<OpenStream>()[0].first_step, 1);
}

TEST(StepScheduleTest, ALateServerMustAnswerBeforeItServesAgain) {
  Scheduled feed({.hedge_fraction = 0});
  feed.Start(2, 100);
  feed.Arrive(0);
  ASSERT_TRUE(feed.WaitFor<StopStream>(absl::Seconds(10)).has_value());
  feed.Tell(StreamEnded{.lane = 1});
  const std::optional<absl::Duration> asked = feed.WaitFor<AskServer>(absl::Seconds(10));
  ASSERT_TRUE(asked.has_value());
  EXPECT_GE(*asked, absl::Seconds(1));
  EXPECT_EQ(feed.All<AskServer>()[0].server, 1);
  EXPECT_EQ(feed.counts().probes, 1);
  // The server hangs: each question to it fails, and no stream to it is opened.
  for (int i = 0; i < 5; ++i) {
    feed.Tell(AskFailed{.server = 1, .failure = {}});
    EXPECT_THAT(feed.All<OpenStream>(), IsEmpty());
    if (feed.All<AskServer>().empty()) {
      ASSERT_TRUE(feed.WaitFor<AskServer>(absl::Seconds(10)).has_value());
    }
  }
}

TEST(StepScheduleTest, TheOnlyServerKeepsItsStreamEvenIfLate) {
  Scheduled feed({.silence_timeout = kNever});
  feed.Start(1, 100);
  feed.Arrive(0);
  EXPECT_EQ(feed.WaitFor<StopStream>(absl::Minutes(10)), std::nullopt);
}

TEST(StepScheduleTest, ALateStepThatIsWaitedForIsHedgedOnce) {
  Scheduled feed;
  feed.Start(2, 100);
  feed.Arrive(1);
  feed.Tell(StepWanted());
  const std::optional<absl::Duration> hedged = feed.WaitFor<OpenStream>(absl::Seconds(10));
  ASSERT_TRUE(hedged.has_value());
  EXPECT_LT(*hedged, absl::Seconds(0.7));
  const OpenStream hedge = feed.All<OpenStream>()[0];
  EXPECT_EQ(hedge.server, 1);
  EXPECT_EQ(hedge.first_step, 0);
  EXPECT_EQ(hedge.count, 1);
  ASSERT_EQ(feed.All<StepLate>().size(), 1u);
  EXPECT_EQ(feed.All<StepLate>()[0].server, 0);
  EXPECT_EQ(feed.All<StepLate>()[0].second, 1);
  feed.Arrive(hedge.lane);
  ASSERT_EQ(feed.All<DeliverStep>().size(), 1u);
  // Later server 0 sends the step, too. This copy is not delivered.
  feed.Tell(StepTaken());
  feed.Tell(StreamEnded{.lane = hedge.lane});
  EXPECT_EQ(feed.counts().hedges_won, 1);
  feed.Tell(StepArrived{.lane = 0});
  EXPECT_THAT(feed.All<DeliverStep>(), IsEmpty());
}

TEST(StepScheduleTest, AStepThatNobodyWaitsForIsNotHedged) {
  Scheduled feed({.silence_timeout = kNever});
  feed.Start(2, 100);
  feed.Arrive(1);
  while (feed.WaitFor<OpenStream>(absl::Milliseconds(900)).has_value()) {
    FAIL() << "a stream was opened";
  }
  EXPECT_EQ(feed.counts().hedges, 0);
}

TEST(StepScheduleTest, GivesUpOnceTheTrainerHasWaitedAsLongAsRetryFor) {
  Scheduled feed({.retry_for = absl::Seconds(30), .silence_timeout = kNever});
  feed.Start(1, 100);
  feed.Arrive(0);
  feed.Tell(StepTaken());
  // While the trainer does not wait for a step, the feed does not give up.
  EXPECT_EQ(feed.WaitFor<GiveUp>(absl::Hours(1)), std::nullopt);
  feed.Tell(StepWanted());
  EXPECT_EQ(feed.WaitFor<GiveUp>(absl::Hours(1)), absl::Seconds(30));
  EXPECT_EQ(feed.All<GiveUp>()[0].step, 1);
  EXPECT_EQ(feed.All<GiveUp>()[0].failure, std::nullopt);
}

TEST(StepScheduleTest, AServerThatTakesLongForItsFirstStepIsWaitedFor) {
  Scheduled feed({.connect_timeout = absl::Seconds(10),
                  .retry_for = absl::Minutes(2),
                  .silence_timeout = kNever});
  feed.Start(1, 100);
  feed.Tell(StepWanted());
  EXPECT_EQ(feed.WaitFor<GiveUp>(absl::Seconds(119)), std::nullopt);
  EXPECT_EQ(feed.WaitFor<GiveUp>(absl::Seconds(2)), absl::Seconds(1));
}

TEST(StepScheduleTest, GivesUpOnASilentFirstStepOnceConnectTimeoutHasPassed) {
  Scheduled feed({.connect_timeout = absl::Seconds(10),
                  .retry_for = absl::Minutes(2),
                  .silence_timeout = absl::Seconds(15)});
  feed.Start(1, 100);
  feed.Tell(StepWanted());
  // After 15 s of silence the stream counts as lost. By then the trainer has waited for longer than
  // connect_timeout, so the feed gives up.
  const std::optional<absl::Duration> gave_up = feed.WaitFor<GiveUp>(absl::Minutes(1));
  ASSERT_TRUE(gave_up.has_value());
  EXPECT_GE(*gave_up, absl::Seconds(15));
  EXPECT_LE(*gave_up, absl::Seconds(16));
}

TEST(StepScheduleTest, BytesWithoutAStepAreNoProgress) {
  Scheduled feed({.retry_for = absl::Seconds(30)});
  feed.Start(1, 100);
  feed.Arrive(0);
  feed.Tell(StepTaken());
  feed.Tell(StepWanted());
  absl::Duration waited;
  while (waited < absl::Minutes(5)) {
    feed.Tell(ChunkArrived{.lane = 0});
    const std::optional<absl::Duration> gave_up = feed.WaitFor<GiveUp>(absl::Seconds(2));
    waited += gave_up.value_or(absl::Seconds(2));
    if (gave_up.has_value()) break;
  }
  EXPECT_EQ(waited, absl::Seconds(30));
}

TEST(StepScheduleTest, TimeInWhichTheProcessDidNotRunDoesNotCount) {
  Scheduled feed({.retry_for = absl::Seconds(30)});
  feed.Start(2, 100);
  feed.Arrive(0);
  feed.Tell(StepTaken());
  feed.Tell(StepWanted());
  feed.Stop(absl::Hours(2));
  // Whichever event comes first after the stop, no step counts as late, no server counts as silent,
  // and the feed does not give up.
  feed.Tell(ChunkArrived{.lane = 0});
  feed.Tell(Tick());
  EXPECT_THAT(feed.All<GiveUp>(), IsEmpty());
  EXPECT_THAT(feed.All<StopStream>(), IsEmpty());
  EXPECT_THAT(feed.All<OpenStream>(), IsEmpty());
}

TEST(StepScheduleTest, AFullServerIsLeftAloneForAsLongAsItAsks) {
  Scheduled feed;
  feed.Start(1, 100);
  feed.Tell(StreamEnded{.lane = 0, .failure = Failure{.pushback = absl::Seconds(3)}});
  EXPECT_THAT(feed.All<AskServer>(), IsEmpty());
  const std::optional<absl::Duration> asked = feed.WaitFor<AskServer>(absl::Seconds(10));
  ASSERT_TRUE(asked.has_value());
  EXPECT_GE(*asked, absl::Seconds(3));
  EXPECT_LE(*asked, absl::Seconds(3) * 1.25);
}

TEST(StepScheduleTest, AServerThatFailsAgainAndAgainIsAskedLessOften) {
  Scheduled feed({.backoff = absl::Milliseconds(50), .max_backoff = absl::Milliseconds(300)});
  feed.Tell(ServerJoined{.server = 0});
  std::vector<int64_t> pauses;
  for (int i = 0; i < 6; ++i) {
    feed.Tell(AskFailed{.server = 0, .failure = {}});
    absl::Duration pause = absl::ZeroDuration();
    if (feed.All<AskServer>().empty()) pause = *feed.WaitFor<AskServer>(absl::Seconds(5));
    // In units of 50 ms, rounded down. Up to a quarter of a pause is random.
    pauses.push_back(pause / absl::Milliseconds(50));
  }
  EXPECT_THAT(pauses, ElementsAre(0, 1, testing::AnyOf(2), testing::AnyOf(4, 5),
                                  testing::AnyOf(6, 7), testing::AnyOf(6, 7)));
}

TEST(StepScheduleTest, StreamsThatBreakWithOneConnectionCountAsOneFailure) {
  Scheduled feed;
  feed.Start(2, 100);
  const Failure lost = {.kind = FailureKind::kLost};
  feed.Tell(StreamEnded{.lane = 1, .failure = lost});
  ASSERT_EQ(feed.All<OpenStream>().size(), 1u);
  ASSERT_EQ(feed.All<OpenStream>()[0].server, 0);  // Server 0 has both lanes now.
  feed.Tell(StreamEnded{.lane = 0, .failure = lost});
  ASSERT_THAT(feed.All<AskServer>(), SizeIs(1));  // Lane 1's stream has not ended yet.
  feed.Tell(StreamEnded{.lane = 1, .failure = lost});
  feed.Tell(Answered{.server = 0});
  EXPECT_THAT(feed.All<OpenStream>(), SizeIs(2));
}

TEST(StepScheduleTest, ManyFailuresDoNotOverflowThePause) {
  Scheduled feed({.backoff = absl::Hours(1), .max_backoff = absl::Hours(2)});
  feed.Tell(ServerJoined{.server = 0});
  for (int i = 0; i < 100; ++i) {
    feed.Tell(AskFailed{.server = 0, .failure = {}});
    if (!feed.All<AskServer>().empty()) continue;
    const auto pause = feed.WaitFor<AskServer>(absl::Hours(3));
    ASSERT_TRUE(pause.has_value());
    ASSERT_GE(*pause, absl::Hours(1));
  }
}

TEST(StepScheduleTest, SuspectAndDamagedStreamsAreRetriedOnlyAFewTimes) {
  for (const auto& [kind, most] : {std::pair(FailureKind::kSuspect, kMaxSuspectFailures),
                                   std::pair(FailureKind::kDamaged, kMaxDamagedFailures)}) {
    Scheduled feed;
    feed.Start(1, 100);
    for (int i = 1; i <= most; ++i) {
      feed.Tell(StreamEnded{.lane = 0, .failure = Failure{.kind = kind}});
      EXPECT_EQ(feed.All<GiveUp>().size(), i == most ? 1u : 0u);
      if (i == most) break;
      if (feed.All<AskServer>().empty()) {
        ASSERT_TRUE(feed.WaitFor<AskServer>(absl::Seconds(5)).has_value());
      }
      feed.Tell(Answered{.server = 0});
      ASSERT_EQ(feed.All<OpenStream>().size(), 1u);
    }
  }
}

// Two servers are restarted one after the other. Server 0 refuses all questions while it shuts
// down. It is still down when server 1 shuts down.
TEST(StepScheduleTest, AServerThatRefusesWhileItShutsDownIsAwaitedAfterwards) {
  for (const auto& [kind, most] : {std::pair(FailureKind::kSuspect, kMaxSuspectFailures),
                                   std::pair(FailureKind::kDamaged, kMaxDamagedFailures)}) {
    Scheduled feed;
    feed.Start(2, 100);
    const auto ask_fails = [&feed](int server, FailureKind failure) {
      while (feed.All<AskServer>().empty() || feed.All<AskServer>()[0].server != server) {
        ASSERT_TRUE(feed.WaitFor<AskServer>(absl::Seconds(60)).has_value());
      }
      feed.Tell(AskFailed{.server = server, .failure = {.kind = failure}});
      EXPECT_THAT(feed.All<GiveUp>(), IsEmpty());
    };
    feed.Tell(StreamEnded{.lane = 0, .failure = Failure{.kind = FailureKind::kLost}});
    for (int i = 0; i < most; ++i) ask_fails(0, kind);
    ask_fails(0, FailureKind::kLost);
    // Server 1 has both lanes now.
    feed.Tell(StreamEnded{.lane = 0, .failure = Failure{.kind = FailureKind::kLost}});
    feed.Tell(StreamEnded{.lane = 1, .failure = Failure{.kind = FailureKind::kLost}});
    ask_fails(0, FailureKind::kLost);
    ask_fails(0, kind);
    feed.WaitFor<AskServer>(absl::Seconds(60));
    feed.Tell(Answered{.server = 0});
    EXPECT_THAT(feed.All<OpenStream>(), SizeIs(2));
  }
}

TEST(StepScheduleTest, AServerThatRefusesAndIsGoneByTurnsIsGivenUpAfterRetryFor) {
  Scheduled feed({.retry_for = absl::Seconds(30),
                  .backoff = absl::Milliseconds(100),
                  .max_backoff = absl::Seconds(1)});
  feed.Start(1, 100);
  feed.Arrive(0);
  feed.Tell(StepTaken());
  feed.Tell(StepWanted());
  feed.Tell(StreamEnded{.lane = 0, .failure = Failure{.kind = FailureKind::kLost}});
  absl::Duration left = absl::Seconds(30) - absl::Microseconds(1);
  int refusals = 0;
  for (bool refuses = true;; refuses = !refuses) {
    if (feed.All<AskServer>().empty()) {
      const std::optional<absl::Duration> pause = feed.WaitFor<AskServer>(left);
      if (!pause.has_value()) break;
      left -= *pause;
    }
    const FailureKind kind = refuses ? FailureKind::kSuspect : FailureKind::kLost;
    feed.Tell(AskFailed{.server = 0, .failure = {.kind = kind}});
    ASSERT_THAT(feed.All<GiveUp>(), IsEmpty());
    if (refuses) ++refusals;
  }
  EXPECT_GT(refusals, kMaxSuspectFailures);
  EXPECT_EQ(feed.WaitFor<GiveUp>(absl::Seconds(1)), absl::Microseconds(1));
}

}  // namespace
}  // namespace systole
