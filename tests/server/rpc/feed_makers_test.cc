#include "server/rpc/feed_makers.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/concurrency/bounded_queue.h"
#include "core/concurrency/mutex.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rpc/served_feeds.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Made = FeedMakers::Made;

// Asks for feeds. Notes which feeds the makers begin, and how each request ends.
class FeedMakersTest : public testing::Test {
 protected:
  struct Asked {
    std::atomic<bool> ended = false;
    Made made = absl::UnknownError("not ended");
  };

  // Asks for a feed. A maker works on it until Finish(key), or until it is interrupted.
  std::shared_ptr<Asked> Ask(const std::string& peer, const std::string& key,
                             const std::vector<uint64_t>& datasets = {}) {
    const auto asked = std::make_shared<Asked>();
    makers_.Add({.key = key,
                 .datasets = datasets,
                 .make = [this, key]() -> Made {
                   {
                     MutexLock lock(mu_);
                     begun_.push_back(key);
                   }
                   EXPECT_TRUE(WaitUntil([&] { return InterruptRequested() || IsFinished(key); }));
                   if (!IsFinished(key)) return InterruptedError();
                   return std::make_shared<const ServedFeed>();
                 }},
                {.id = asked.get(), .peer = peer, .done = [asked](Made made) {
                   asked->made = std::move(made);
                   EXPECT_FALSE(asked->ended.exchange(true));
                 }});
    return asked;
  }

  void Finish(const std::string& key) {
    MutexLock lock(mu_);
    finished_.push_back(key);
  }
  bool IsFinished(const std::string& key) {
    MutexLock lock(mu_);
    return std::find(finished_.begin(), finished_.end(), key) != finished_.end();
  }
  std::vector<std::string> begun() {
    MutexLock lock(mu_);
    return begun_;
  }
  testing::AssertionResult Begins(size_t count) {
    return WaitUntil([&] { return begun().size() >= count; });
  }
  static Made EndOf(const std::shared_ptr<Asked>& asked) {
    EXPECT_TRUE(WaitUntil([&] { return asked->ended.load(); }));
    return asked->made;
  }

  Mutex mu_;
  std::vector<std::string> begun_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> finished_ ABSL_GUARDED_BY(mu_);
  FeedMakers makers_;  // Last: its threads use the members above.
};

TEST_F(FeedMakersTest, ASlowFeedDelaysOnlyItsOwnPeer) {
  const auto slow = Ask("a", "a1");
  const auto next = Ask("a", "a2");
  ASSERT_TRUE(Begins(1));
  for (const char* const key : {"b1", "b2", "b3"}) Finish(key);
  EXPECT_THAT(EndOf(Ask("b", "b1")), IsOk());
  EXPECT_THAT(EndOf(Ask("c", "b2")), IsOk());
  EXPECT_THAT(EndOf(Ask("b", "b3")), IsOk());
  EXPECT_THAT(begun(), ElementsAre("a1", "b1", "b2", "b3"));
  EXPECT_FALSE(next->ended);
  Finish("a1");
  Finish("a2");
  EXPECT_THAT(EndOf(slow), IsOk());
  EXPECT_THAT(EndOf(next), IsOk());
}

TEST_F(FeedMakersTest, PeersTakeTurnsHoweverManyFeedsEachWants) {
  // These two feeds keep both makers busy, so all later requests wait in line.
  const auto x = Ask("x", "x");
  ASSERT_TRUE(Begins(1));
  const auto y = Ask("y", "y");
  ASSERT_TRUE(Begins(2));
  std::vector<std::shared_ptr<Asked>> asked;
  for (const char* const key : {"a1", "a2", "a3"}) asked.push_back(Ask("a", key));
  for (const char* const key : {"b1", "b2"}) asked.push_back(Ask("b", key));
  // "c" asks for "a3", as "a" did before. The turn of "c" comes before the third turn of "a", so
  // "a3" is made in the turn of "c".
  asked.push_back(Ask("c", "a3"));
  for (const char* const key : {"a1", "a2", "a3", "b1", "b2"}) Finish(key);
  Finish("x");  // One maker is free now. The other is still busy with "y".
  for (const auto& one : asked) EXPECT_THAT(EndOf(one), IsOk());
  EXPECT_THAT(begun(), ElementsAre("x", "y", "a1", "a3", "b1", "a2", "b2"));
  Finish("y");
  EXPECT_THAT(EndOf(x), IsOk());
  EXPECT_THAT(EndOf(y), IsOk());
}

TEST_F(FeedMakersTest, AHangingDatasetDelaysOnlyFeedsThatReadIt) {
  const auto hung = Ask("a", "a hung", {1});
  ASSERT_TRUE(Begins(1));
  const auto behind = Ask("b", "b hung", {1, 2});
  Finish("c");
  EXPECT_THAT(EndOf(Ask("c", "c", {3})), IsOk());
  // "a" gets no second feed until its first feed counts as slow.
  Finish("a");
  const auto own = Ask("a", "a", {3});
  for (int i = 1; i < FeedMakers::kSlowTicks; ++i) makers_.Tick();
  EXPECT_FALSE(own->ended);
  makers_.Tick();
  EXPECT_THAT(EndOf(own), IsOk());
  // The feed "b hung" waits for dataset 1 and takes no maker. "b hung" also reads dataset 2, but
  // does not delay other feeds that read dataset 2.
  for (const char* const key : {"b", "d"}) Finish(key);
  EXPECT_THAT(EndOf(Ask("b", "b", {2})), IsOk());
  EXPECT_THAT(EndOf(Ask("d", "d", {2})), IsOk());
  EXPECT_FALSE(behind->ended);
  EXPECT_THAT(begun(), ElementsAre("a hung", "c", "a", "b", "d"));
  for (const char* const key : {"a hung", "b hung"}) Finish(key);
  EXPECT_THAT(EndOf(hung), IsOk());
  EXPECT_THAT(EndOf(behind), IsOk());
}

TEST_F(FeedMakersTest, FeedsAreStillMadeAfterAllMakersHang) {
  std::vector<std::shared_ptr<Asked>> hung;
  for (uint64_t i = 0; i < FeedMakers::kMakers; ++i) {
    hung.push_back(Ask(absl::StrCat("peer ", i), absl::StrCat("hung ", i), {i}));
    ASSERT_TRUE(Begins(i + 1));
  }
  const auto healthy = Ask("b", "b", {9});
  Finish("b");
  EXPECT_FALSE(healthy->ended);
  for (int i = 0; i < FeedMakers::kSlowTicks; ++i) makers_.Tick();
  EXPECT_THAT(EndOf(healthy), IsOk());
}

TEST_F(FeedMakersTest, APeersSlowFeedsLeaveRoomForAnotherPeer) {
  std::vector<std::shared_ptr<Asked>> hung;
  for (uint64_t i = 0; i < 10; ++i) {
    hung.push_back(Ask("a", absl::StrCat("hung ", i), {i}));
  }
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(Begins(i));
    for (int tick = 0; tick < FeedMakers::kSlowTicks; ++tick) makers_.Tick();
  }
  ASSERT_TRUE(Begins(4));
  for (int tick = 0; tick < 5 * FeedMakers::kSlowTicks; ++tick) makers_.Tick();
  Finish("b");
  EXPECT_THAT(EndOf(Ask("b", "b", {20})), IsOk());
  EXPECT_THAT(begun(), ElementsAre("hung 0", "hung 1", "hung 2", "hung 3", "b"));
}

TEST_F(FeedMakersTest, AFeedOfSeveralDatasetsIsNotStarvedByALaterFeed) {
  const auto first = Ask("a", "1", {1});
  ASSERT_TRUE(Begins(1));
  const auto both = Ask("b", "1 and 2", {1, 2});
  const auto second = Ask("c", "2", {2});
  for (const char* const key : {"1", "1 and 2", "2"}) Finish(key);
  for (const auto& asked : {first, both, second}) EXPECT_THAT(EndOf(asked), IsOk());
  EXPECT_THAT(begun(), ElementsAre("1", "1 and 2", "2"));
}

TEST_F(FeedMakersTest, RequestsForTheSameFeedShareOneMakingEvenIfOneLeaves) {
  const auto first = Ask("a", "feed");
  ASSERT_TRUE(Begins(1));
  const auto second = Ask("b", "feed");
  makers_.Withdraw(first.get());
  EXPECT_THAT(EndOf(first), StatusIs(absl::StatusCode::kCancelled, HasSubstr("client is gone")));
  for (int i = 0; i < 2 * FeedMakers::kUnwantedTicks; ++i) makers_.Tick();
  EXPECT_FALSE(second->ended);
  Finish("feed");
  EXPECT_THAT(EndOf(second), IsOk());
  EXPECT_THAT(begun(), SizeIs(1));
}

TEST_F(FeedMakersTest, AFeedThatNobodyWantsIsGivenUpUnlessItsClientComesBackSoon) {
  const auto gone = Ask("a", "1");
  ASSERT_TRUE(Begins(1));
  const auto in_line = Ask("a", "2");
  makers_.Withdraw(in_line.get());  // This feed never begins.
  makers_.Withdraw(gone.get());
  for (int i = 1; i < FeedMakers::kUnwantedTicks; ++i) makers_.Tick();
  const auto back = Ask("a", "1");
  for (int i = 0; i < FeedMakers::kUnwantedTicks; ++i) makers_.Tick();
  makers_.Withdraw(back.get());
  for (int i = 0; i < FeedMakers::kUnwantedTicks; ++i) makers_.Tick();
  // The maker is free again, and makes the feed anew.
  const auto anew = Ask("a", "1");
  ASSERT_TRUE(Begins(2));
  Finish("1");
  EXPECT_THAT(EndOf(anew), IsOk());
  EXPECT_THAT(begun(), ElementsAre("1", "1"));
}

TEST_F(FeedMakersTest, APeerMayQueueNoMoreRequestsThanPlacesStayFree) {
  std::vector<std::shared_ptr<Asked>> asked;
  for (int i = 0; i < 33; ++i) asked.push_back(Ask("a", absl::StrCat("a", i)));
  EXPECT_THAT(asked.back()->made, StatusIs(absl::StatusCode::kUnavailable,
                                           HasSubstr("32 requests wait for feeds with a `where`, "
                                                     "32 of them from you")));
  const auto other = Ask("b", "b");
  EXPECT_FALSE(other->ended);
  makers_.Withdraw(asked[5].get());
  makers_.Withdraw(asked[6].get());
  EXPECT_FALSE(Ask("a", "one more")->ended);
}

TEST_F(FeedMakersTest, StopEndsAllRequestsAndRefusesNewRequests) {
  const auto in_making = Ask("a", "1");
  ASSERT_TRUE(Begins(1));
  const auto in_line = Ask("a", "2");
  makers_.Stop(absl::UnavailableError("draining"));
  for (const auto& asked : {in_making, in_line, Ask("b", "3")}) {
    EXPECT_TRUE(asked->ended);
    EXPECT_THAT(asked->made, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("draining")));
  }
  EXPECT_THAT(begun(), SizeIs(1));
}

TEST_F(FeedMakersTest, StopWaitsPatientlyForWorkThatEnds) {
  const auto in_making = Ask("a", "1");
  ASSERT_TRUE(Begins(1));
  EXPECT_TRUE(makers_.Stop(absl::UnavailableError("draining"), absl::FromChrono(kLongestWait)));
}

TEST_F(FeedMakersTest, StopDoesNotWaitForAReadThatHangs) {
  BoundedQueue<int> hangs(1);
  BoundedQueue<int> begins(1);
  makers_.Add({.key = "hung",
               .datasets = {},
               .make = [&]() -> Made {
                 EXPECT_THAT(begins.Push(1), IsOk());
                 EXPECT_THAT(hangs.Pop(), IsOk());
                 return InterruptedError();
               }},
              {.id = &hangs, .peer = "a", .done = [](const Made&) {}});
  EXPECT_THAT(begins.Pop(), IsOk());
  const auto stop = [&] { return makers_.Stop(absl::UnavailableError("draining")); };
  EXPECT_FALSE(stop());
  EXPECT_THAT(hangs.Push(1), IsOk());
  EXPECT_TRUE(WaitUntil(stop));
}

}  // namespace
}  // namespace systole
