// Shards that change, vanish, cannot be read or do not answer while they are served.
#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/descriptor/owned_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/chaos_feed.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class StorageTest : public ChaosTest {
 protected:
  // Starts a server with shards of its own and a dataset "other", to which nothing happens.
  void SetUp() override {
    ChaosTest::SetUp();
    other_.Write("raw-0.tfrecord", RawShard(0, 64, kChaosRecordBytes));
    orders_ = folder_ / "orders";
    Order("work normally");
    AddServer(
        {"--dataset", absl::StrCat("other=", other_ / "raw-*.tfrecord"), "--read-timeout", "1"},
        {.environment = {absl::StrCat("LD_PRELOAD=", SYSTOLE_STORAGE_SHIM),
                         absl::StrCat("SYSTOLE_SHIM=", orders_)}});
    other_spec_ = folder_.Write("other.textproto", ChaosSpec("other"));
  }

  // Tells the shim what to do from now on.
  void Order(const std::string& order) {
    if (!gate_.ok())
      gate_ = OwnedFd(::open(folder_.Write("orders.gate", "").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(gate_.get(), LOCK_EX), 0);
    // The file is renamed into place, so nobody reads half an order.
    const std::string draft = folder_.Write("draft", order);
    std::filesystem::rename(draft, orders_);
    if (order.find("hang") != std::string::npos) return;
    ASSERT_EQ(::flock(gate_.get(), LOCK_UN), 0);
  }

  // Expects that a feed of the other dataset gives all slices of its first 5 steps.
  void ExpectOtherUnharmed() {
    const Finished finished = RunSystole(
        {"feed", "--server", Servers(), "--spec", other_spec_, "--digest", "--steps", "5"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(Lines(finished.out).size(), 40u);
  }

  // Starts a feed, calls `happens` in mid-stream to break something, and waits until the feed ends.
  Finished Broken(const std::function<void()>& happens) {
    std::string printed;
    const auto feed = FeedInMidStream(100'000'000, printed, {"--retry-for", "10"});
    EXPECT_NE(printed, "");
    happens();
    return feed->Wait();
  }

  const TempFolder other_;
  std::string orders_;
  OwnedFd gate_;  // Locked while reads are to hang.
  std::string other_spec_;
};

TEST_F(StorageTest, AShardThatGrowsEndsTheFeedWithAnErrorThatNamesTheShard) {
  const Finished finished =
      Broken([&] { std::ofstream(folder_ / "raw-1.tfrecord", std::ios::app) << "more"; });
  EXPECT_NE(finished.exit_code, 0);
  // The kernel sets the file's time before its size. If the server looks at the file in between,
  // it reports a rewritten file.
  EXPECT_THAT(finished.err, AllOf(HasSubstr("raw-1.tfrecord"),
                                  AnyOf(HasSubstr("was resized"), HasSubstr("was rewritten"))));
  ExpectOtherUnharmed();
}

TEST_F(StorageTest, AShardThatIsCutEndsTheFeedAndSaysSo) {
  const Finished finished =
      Broken([&] { std::filesystem::resize_file(folder_ / "raw-1.tfrecord", 100'000); });
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("raw-1.tfrecord"));
  ExpectOtherUnharmed();
}

TEST_F(StorageTest, AShardThatIsDeletedEndsTheFeedAndSaysSo) {
  const Finished finished = Broken([&] { std::filesystem::remove(folder_ / "raw-1.tfrecord"); });
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("raw-1.tfrecord"));
  ExpectOtherUnharmed();
}

TEST_F(StorageTest, AShardThatCannotBeReadEndsTheFeedAndIsNotMasked) {
  const Finished finished = Broken([&] { Order("eio raw-1"); });
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("raw-1.tfrecord"), HasSubstr("Input/output error")));
  ExpectOtherUnharmed();
}

TEST_F(StorageTest, AShardThatDoesNotAnswerFailsTheFeedAndNoOther) {
  const Finished finished = Broken([&] { Order(absl::StrCat("hang ", folder_ / "raw")); });
  EXPECT_NE(finished.exit_code, 0);
  EXPECT_THAT(finished.err, HasSubstr("has not returned for 1s"));
  ExpectOtherUnharmed();
  // When the storage answers again, a new feed is served.
  Order("work normally");
  const auto feed = StartFeed(20);
  ExpectUndisturbed(*feed, 20);
}

TEST_F(StorageTest, AServerWhoseStorageDoesNotAnswerIsReplacedByAnother) {
  AddServer();
  SetAll({.bytes_per_second = 60 << 20});
  const int steps = Times(200, 600);
  std::string printed;
  const auto feed = FeedInMidStream(steps, printed);
  Order(absl::StrCat("hang ", folder_ / "raw"));
  ExpectUndisturbed(*feed, steps, printed);
  // A hanging read does not keep the server from ending.
  server(0).Signal(SIGTERM);
  EXPECT_EQ(server(0).Wait().exit_code, 0);
}

}  // namespace
}  // namespace systole
