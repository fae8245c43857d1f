#include "server/rpc/served_feeds.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/concurrency/bounded_queue.h"
#include "core/log/event_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/config.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ServedFeedsTest : public testing::Test {
 protected:
  // A catalogue of two datasets with the same shard: `far` on a web server, and `near` as a file.
  Catalogue Open() {
    const std::string shard = TestShards({40})[0];
    v1::ServerConfig config;
    v1::DatasetConfig& far = *config.add_datasets();
    far.set_name("far");
    far.add_shards(objects_.Put("/d/a.tfrecord", shard) + "?sig=SECRET");
    v1::DatasetConfig& near = *config.add_datasets();
    near.set_name("near");
    near.add_shards(folder_.Write("a.tfrecord", shard));
    absl::StatusOr<Catalogue> catalogue = Catalogue::Open(config, {.index_use = IndexUse::kIgnore});
    EXPECT_THAT(catalogue, IsOk());
    return *std::move(catalogue);
  }

  static v1::FeedSpec Spec(const std::string& dataset, int seed = 1) {
    return SpecFromText(absl::StrCat("dataset: '", dataset, "' seed: ", seed,
                                     " global_batch: 8 shuffle { mode: GLOBAL } "
                                     "outputs { name: 'label' feature: 'label' }"));
  }

  // The spec of a feed of those records of `near` whose weight is not `excluded`.
  static v1::FeedSpec WhereSpec(int excluded, int seed = 1) {
    v1::FeedSpec spec = Spec("near", seed);
    spec.set_tail(v1::PAD);
    v1::Where& where = *spec.add_select()->mutable_where();
    where.set_feature("weight");
    where.add_not_in(excluded);
    return spec;
  }
  static FeedMakers::Made Resolve(ServedFeeds& feeds, const v1::FeedSpec& spec,
                                  const std::string& peer) {
    BoundedQueue<FeedMakers::Made> made(1);
    feeds.Resolve(spec, Everything,
                  {.id = &made, .peer = peer, .done = [&made](FeedMakers::Made feed) {
                     EXPECT_THAT(made.Push(std::move(feed)), IsOk());
                   }});
    return **made.Pop();
  }
  static FeedMakers::Made Find(ServedFeeds& feeds, const v1::FeedSpec& spec) {
    return feeds.Find(spec, Everything);
  }
  static bool Everything(absl::string_view /*name*/) { return true; }

  const TempFolder folder_;
  StubObjects objects_;
  std::vector<std::string> lines_;
  EventLog events_{[this](LogLevel, const std::string& line) { lines_.push_back(line); }};
};

TEST_F(ServedFeedsTest, TheFetchesOfARemoteFeedAreLoggedOncePerPlan) {
  const Catalogue catalogue = Open();
  ServedFeeds feeds(catalogue, {}, events_);
  const auto first = Find(feeds, Spec("far"));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(lines_,
              ElementsAre(AllOf(HasSubstr("over dataset 'far': the first epoch fetches "),
                                HasSubstr(", all of the set, in about 40 requests"),
                                HasSubstr("GLOBAL fetches record by record; `shuffle { mode: "
                                          "WINDOW block_records: 40 window_records: 40 }` fetches"),
                                Not(HasSubstr("SECRET")))));
  for (int i = 0; i < 3; ++i) {
    const auto again = Find(feeds, Spec("far"));
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(*again, *first);
  }
  EXPECT_EQ(lines_.size(), 1);
  ASSERT_THAT(Find(feeds, Spec("far", 2)), IsOk());
  EXPECT_EQ(lines_.size(), 2);
}

TEST_F(ServedFeedsTest, NoOtherShuffleIsProposedIfTheCacheHoldsTheWholeSet) {
  const Catalogue catalogue = Open();
  ServedFeeds feeds(catalogue, {.memory_bytes = 1 << 20}, events_);
  ASSERT_THAT(Find(feeds, Spec("far")), IsOk());
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("each later one 0 bytes: the whole set is kept"),
                                        Not(HasSubstr("WINDOW")))));
}

TEST_F(ServedFeedsTest, FeedsOverLocalShardsAndRefusedSpecsAreNotLogged) {
  const Catalogue catalogue = Open();
  ServedFeeds feeds(catalogue, {}, events_);
  ASSERT_THAT(Find(feeds, Spec("near")), IsOk());
  EXPECT_FALSE(Find(feeds, Spec("none")).ok());
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(ServedFeedsTest, LogLinesAboutManyPlansAreLimited) {
  const Catalogue catalogue = Open();
  ServedFeeds feeds(catalogue, {}, events_);
  for (int seed = 0; seed < 200; ++seed) ASSERT_THAT(Find(feeds, Spec("far", seed)), IsOk());
  EXPECT_LE(lines_.size(), 20);
  events_.Flush();
  EXPECT_THAT(lines_.back(), HasSubstr("more feeds planned"));
}

TEST_F(ServedFeedsTest, RecordListsOfUnusedFeedsAreDroppedForNewFeeds) {
  const Catalogue catalogue = Open();
  ASSERT_THAT((*FindIn(catalogue, "near"))->NoteColumns({"label", "weight"}), IsOk());
  ServedFeeds feeds(catalogue, {}, events_);
  const auto find = [&feeds](int i) { return Resolve(feeds, WhereSpec(i), "a"); };
  std::vector<std::shared_ptr<const ServedFeed>> read;
  for (int i = 0; i < 32; ++i) {
    const auto feed = find(i);
    ASSERT_THAT(feed, IsOk());
    read.push_back(*feed);
  }
  EXPECT_THAT(find(1000), StatusIs(absl::StatusCode::kResourceExhausted,
                                   AllOf(HasSubstr("64 lists"), HasSubstr("32 of those in use"))));
  // A feed with the same condition as a kept list uses that list.
  EXPECT_THAT(find(5), IsOk());
  read.pop_back();
  EXPECT_THAT(find(1000), IsOk());
}

TEST_F(ServedFeedsTest, AFreshWhereFeedIsNotEvictedByFeedsOfAnotherPeer) {
  const Catalogue catalogue = Open();
  ASSERT_THAT((*FindIn(catalogue, "near"))->NoteColumns({"label", "weight"}), IsOk());
  ServedFeeds feeds(catalogue, {}, events_);
  const v1::FeedSpec mine = WhereSpec(7);
  ASSERT_THAT(Resolve(feeds, mine, "a"), IsOk());
  const int more = static_cast<int>(ServedFeeds::kMostKept) + 1;
  for (int seed = 2; seed < 2 + more; ++seed) {
    ASSERT_THAT(Resolve(feeds, WhereSpec(1, seed), "b"), IsOk());
  }
  for (int seed = 2; seed < 2 + more; ++seed) {
    ASSERT_THAT(Resolve(feeds, Spec("near", seed), "b"), IsOk());
  }
  EXPECT_THAT(Find(feeds, mine), IsOk());
  for (int64_t i = 0; i < ServedFeeds::kFreshTicks; ++i) feeds.Tick();
  for (int seed = 2; seed < 2 + more; ++seed) {
    ASSERT_THAT(Resolve(feeds, Spec("near", seed), "b"), IsOk());
  }
  EXPECT_THAT(Find(feeds, mine),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("call ResolveFeed")));
}

TEST_F(ServedFeedsTest, AFreshFeedsRecordListIsNotDroppedForAnotherPeersFeed) {
  const Catalogue catalogue = Open();
  ASSERT_THAT((*FindIn(catalogue, "near"))->NoteColumns({"label", "weight"}), IsOk());
  ServedFeeds feeds(catalogue, {}, events_);
  ASSERT_THAT(Resolve(feeds, WhereSpec(1000), "a"), IsOk());
  std::vector<std::shared_ptr<const ServedFeed>> read;
  const auto read_more = [&] {
    FeedMakers::Made feed = Resolve(feeds, WhereSpec(static_cast<int>(read.size())), "b");
    if (feed.ok()) read.push_back(*feed);
    return feed.status();
  };
  while (read_more().ok()) {
  }
  EXPECT_EQ(read.size(), 32);
  EXPECT_THAT(Find(feeds, WhereSpec(1000)), IsOk());
  // A list that nobody has asked for in kFreshTicks ticks may be dropped for another list.
  for (int64_t i = 0; i < ServedFeeds::kFreshTicks; ++i) feeds.Tick();
  read.pop_back();
  EXPECT_THAT(Resolve(feeds, WhereSpec(100), "b"), IsOk());
  EXPECT_THAT(Find(feeds, WhereSpec(1000)), Not(IsOk()));
}

}  // namespace
}  // namespace systole
