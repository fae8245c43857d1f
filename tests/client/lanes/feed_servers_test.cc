// Which servers a feed knows. The calls to servers are tested in tests/client/feed.
#include "client/lanes/feed_servers.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// "+2" means that server 2 joined, "-0" that server 0 left.
std::vector<std::string> Changes(const std::vector<ScheduleEvent>& events) {
  std::vector<std::string> changes;
  for (const ScheduleEvent& event : events) {
    if (const auto* const joined = std::get_if<ServerJoined>(&event)) {
      changes.push_back(absl::StrCat("+", joined->server));
    } else {
      changes.push_back(absl::StrCat("-", std::get<ServerLeft>(event).server));
    }
  }
  return changes;
}

class FeedServersTest : public testing::Test {
 protected:
  const v1::FeedSpec spec_;
  const FeedClientOptions options_ = {};
  FeedLog log_{/*wanted=*/true, spec_};
  FeedClientStats stats_;
  // No test here asks a server anything, so the client opens no connection and needs no keys.
  FeedServers servers_{spec_,        options_, std::make_shared<const ChannelSecurity>(),
                       /*client=*/7, log_,     stats_};
};

TEST_F(FeedServersTest, JoinsComeBeforeLeavesAndServerNumbersAreNeverReused) {
  EXPECT_THAT(Changes(servers_.SetAddresses({"a:1", "b:1"}, false)),
              UnorderedElementsAre("+0", "+1"));
  EXPECT_THAT(Changes(servers_.SetAddresses({"b:1", "a:1"}, false)), IsEmpty());
  EXPECT_THAT(Changes(servers_.SetAddresses({"b:1", "c:1"}, false)), ElementsAre("+2", "-0"));
  // a:1 may come back while the feed still remembers its old number. Even then a:1 gets a new
  // number, because another server may now have this address.
  EXPECT_THAT(Changes(servers_.SetAddresses({"a:1", "b:1", "c:1"}, false)), ElementsAre("+3"));
  EXPECT_EQ(servers_.Forget(0), nullptr);
  EXPECT_EQ(servers_.AddressOf(0), "(no longer in the list)");
  EXPECT_EQ(servers_.AddressOf(3), "a:1");
  EXPECT_TRUE(servers_.idle());
}

TEST_F(FeedServersTest, DifferentClientsRankServersDifferently) {
  std::vector<std::string> addresses;
  for (int i = 0; i < 100; ++i) addresses.push_back(absl::StrCat("server-", i, ":1"));
  FeedServers others(spec_, options_, std::make_shared<const ChannelSecurity>(), /*client=*/8, log_,
                     stats_);
  const std::vector<ScheduleEvent> events = servers_.SetAddresses(addresses, false);
  ASSERT_EQ(events.size(), addresses.size());
  EXPECT_NE(Changes(events), Changes(others.SetAddresses(addresses, false)));
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_LT(std::get<ServerJoined>(events[i - 1]).rank, std::get<ServerJoined>(events[i]).rank);
  }
}

TEST_F(FeedServersTest, AServerThatWasNotAskedHasNoLinkAndIsOnlyCountedInTheError) {
  servers_.SetAddresses({"a:1", "b:1", "c:1"}, false);
  servers_.Ask(1, [](absl::Status) {});
  EXPECT_EQ(servers_.Release(0), nullptr);
  EXPECT_EQ(servers_.Release(2), nullptr);
  EXPECT_EQ(servers_.LinkOf(1).address(), "b:1");
  EXPECT_THAT(servers_.Unreachable("no step came"),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("no step came: b:1: no answer; 2 more servers were not asked. ")));
}

TEST_F(FeedServersTest, TheLogIsToldOfNewcomersOfAFeedThatRuns) {
  servers_.SetAddresses({"a:1"}, /*running=*/false);
  EXPECT_TRUE(log_.empty());
  servers_.SetAddresses({"b:1"}, /*running=*/true);
  std::vector<std::string> lines;
  for (const LogLine& line : log_.Take()) lines.push_back(line.text);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("b:1"), HasSubstr("a:1")));
}

TEST_F(FeedServersTest, ALostStreamCountsAndIsTheServersLastError) {
  servers_.SetAddresses({"a:1"}, false);
  servers_.StreamLost(
      0, 7, {.failure = {.kind = FailureKind::kLost}, .status = absl::UnavailableError("torn")});
  EXPECT_EQ(stats_.streams_lost, 1);
  EXPECT_EQ(servers_.LastErrorOf(0).message(), "torn");
  EXPECT_FALSE(log_.empty());
  EXPECT_THAT(servers_.Unreachable("no step came"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no step came: a:1: torn")));
  // An error that ends the feed is returned by the feed, and not logged.
  log_.Take();
  servers_.StreamLost(
      0, 7,
      {.failure = {.kind = FailureKind::kFinal}, .status = absl::NotFoundError("no dataset")});
  EXPECT_EQ(stats_.streams_lost, 2);
  EXPECT_TRUE(log_.empty());
}

}  // namespace
}  // namespace systole
