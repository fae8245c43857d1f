// Runs feeds between a real server and a real client. In each feed, one bit of one message is
// flipped on the way. The trainer must still get the right bytes, and the client must count the
// damage.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "core/batch/slice_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/server.h"
#include "tests/client/feed/flipping_proxy.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/sanitizers.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::SizeIs;

class BitFlipTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("a-0.tfrecord", TestShards({12})[0]);
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a-*.tfrecord");
    ASSERT_THAT(catalogue, IsOk());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), ListenOn("127.0.0.1:0"));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  // Three steps of four examples on two cores. The output `x` can travel compactly, as uint8.
  static v1::FeedSpec Spec() {
    return SpecFromText(
        "dataset: 'test' seed: 3 shuffle { mode: GLOBAL } global_batch: 4 num_cores: 2 epochs: 1 "
        "outputs { name: 'id' feature: 'record_id' dtype: INT64 } "
        "outputs { name: 'x' feature: 'raw' shape: [2, 2, 3] transforms { decode_raw {} } "
        "  transforms { normalize { scale: 0.5 } } dtype: FLOAT32 }");
  }

  struct Taken {
    std::vector<std::string> digests;  // A digest of each slice, in order.
    absl::Status end;
    FeedClientStats stats;
  };

  Taken Take(const std::string& finish, const std::string& address) const {
    absl::StatusOr<std::unique_ptr<FeedClient>> client =
        FeedClient::Create(Spec(), {.servers = {address},
                                    .finish = finish,
                                    .connect_timeout = absl::FromChrono(kLongestWait),
                                    .retry_for = absl::FromChrono(kLongestWait),
                                    .backoff = absl::Milliseconds(1)});
    if (!client.ok()) return {.end = client.status()};
    Taken taken;
    while (true) {
      const absl::StatusOr<std::optional<Step>> step = (*client)->Next();
      taken.end = step.status();
      taken.stats = (*client)->stats();
      if (!step.ok() || !step->has_value()) return taken;
      for (int core = 0; core < 2; ++core) {
        taken.digests.push_back(SliceDigest((*step)->layout(), (*step)->slice(core)));
      }
    }
  }

  // For each bit of the `message`th message in `direction`, runs a feed in which this bit is
  // flipped. Under a sanitizer only every 7th bit is flipped. These bits still include each of the
  // 8 places in a byte, because 7 and 8 have no common factor. Feeds mostly wait, so four run at a
  // time. Returns the number of the message's bits. Under a sanitizer the number is rounded up to a
  // multiple of 7.
  int64_t FlipEachBit(const std::string& finish, Direction direction, int64_t message,
                      int64_t FeedClientStats::*counter) {
    const Taken whole = Take(finish, server_->address());
    EXPECT_THAT(whole.end, IsOk());
    EXPECT_THAT(whole.digests, SizeIs(6));
    std::atomic<int64_t> next = 0;
    std::atomic<int64_t> bits = std::numeric_limits<int64_t>::max();
    const auto flip = [&] {
      while (bits == std::numeric_limits<int64_t>::max()) {
        const int64_t bit = next.fetch_add(kSanitized ? 7 : 1);
        FlippingProxy proxy(server_->port());
        proxy.Arm(direction, message, bit);
        const Taken taken = Take(finish, proxy.address());
        EXPECT_THAT(taken.end, IsOk()) << "bit " << bit;
        EXPECT_EQ(taken.digests, whole.digests) << "bit " << bit;
        EXPECT_EQ(taken.stats.*counter, proxy.flipped() ? 1 : 0) << "bit " << bit;
        EXPECT_EQ(taken.stats.streams_lost, proxy.flipped() ? 1 : 0) << "bit " << bit;
        if (!proxy.flipped() || HasFailure()) bits = std::min(bits.load(), bit);
      }
    };
    {
      std::vector<std::jthread> feeds;
      for (int i = 0; i < 4; ++i) feeds.emplace_back(flip);
    }
    return bits;
  }

  const TempFolder folder_;
  std::unique_ptr<Server> server_;
};

TEST_F(BitFlipTest, FeedSurvivesEveryBitFlipInTheResolveFeedRequest) {
  EXPECT_GT(FlipEachBit("server", Direction::kToServer, 0, &FeedClientStats::damaged_requests),
            8 * 60);
}

TEST_F(BitFlipTest, FeedSurvivesEveryBitFlipInTheStreamStepsRequest) {
  EXPECT_GT(FlipEachBit("server", Direction::kToServer, 1, &FeedClientStats::damaged_requests),
            8 * 100);
}

TEST_F(BitFlipTest, FeedSurvivesEveryBitFlipInACompactStreamStepsRequest) {
  EXPECT_GT(FlipEachBit("client", Direction::kToServer, 1, &FeedClientStats::damaged_requests),
            8 * 100);
}

TEST_F(BitFlipTest, FeedSurvivesEveryBitFlipInTheResolveFeedAnswer) {
  for (const char* const finish : {"server", "client"}) {
    EXPECT_GT(FlipEachBit(finish, Direction::kToClient, 0, &FeedClientStats::damaged_answers),
              8 * 100);
  }
}

TEST_F(BitFlipTest, FeedSurvivesEveryBitFlipInTheFirstChunks) {
  // These are the three tensors of core 0.
  for (const int64_t chunk : {1, 2, 3}) {
    EXPECT_GT(FlipEachBit("server", Direction::kToClient, chunk, &FeedClientStats::damaged_chunks),
              8 * 10)
        << chunk;
  }
}

}  // namespace
}  // namespace systole
