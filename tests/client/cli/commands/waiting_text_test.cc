#include "client/cli/commands/waiting_text.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

FeedWaiting Lost(const std::string& lost, const std::string& asking, int seconds) {
  return {.lost = lost,
          .asking = asking,
          .waited = absl::Seconds(seconds),
          .limit = absl::Seconds(600),
          .started = true};
}

TEST(WaitingTextTest, NamesTheServerThatWasLostAndTheOneThatIsAsked) {
  EXPECT_EQ(WaitingText(Lost("A:1", "B:2", 12)), "server A:1 lost, asking B:2 (12 s)");
  EXPECT_EQ(WaitingText(Lost("A:1", "A:1", 12)), "server A:1 lost, asking it again (12 s)");
}

TEST(WaitingTextTest, BeforeTheFirstStepAServerIsUnreachableRatherThanLost) {
  FeedWaiting waiting = Lost("127.0.0.1:1", "127.0.0.1:1", 3);
  waiting.started = false;
  waiting.limit = absl::Seconds(10);
  EXPECT_EQ(WaitingText(waiting), "cannot reach 127.0.0.1:1 (3 s of 10 s)");
  waiting.asking = "B:2";
  EXPECT_EQ(WaitingText(waiting), "cannot reach 127.0.0.1:1, asking B:2 (3 s of 10 s)");
}

TEST(WaitingTextTest, ASilentServerIsNotLostYet) {
  FeedWaiting waiting = Lost("", "A:1", 7);
  waiting.limit = absl::Seconds(60);
  EXPECT_EQ(WaitingText(waiting), "no answer from A:1 (7 s of 60 s)");
}

TEST(WaitingTextTest, ShortWaitsAreNotReported) {
  EXPECT_EQ(WaitingText(std::nullopt), "");
  EXPECT_EQ(WaitingText(Lost("A:1", "B:2", 0)), "");
  EXPECT_EQ(WaitingText(Lost("", "A:1", 4)), "");
}

TEST(WaitingTextTest, ControlCharactersInAnAddressAreEscaped) {
  EXPECT_EQ(WaitingText(Lost("unix:/a\x1b[2J\n", "B:2", 2)),
            "server unix:/a\\x1b[2J\\n lost, asking B:2 (2 s)");
}

}  // namespace
}  // namespace systole
