// A hostile server sends random values that no honest server sends, in several places at once. In
// half of the feeds it runs beside an honest server. The client must end in time, its error must be
// printable, and the steps that it hands out must be right.
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "core/checksum/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/client/feed/hostile_values.h"

namespace systole {
namespace {

// The behaviour of a hostile server, drawn from a seed.
class HostileMood {
 public:
  HostileMood(uint64_t seed, const v1::ResolveFeedResponse& honest_answer) : random_(seed) {
    feed_.num_cores = 1 << Draw(3);
    feed_.per_core_batch = 1 + Draw(4);
    feed_.example_bytes = 1 + Draw(300);
    feed_.chunk_bytes = 40 + Draw(300);
    if (Draw(4) == 0) of_answer_ = AnyOf(MutationsOf(honest_answer));
    chunks_per_harm_ = 1 + Draw(60);
  }

  // The behaviour of an honest server of the same feed.
  const FakeFeed& honest() const { return feed_; }
  // The behaviour of the hostile server. The result borrows this object.
  FakeFeed hostile() {
    FakeFeed feed = feed_;
    feed.resolve = [this](v1::ResolveFeedResponse& answer) {
      if (of_answer_.has_value()) of_answer_->apply(answer);
      return absl::OkStatus();
    };
    feed.spoil = [this](int, int, FakeChunk& piece) {
      MutexLock lock(mu_);
      if (Draw(chunks_per_harm_) == 0) Spoil(piece);
    };
    return feed;
  }

 private:
  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  Mutation AnyOf(const std::vector<Mutation>& mutations) {
    return mutations[static_cast<size_t>(Draw(static_cast<int>(mutations.size())))];
  }

  void Spoil(FakeChunk& piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    switch (Draw(6)) {
      case 0:
        piece.end = absl::Status(static_cast<absl::StatusCode>(1 + Draw(16)), "\x1b[2Jno\nmore");
        break;
      case 1:
        piece.skip = true;
        break;
      case 2:
        piece.hang = Draw(4) == 0;
        break;
      case 3:
        if (!piece.data.empty()) {
          piece.data[static_cast<size_t>(Draw(static_cast<int>(piece.data.size())))] ^= 1
                                                                                        << Draw(8);
        }
        break;
      default: {
        v1::Chunk example;
        const Mutation mutation = AnyOf(MutationsOf(example));
        const bool with_right_checksum = Draw(2) == 0;
        piece.alter = [mutation, with_right_checksum](v1::Chunk& message) {
          mutation.apply(message);
          if (!with_right_checksum) return;
          const std::string data = message.data();
          message.clear_data();
          message.clear_header_crc32c();
          message.set_header_crc32c(Crc32c(message.SerializeAsString()));
          message.set_data(data);
        };
      }
    }
  }

  FakeFeed feed_;
  std::optional<Mutation> of_answer_;
  int chunks_per_harm_ = 1;
  Mutex mu_;
  std::mt19937_64 random_;
};

TEST(HostileServerTest, RandomHostileAnswersNeverYieldWrongStepsOrUnprintableErrors) {
  v1::ResolveFeedResponse honest_answer;
  {
    const FakeServer server({.resolve = [&](v1::ResolveFeedResponse& answer) {
      honest_answer = answer;
      return absl::OkStatus();
    }});
    ASSERT_NE(MustCreate({}, Quick({server.address()})), nullptr);
  }
  int good_ends = 0;
  int bad_ends = 0;
  for (int i = 0; i < Times(120, 600); ++i) {
    const uint64_t seed = ChaosSeed() + static_cast<uint64_t>(i);
    SCOPED_TRACE(absl::StrCat("repeat the test with SYSTOLE_CHAOS_SEED=", seed));
    HostileMood mood(seed, honest_answer);
    const FakeServer hostile(mood.hostile());
    const FakeServer honest(mood.honest());
    FeedClientOptions options = Quick({hostile.address()});
    if (i % 2 == 0) options.servers.push_back(honest.address());
    // Whether the feed succeeds is random and depends on the machine. The checks below hold for
    // feeds that fail, too.
    options.connect_timeout = options.retry_for = absl::Milliseconds(500);
    options.silence_timeout = absl::Milliseconds(200);
    options.max_step_bytes = options.prefetch_bytes = 1 << 20;
    const absl::StatusOr<std::unique_ptr<FeedClient>> client =
        FeedClient::Create(SpecOf(mood.honest()), options);
    absl::Status end = client.status();
    if (client.ok()) {
      const DrainedFeed drained = Drain(**client);
      end = drained.end;
      EXPECT_EQ(drained.wrong, "");
      EXPECT_EQ(drained.steps, Range(0, static_cast<int64_t>(drained.steps.size())));
      if (end.ok()) {
        EXPECT_EQ(drained.steps.size(), 20u);
      }
    }
    EXPECT_TRUE(IsFitToPrint(end.message())) << end;
    ++(end.ok() ? good_ends : bad_ends);
    if (HasFailure()) return;
  }
  EXPECT_GT(good_ends, 0);
  EXPECT_GT(bad_ends, 0);
}

}  // namespace
}  // namespace systole
