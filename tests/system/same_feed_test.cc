// Tests that a feed has the same examples from one server, from several servers and in the process
// of the trainer, with any number of threads. In the process of the trainer, the feed reads arrays
// in memory, or a shard of the same rows. After any step another maker may go on with the feed,
// also with another batch or another number of cores.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/feed/feed_client.h"
#include "client/local/local_feed.h"
#include "core/dataset/dataset.h"
#include "core/order/resume_token.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/status_matchers.h"
#include "tests/system/kinds_of_feed.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRows = 96;

// Who makes a feed. The far shard lies on a web server. The first server has one thread, the second
// server has three.
enum Maker {
  kArrays,
  kArraysByThreads,
  kShard,
  kFarShard,
  kOneServer,
  kOtherServer,
  kAllServers,
  kMakers
};

class SameFeedTest : public testing::TestWithParam<KindOfFeed> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    rows_ = new RowsOfArrays(kRows, /*image_width=*/5);
    shard_ = folder_->Write("rows.tfrecord", rows_->Shard());
    far_ = new StubObjects;
    far_shard_ = far_->Put("/rows.tfrecord", rows_->Shard());
    ASSERT_EQ(RunSystole({"index", shard_, "--columns", "label"}).exit_code, 0);
    servers_ = new std::vector<std::unique_ptr<ServerProcess>>;
    for (const char* const threads : {"1", "3", "2"}) {
      auto server =
          ServerProcess::Start({"--dataset", absl::StrCat("rows=", shard_), "--threads", threads});
      ASSERT_THAT(server, IsOk());
      servers_->push_back(*std::move(server));
    }
  }
  static void TearDownTestSuite() {
    delete servers_;
    delete far_;
    delete rows_;
    delete folder_;
  }

  // Opens the feed of `kind`, at `token` if this is not null, or else at its beginning.
  static absl::StatusOr<std::unique_ptr<Feed>> Open(const KindOfFeed& kind,
                                                    const v1::FeedSpec& spec, int maker,
                                                    const ResumeToken* token = nullptr) {
    if (maker < kOneServer) {
      std::shared_ptr<const Dataset> dataset = rows_->InMemory(kind.num_members);
      if (maker >= kShard) {
        const absl::StatusOr<std::shared_ptr<Dataset>> shard =
            Dataset::Open("rows", {maker == kShard ? shard_ : far_shard_});
        EXPECT_THAT(shard, IsOk());
        dataset = *shard;
        if (kind.num_members > 1) {
          dataset = *Dataset::Join(std::vector<std::shared_ptr<const Dataset>>(
              static_cast<size_t>(kind.num_members), *shard));
        }
      }
      const LocalFeedOptions options = {.threads = maker == kArraysByThreads ? 3 : 1};
      return token == nullptr ? LocalFeed::Create(spec, dataset, options)
                              : LocalFeed::Resume(spec, dataset, *token, options);
    }
    FeedClientOptions options;
    for (size_t i = 0; i < servers_->size(); ++i) {
      if (maker == kAllServers || maker == kOneServer + static_cast<int>(i)) {
        options.servers.push_back((*servers_)[i]->address());
      }
    }
    return token == nullptr ? FeedClient::Create(spec, options)
                            : FeedClient::Resume(spec, *token, options);
  }

  static std::unique_ptr<Feed> MustOpen(const FeedCut& cut, int maker,
                                        const ResumeToken* token = nullptr) {
    absl::StatusOr<std::unique_ptr<Feed>> feed =
        Open(GetParam(), GetParam().Spec(*rows_, cut), maker, token);
    EXPECT_THAT(feed, IsOk());
    return *std::move(feed);
  }

  static TempFolder* folder_;
  static RowsOfArrays* rows_;
  static std::string shard_;
  static StubObjects* far_;
  static std::string far_shard_;
  static std::vector<std::unique_ptr<ServerProcess>>* servers_;
};
TempFolder* SameFeedTest::folder_ = nullptr;
RowsOfArrays* SameFeedTest::rows_ = nullptr;
std::string SameFeedTest::shard_;
StubObjects* SameFeedTest::far_ = nullptr;
std::string SameFeedTest::far_shard_;
std::vector<std::unique_ptr<ServerProcess>>* SameFeedTest::servers_ = nullptr;

INSTANTIATE_TEST_SUITE_P(Kinds, SameFeedTest, testing::ValuesIn(KindsOfFeed(kRows)),
                         [](const auto& info) { return info.param.name; });

TEST_P(SameFeedTest, TheFeedIsTheSameFromArraysShardsAndServers) {
  const FeedCut cut = {.global_batch = 24, .num_cores = 4};
  const std::vector<std::string> wanted = ExampleLines(*MustOpen(cut, kArrays), 24);
  ASSERT_GT(wanted.size(), 20u * 16);
  if (GetParam().changes.empty()) {  // Each record comes once in the first epoch.
    const std::vector<std::string> digests = DigestsIn(wanted);
    const auto records = static_cast<size_t>(GetParam().num_records);
    EXPECT_EQ(std::set<std::string>(digests.begin(), digests.begin() + records).size(), records);
  }
  for (int maker = 0; maker < kMakers; ++maker) {
    EXPECT_EQ(ExampleLines(*MustOpen(cut, maker), 24), wanted) << "maker " << maker;
  }
}

TEST_P(SameFeedTest, EachStepsTokenResumesWithArraysShardsOrServers) {
  const FeedCut cut = {.global_batch = 24, .num_cores = 4};
  std::vector<std::unique_ptr<Feed>> feeds;
  for (int maker = 0; maker < kMakers; ++maker) feeds.push_back(MustOpen(cut, maker));
  for (int step = 0; step < 17; ++step) {
    SCOPED_TRACE(step);
    const ResumeToken token = feeds[0]->TokenAt(step);
    for (const std::unique_ptr<Feed>& feed : feeds) EXPECT_EQ(feed->TokenAt(step), token);
    const std::vector<std::string> next = ExampleLines(*feeds[0], 1);
    for (const int maker : {step % kMakers, (step + 3) % kMakers}) {
      const std::unique_ptr<Feed> rest = MustOpen(cut, maker, &token);
      EXPECT_EQ(ExampleLines(*rest, 1), next) << "maker " << maker;
    }
  }
}

TEST_P(SameFeedTest, ARunResumesRepeatedlyWithOtherBatchSizesAndCoreCounts) {
  const std::vector<FeedCut> cuts = {{.global_batch = 8, .num_cores = 2},
                                     {.global_batch = 12, .num_cores = 3},
                                     {.global_batch = 16, .num_cores = 1},
                                     {.global_batch = 24, .num_cores = 8},
                                     {.global_batch = 48, .num_cores = 4}};
  // In each of its lives, a run goes on with the feed where the life before has stopped. The 400
  // steps of `whole` have more examples than all lives of a run take. Feeds of all cuts have the
  // same examples.
  const std::vector<std::string> whole = DigestsIn(ExampleLines(*MustOpen(cuts[0], kArrays), 400));
  CounterRng rng(/*seed=*/4, 0, 0, 0);
  for (int run = 0; run < 2; ++run) {
    size_t taken = 0;
    std::string token;
    for (int life = 0; life < 10; ++life) {
      SCOPED_TRACE(absl::StrCat("run ", run, ", life ", life));
      const FeedCut cut = cuts[static_cast<size_t>(rng.UniformInt(0, 5))];
      const auto maker = static_cast<int>(rng.UniformInt(0, kMakers));
      const absl::StatusOr<ResumeToken> from = ResumeToken::Decode(token);
      const std::unique_ptr<Feed> feed = MustOpen(cut, maker, from.ok() ? &*from : nullptr);
      // If no step of this cut begins at the token, the examples up to the next step are skipped.
      const std::unique_ptr<Feed> other = MustOpen(cut, kArrays);
      const size_t begin = ExampleLines(*other, feed->next_step()).size();
      ASSERT_GE(begin, taken);
      ASSERT_LT(begin - taken, static_cast<size_t>(cut.global_batch));
      const int64_t steps = rng.UniformInt(0, 4);
      const std::vector<std::string> digests = DigestsIn(ExampleLines(*feed, steps));
      ASSERT_LE(begin + digests.size(), whole.size());
      ASSERT_TRUE(std::equal(digests.begin(), digests.end(), whole.begin() + begin));
      taken = begin + digests.size();
      token = feed->Token().Encode();
    }
  }
}

TEST_P(SameFeedTest, AFinishedFeedHasNoMoreStepsWithALargerBatchSize) {
  const auto spec_of = [](const FeedCut& cut) {
    v1::FeedSpec spec = GetParam().Spec(*rows_, cut);
    spec.set_epochs(2);
    return spec;
  };
  const auto small = Open(GetParam(), spec_of({.global_batch = 8, .num_cores = 2}), kArrays);
  ASSERT_THAT(small, IsOk());
  const ResumeToken token = (*small)->TokenAt((*small)->end_step());
  for (const int batch : {24, 48}) {
    const v1::FeedSpec spec = spec_of({.global_batch = batch, .num_cores = 4});
    for (const int maker : {kArrays, kOneServer}) {
      const absl::StatusOr<std::unique_ptr<Feed>> feed = Open(GetParam(), spec, maker, &token);
      ASSERT_THAT(feed, IsOk());
      EXPECT_TRUE(ExampleLines(**feed, 1).empty());
    }
  }
}

TEST_P(SameFeedTest, ATokenIsRefusedByEveryOtherKindOfFeed) {
  const FeedCut cut = {.global_batch = 24, .num_cores = 4};
  const ResumeToken token = MustOpen(cut, kOneServer)->TokenAt(9);
  for (const KindOfFeed& other : KindsOfFeed(kRows)) {
    if (other.name == GetParam().name) continue;
    for (const int maker : {kArrays, kOneServer}) {
      EXPECT_THAT(Open(other, other.Spec(*rows_, cut), maker, &token),
                  StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cannot be resumed")))
          << other.name;
    }
  }
}

// With another batch, the steps at which weights change begin at other examples. The error says
// which examples the spec must name instead of the steps.
TEST_P(SameFeedTest, PastWeightChangesMovedByAnotherBatchAreRefusedWithARemedy) {
  const FeedCut cut = {.global_batch = 24, .num_cores = 4};
  const ResumeToken token = MustOpen(cut, kOneServer)->TokenAt(20);
  const std::vector<std::string> wanted =
      DigestsIn(ExampleLines(*MustOpen(cut, kArrays, &token), 2));
  v1::FeedSpec spec = GetParam().Spec(*rows_, cut);
  v1::FeedSpec by_example = spec;
  std::vector<std::string> remedies;
  for (int i = 0; i < spec.weights_size(); ++i) {
    const int64_t step = spec.weights(i).from_step();
    const int64_t example = GetParam().changes[static_cast<size_t>(i)].first;
    if (step == 0) continue;
    by_example.mutable_weights(i)->clear_from_step();
    by_example.mutable_weights(i)->set_from_example(example);
    remedies.push_back(
        absl::StrCat("`from_example: ", example, "` instead of `from_step: ", step, "`"));
  }
  const std::string remedy =
      absl::StrCat("The token's feed had global_batch: 24, ",
                   "so these steps began at other examples. Examples do not ",
                   "depend on global_batch: write ", absl::StrJoin(remedies, ", "));
  for (const auto& [batch, cores] : {std::pair(16, 4), std::pair(24, 2)}) {
    for (v1::FeedSpec* const each : {&spec, &by_example}) {
      each->set_global_batch(batch);
      each->set_num_cores(cores);
    }
    for (const int maker : {kArrays, kOneServer}) {
      const absl::StatusOr<std::unique_ptr<Feed>> feed = Open(GetParam(), spec, maker, &token);
      if (GetParam().changes.empty() || batch == 24) {
        EXPECT_THAT(feed, IsOk());
      } else {
        EXPECT_THAT(feed,
                    StatusIs(absl::StatusCode::kFailedPrecondition,
                             AllOf(HasSubstr("the past differs from step"), HasSubstr(remedy))));
      }
      const absl::StatusOr<std::unique_ptr<Feed>> rest =
          Open(GetParam(), by_example, maker, &token);
      ASSERT_THAT(rest, IsOk());
      EXPECT_EQ(DigestsIn(ExampleLines(**rest, 2 * 24 / batch)), wanted);
    }
  }
}

}  // namespace
}  // namespace systole
