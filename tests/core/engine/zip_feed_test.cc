// Tests feeds of zipped datasets: their bytes, damaged records, and members that are not on this
// machine.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/cache/value_cache.h"
#include "core/dataset/damage_cause.h"
#include "core/engine/step_engine.h"
#include "core/example/example_builder.h"
#include "core/plan/epoch_bytes.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/engine/plan_of_members.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/gated_source.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::shared_ptr<const FeedPlan> MustPlan(const std::string& text, const Datasets& datasets) {
  auto plan = PlanOf(text, datasets);
  EXPECT_THAT(plan, IsOk());
  return *std::move(plan);
}

// The digests of all slices from `first` on, or the error that ends the feed.
absl::StatusOr<std::vector<std::string>> Digests(StepEngine& engine,
                                                 const std::shared_ptr<const FeedPlan>& plan,
                                                 int64_t first = 0,
                                                 std::shared_ptr<ValueCache> cache = nullptr) {
  auto stream = engine.Open(
      plan, {.first_step = first, .count = 1000, .core_end = plan->num_cores()}, {}, "", cache);
  if (!stream.ok()) return stream.status();
  std::vector<std::string> digests;
  while (true) {
    const StepStream::Result slice = (*stream)->Next();
    if (!slice.ok()) return slice.status();
    if (!slice->has_value()) return digests;
    digests.push_back(SliceDigest((**slice)->layout(), (**slice)->data()));
  }
}

absl::StatusOr<std::vector<std::string>> Digests(const std::shared_ptr<const FeedPlan>& plan,
                                                 int threads = 2) {
  StepEngine engine({.threads = threads, .max_threads = threads});
  return Digests(engine, plan);
}

// AllOutputs() with changed names: `name` stands before the name of each output, and `prefix`
// before the name of each feature except record_id.
std::string OutputsOf(const std::string& prefix, const std::string& name) {
  return absl::StrReplaceAll(
      AllOutputs(), {{"feature: \"record_id", "feature: \"record_id"},
                     {"feature: \"", absl::StrCat("feature: \"", prefix)},
                     {"outputs {\n      name: \"", absl::StrCat("outputs {\n      name: \"", name)},
                     {"outputs { name: \"", absl::StrCat("outputs { name: \"", name)}});
}

// Makes shards of test records. The first record has the number `first`.
std::vector<std::string> ShardsFrom(int64_t first, const std::vector<int>& records_per_shard) {
  std::vector<std::string> shards;
  for (const int records : records_per_shard) {
    ShardBuilder builder;
    for (int i = 0; i < records; ++i) builder.Add(TestRecord(first++));
    shards.push_back(builder.Build());
  }
  return shards;
}

constexpr char kZip[] = "zip { dataset: 'a' } zip { dataset: 'b' prefix: 'b/' } seed: 3 ";

Datasets TwoOf20(const std::vector<int>& a = {4, 5, 11}, const std::vector<int>& b = {13, 7}) {
  return {{"a", OpenTestDataset(ShardsFrom(0, a), "a")},
          {"b", OpenTestDataset(ShardsFrom(100, b), "b")}};
}

// The values of one tensor in all steps of a feed of one core.
template <typename T>
std::vector<T> Values(const std::shared_ptr<const FeedPlan>& plan, const std::string& tensor) {
  StepEngine engine({.threads = 2});
  const auto stream = engine.Open(plan, {.count = 1000, .core_end = 1});
  EXPECT_THAT(stream, IsOk());
  std::vector<T> values;
  while (true) {
    const StepStream::Result slice = (*stream)->Next();
    EXPECT_THAT(slice, IsOk());
    if (!slice.ok() || !slice->has_value()) return values;
    const SliceLayout& layout = (**slice)->layout();
    const TensorView view = layout.View(layout.IndexOf(tensor), (**slice)->data());
    const absl::Span<const T> some = view.As<T>();
    values.insert(values.end(), some.begin(), some.end());
  }
}

constexpr char kPairs[] =
    "outputs { name: 'id' feature: 'record_id' dtype: INT64 } "
    "outputs { name: 'pair' feature: 'pair' shape: 2 dtype: INT64 } "
    "outputs { name: 'other' feature: 'b/pair' shape: 2 dtype: INT64 } ";

TEST(ZipFeedTest, AnExampleHasTheSameNumberedRecordOfEveryMember) {
  for (const std::string order :
       {"", "shuffle { mode: GLOBAL }",
        "shuffle { mode: WINDOW block_records: 3 window_records: 9 }",
        "select { skip: 3 } select { shard { count: 2 index: 1 } }",
        "select { auto_shard { policy: DATA count: 2 index: 0 } } shuffle { mode: GLOBAL }"}) {
    SCOPED_TRACE(order);
    const auto plan =
        MustPlan(absl::StrCat(kZip, order, " global_batch: 2 epochs: 1 ", kPairs), TwoOf20());
    const std::vector<int64_t> ids = Values<int64_t>(plan, "id");
    const std::vector<int64_t> pairs = Values<int64_t>(plan, "pair");
    const std::vector<int64_t> others = Values<int64_t>(plan, "other");
    ASSERT_GE(ids.size(), 8u);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(pairs[2 * i], ids[i]);
      EXPECT_EQ(others[2 * i], 100 + ids[i]);
    }
  }
}

TEST(ZipFeedTest, BytesDoNotDependOnThreadsResumingOrShardBoundaries) {
  const std::string spec =
      absl::StrCat(kZip, "shuffle { mode: GLOBAL } global_batch: 6 num_cores: 2 epochs: 2 ",
                   "tail: PAD ", AllOutputs(), OutputsOf("b/", "other_"));
  const auto plan = MustPlan(spec, TwoOf20());
  const auto want = Digests(plan, 1);
  ASSERT_THAT(want, IsOk());
  EXPECT_EQ(want->size(), 2u * 2u * 4u);
  EXPECT_THAT(Digests(plan, 4), IsOkAndHolds(*want));
  StepEngine engine({.threads = 2});
  for (const int64_t first : {1, 3, 6}) {
    EXPECT_THAT(Digests(engine, plan, first),
                IsOkAndHolds(std::vector<std::string>(want->begin() + 2 * first, want->end())));
  }
  // The order depends only on how many records the members have. So it does not matter how these
  // records are divided into shards.
  const auto other = MustPlan(spec, TwoOf20({20}, {1, 18, 1}));
  EXPECT_THAT(Digests(other), IsOkAndHolds(*want));
  EXPECT_NE(other->dataset().fingerprint(), plan->dataset().fingerprint());
  EXPECT_EQ(MustPlan(spec, TwoOf20())->order_fingerprint(), plan->order_fingerprint());
  const std::string renamed = absl::StrReplaceAll(spec, {{"'b/'", "'c/'"}, {"\"b/", "\"c/"}});
  EXPECT_NE(MustPlan(renamed, TwoOf20())->order_fingerprint(), plan->order_fingerprint());
}

TEST(ZipFeedTest, OutputsOfEachMemberEqualThoseOfItsOwnFeed) {
  const std::string rest = "shuffle { mode: GLOBAL } global_batch: 6 num_cores: 2 epochs: 2 ";
  std::vector<std::string> other;
  for (const auto& [member, prefix] : {std::pair("a", ""), {"b", "b/"}}) {
    SCOPED_TRACE(member);
    const auto joined = MustPlan(absl::StrCat(kZip, rest, OutputsOf(prefix, "")), TwoOf20());
    const auto alone =
        MustPlan(absl::StrCat("dataset: '", member, "' seed: 3 ", rest, AllOutputs()), TwoOf20());
    const auto want = Digests(alone);
    ASSERT_THAT(want, IsOk());
    EXPECT_NE(*want, other);
    EXPECT_THAT(Digests(joined), IsOkAndHolds(*want));
    other = *want;
  }
}

TEST(ZipFeedTest, FeedsThatDifferInTheirSeedShareTheZip) {
  const Datasets datasets = TwoOf20();
  const auto plan = MustPlan(absl::StrCat(kZip, "global_batch: 4 ", kPairs), datasets);
  const auto other = MustPlan(
      absl::StrCat(absl::StrReplaceAll(kZip, {{"seed: 3", "seed: 9"}}), "global_batch: 4 ", kPairs),
      datasets);
  EXPECT_EQ(&plan->dataset(), &other->dataset());
}

TEST(ZipFeedTest, AMemberMayBeNamedTwice) {
  const auto plan = MustPlan(
      absl::StrCat("zip { dataset: 'a' } zip { dataset: 'a' prefix: 'b/' } global_batch: 20 ",
                   "epochs: 1 ", kPairs),
      TwoOf20());
  EXPECT_EQ(Values<int64_t>(plan, "pair"), Values<int64_t>(plan, "other"));
}

TEST(ZipFeedTest, CachedImagesAreFoundAgainAndDoNotChangeTheBytes) {
  const std::string spec = absl::StrCat(
      kZip, "shuffle { mode: GLOBAL } global_batch: 5 epochs: 3 ",
      absl::StrReplaceAll(
          OutputsOf("b/", "x") + AllOutputs(),
          {{"transforms { decode_jpeg {} }", "cache: MEMORY transforms { decode_jpeg {} }"}}));
  const auto plan = MustPlan(spec, TwoOf20());
  StepEngine engine({.threads = 2});
  const auto want = Digests(engine, plan);
  ASSERT_THAT(want, IsOk());
  const absl::StatusOr<std::shared_ptr<ValueCache>> cache =
      ValueCache::Create({.memory_bytes = 64 << 20});
  ASSERT_THAT(cache, IsOk());
  EXPECT_THAT(Digests(engine, plan, 0, *cache), IsOkAndHolds(*want));
  const ValueCacheStats first = (*cache)->stats();
  EXPECT_GE(first.misses, 2 * 20);  // Each of the 20 images of both members.
  EXPECT_GT(first.memory_bytes, 0);
  // A second feed finds all images.
  EXPECT_THAT(Digests(engine, plan, 0, *cache), IsOkAndHolds(*want));
  EXPECT_EQ((*cache)->stats().misses, first.misses);
  EXPECT_GE((*cache)->stats().memory_hits, first.memory_hits + 3 * 2 * 20);
}

constexpr char kBatches[] = "global_batch: 5 epochs: 1 ";

TEST(ZipFeedTest, DamageInAMemberMasksTheExampleAndIsLoggedForThatMember) {
  for (const std::string member : {"a", "b"}) {
    SCOPED_TRACE(member);
    Datasets datasets = TwoOf20();
    std::string damaged = ShardsFrom(0, {20})[0];
    damaged[damaged.size() / 2] ^= 1;
    datasets[member] = OpenTestDataset({damaged}, member);
    const auto masks =
        MustPlan(absl::StrCat(kZip, kBatches, "on_corrupt: MASK ", kPairs), datasets);
    const std::vector<uint8_t> valid = Values<uint8_t>(masks, "valid");
    const auto masked = std::find(valid.begin(), valid.end(), 0) - valid.begin();
    EXPECT_EQ(std::count(valid.begin(), valid.end(), 0), 1);
    const std::vector<int64_t> pairs = Values<int64_t>(masks, "pair");
    EXPECT_EQ(pairs[static_cast<size_t>(2 * masked)], 0);
    const std::vector<DamageLog::Entry> noted = datasets[member]->damage().entries();
    ASSERT_EQ(noted.size(), 1u);
    EXPECT_EQ(noted[0].record, masked);
    EXPECT_EQ(noted[0].shard, "shard-0.tfrecord");
    EXPECT_GT(noted[0].offset, 0);
    EXPECT_THAT(datasets[member == "a" ? "b" : "a"]->damage().entries(), IsEmpty());
    EXPECT_EQ(masks->dataset().damage().entries().size(), 1u);

    const absl::Status failed =
        Digests(MustPlan(absl::StrCat(kZip, kBatches, kPairs), datasets)).status();
    EXPECT_THAT(failed, StatusIs(absl::StatusCode::kDataLoss,
                                 AllOf(HasSubstr("shard-0.tfrecord"), HasSubstr("byte offset"),
                                       HasSubstr("`on_corrupt: MASK`"))));
  }
}

TEST(ZipFeedTest, ADamagedFeatureIsLoggedForItsMember) {
  Datasets datasets = TwoOf20({20}, {19});
  ShardBuilder builder;
  for (int i = 0; i < 20; ++i) {
    builder.Add(i == 7 ? ExampleBuilder().AddInt64s("pair", {1}).Serialize() : TestRecord(i));
  }
  datasets["b"] = OpenTestDataset({builder.Build()}, "b");
  const auto plan = MustPlan(absl::StrCat(kZip, kBatches, "on_corrupt: MASK ", kPairs), datasets);
  ASSERT_THAT(Digests(plan), IsOk());
  EXPECT_THAT(datasets["a"]->damage().entries(), IsEmpty());
  const std::vector<DamageLog::Entry> noted = datasets["b"]->damage().entries();
  ASSERT_EQ(noted.size(), 1u);
  EXPECT_EQ(noted[0].record, 7);
  EXPECT_EQ(noted[0].kind, DamageCause::kFeature);
  EXPECT_THAT(noted[0].cause, AllOf(HasSubstr("dataset 'b', shard 'shard-0.tfrecord'"),
                                    HasSubstr("output 'other'"), Not(HasSubstr("dataset 'a'"))));
}

// Covers every order, with a read budget that keeps nothing and with one that keeps everything.
TEST(ZipFeedTest, FarMembersGiveTheBytesOfLocalOnes) {
  const std::vector<std::string> a = ShardsFrom(0, {37, 0, 64, 1});
  const std::vector<std::string> b = ShardsFrom(200, {50, 52});
  const Datasets near = {{"a", OpenTestDataset(a, "a")}, {"b", OpenTestDataset(b, "b")}};
  const auto gate = std::make_shared<Gate>();
  const std::vector<Datasets> fars = {
      {{"a", near.at("a")}, {"b", OpenFarDataset(b, gate, "b")}},
      {{"a", OpenFarDataset(a, gate, "a")}, {"b", near.at("b")}},
      {{"a", OpenFarDataset(a, gate, "a")}, {"b", OpenFarDataset(b, gate, "b")}}};
  for (const std::string order :
       {"", "shuffle { mode: GLOBAL }",
        "shuffle { mode: WINDOW block_records: 5 window_records: 40 }",
        "shuffle { mode: GLOBAL } select { shard { count: 2 index: 1 } }"}) {
    const std::string spec =
        absl::StrCat(kZip, order, " global_batch: 24 num_cores: 2 tail: PAD epochs: 2 ",
                     AllOutputs(), OutputsOf("b/", "other_"));
    const auto want = Digests(MustPlan(spec, near));
    ASSERT_THAT(want, IsOk());
    for (const Datasets& far : fars) {
      for (const int64_t budget : {int64_t{1}, int64_t{0}}) {
        SCOPED_TRACE(absl::StrCat(order, " budget ", budget));
        StepEngine engine({.threads = 2, .reads = 3, .read_budget_bytes = budget});
        EXPECT_THAT(Digests(engine, MustPlan(spec, far)), IsOkAndHolds(*want));
        EXPECT_GT(engine.GetStats().reads.blocks_read, 0);
        EXPECT_EQ(engine.GetStats().memory_used_bytes, 0);
      }
    }
  }
}

TEST(ZipFeedTest, AnOrderedZipFetchesAMemberOnAWebServerOnce) {
  const std::vector<std::string> b = ShardsFrom(200, {50, 52});
  StubObjects objects;
  std::vector<std::string> urls;
  for (size_t i = 0; i < b.size(); ++i) {
    urls.push_back(objects.Put(absl::StrCat("/b", i, ".tfrecord"), b[i]));
  }
  const TempFolder indexes;
  const auto far = Dataset::Open("b", urls, {.index_dir = indexes.path()});
  ASSERT_THAT(far, IsOk());
  Datasets datasets = {{"a", OpenTestDataset(ShardsFrom(0, {102}), "a")},
                       {"b", OpenTestDataset(b, "b")}};
  const std::string spec =
      absl::StrCat(kZip, "global_batch: 17 epochs: 1 ", AllOutputs(), OutputsOf("b/", "other_"));
  const auto want = Digests(MustPlan(spec, datasets));
  ASSERT_THAT(want, IsOk());
  datasets["b"] = *far;
  const auto plan = MustPlan(spec, datasets);
  StepEngine engine({.threads = 2});
  EXPECT_THAT(Digests(engine, plan), IsOkAndHolds(*want));
  EXPECT_EQ(engine.GetStats().reads.bytes_read, (*far)->far_bytes());
  const EpochBytes epoch = EpochBytesOf(*plan, {.memory_bytes = 256 << 20});
  EXPECT_EQ(epoch.set_bytes, static_cast<int64_t>((*far)->far_bytes()));
  EXPECT_EQ(epoch.first_bytes, epoch.set_bytes);
}

TEST(ZipFeedTest, TheBytesOfAMemberNamedTwiceAreFetchedOnce) {
  const auto gate = std::make_shared<Gate>();
  const auto far = OpenFarDataset(ShardsFrom(0, {60}), gate, "a");
  const auto plan = MustPlan(
      absl::StrCat("zip { dataset: 'a' } zip { dataset: 'a' prefix: 'b/' } ", kBatches, kPairs),
      {{"a", far}});
  EXPECT_EQ(plan->dataset().far_bytes(), far->far_bytes());
  StepEngine engine({.threads = 1});
  ASSERT_THAT(Digests(engine, plan), IsOk());
  EXPECT_EQ(engine.GetStats().reads.bytes_read, far->far_bytes());
}

// Member `a` is read in place, and its file is replaced. This must be noticed even if member `b` is
// far. Bytes of a far member are checked when they are fetched, which does not check the file of
// `a`.
TEST(ZipFeedTest, AReplacedFileEndsTheFeedWhetherTheOtherMemberIsFarOrLocal) {
  const std::vector<std::string> shards = ShardsFrom(0, {20});
  for (const bool far : {false, true}) {
    SCOPED_TRACE(far);
    const TempFolder folder;
    folder.Write("a.tfrecord", shards[0]);
    const auto files = Dataset::Open("a", {folder / "a.tfrecord"});
    ASSERT_THAT(files, IsOk());
    const Datasets datasets = {{"a", *files},
                               {"b", far ? OpenFarDataset(shards, std::make_shared<Gate>(), "b")
                                         : OpenTestDataset(shards, "b")}};
    const auto plan = MustPlan(absl::StrCat(kZip, kBatches, "on_corrupt: MASK ", kPairs), datasets);
    ASSERT_THAT(Digests(plan), IsOk());
    folder.Write("a.tfrecord", ShardsFrom(50, {20})[0]);
    EXPECT_THAT(Digests(plan).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("a.tfrecord")));
    EXPECT_EQ((*files)->damage().masked_examples(), 0);
  }
}

// The records of the new file have valid frames at the same places, but lack the feature `pair`.
TEST(ZipFeedTest, AReplacedFileEndsTheFeedAndIsNotLoggedAsDamage) {
  const std::vector<std::string> shards = ShardsFrom(0, {20});
  ShardBuilder other;
  for (int i = 0; i < 20; ++i) other.Add(absl::StrReplaceAll(TestRecord(i), {{"pair", "rapi"}}));
  const std::string replaced = other.Build();
  ASSERT_EQ(replaced.size(), shards[0].size());
  for (const bool far : {false, true}) {
    for (const std::string on_corrupt : {"", "on_corrupt: MASK "}) {
      SCOPED_TRACE(absl::StrCat(far, on_corrupt));
      const TempFolder folder;
      folder.Write("a.tfrecord", shards[0]);
      const auto files = Dataset::Open("a", {folder / "a.tfrecord"});
      ASSERT_THAT(files, IsOk());
      const Datasets datasets = {{"a", *files},
                                 {"b", far ? OpenFarDataset(shards, std::make_shared<Gate>(), "b")
                                           : OpenTestDataset(shards, "b")}};
      const auto plan = MustPlan(absl::StrCat(kZip, kBatches, on_corrupt, kPairs), datasets);
      folder.Write("a.tfrecord", replaced);
      EXPECT_THAT(Digests(plan).status(),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           AllOf(HasSubstr("a.tfrecord"), HasSubstr("rewritten"))));
      EXPECT_EQ((*files)->damage().masked_examples(), 0);
      EXPECT_THAT((*files)->damage().entries(), IsEmpty());
    }
  }
}

TEST(ZipFeedTest, AConditionMayTestFeaturesOfSeveralMembers) {
  const Datasets datasets = TwoOf20();
  const auto spec = [](const std::string& condition) {
    return absl::StrCat(kZip, "select { where { ", condition, " } } global_batch: 1 epochs: 1 ",
                        kPairs);
  };
  EXPECT_THAT(
      PlanOf(spec("feature: 'b/weight' less: 26"), datasets).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("dataset 'b'"), HasSubstr("`systole index --columns weight`"))));
  EXPECT_THAT(datasets.at("a")->NoteColumns({"label", "weight"}), IsOk());
  EXPECT_THAT(datasets.at("b")->NoteColumns({"weight"}), IsOk());
  const auto ids = [&](const std::string& condition) {
    return Values<int64_t>(MustPlan(spec(condition), datasets), "id");
  };
  EXPECT_THAT(ids("feature: 'b/weight' less: 26"), ElementsAre(0, 1, 2, 3));  // (100 + i) / 4.
  EXPECT_THAT(ids("all { feature: 'b/weight' less: 26 } all { feature: 'label' in: [1, 2] }"),
              ElementsAre(1, 2));
  EXPECT_THAT(ids("any { feature: 'b/weight' less: 25.3 } any { feature: 'weight' less: 0.3 } "
                  "any { all { feature: 'label' in: 4 } all { feature: 'b/weight' less: 26.5 } }"),
              ElementsAre(0, 1, 4));
  EXPECT_THAT(PlanOf(spec("feature: 'b/label' less: 3"), datasets).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("label")));
  const auto noted = Dataset::Zip(
      {{.dataset = datasets.at("a"), .prefix = ""}, {.dataset = datasets.at("b"), .prefix = "b/"}});
  ASSERT_THAT(noted, IsOk());
  ASSERT_THAT((*noted)->NoteColumns({"b/label", "pair"}), IsOk());
  EXPECT_THAT(ids("feature: 'b/label' in: 3"), ElementsAre(3, 8, 13, 18));
}

TEST(ZipFeedTest, InvalidZipsAndOutputsAreRefusedWithTheReason) {
  Datasets datasets = TwoOf20();
  datasets["c"] = OpenTestDataset(ShardsFrom(0, {21}), "c");
  const auto refusal = [&](const std::string& zip, const std::string& more = kPairs) {
    const auto plan = PlanOf(absl::StrCat(zip, " global_batch: 1 ", more), datasets);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(plan.status().message());
  };
  EXPECT_THAT(refusal("zip { dataset: 'a' } zip { dataset: 'c' prefix: 'b/' }"),
              AllOf(HasSubstr("zip[1] ('c') has 21 records and zip[0] ('a') has 20"),
                    HasSubstr("want equal numbers"), HasSubstr("pack")));
  EXPECT_THAT(refusal("zip { dataset: 'a' } zip { dataset: 'b' }"),
              AllOf(HasSubstr("zip[1].prefix is ''"), HasSubstr("both have a feature 'image'"),
                    HasSubstr("such as prefix: '1/'")));
  EXPECT_THAT(refusal("zip { dataset: 'a' prefix: 'x' } zip { dataset: 'b' prefix: 'x' }"),
              HasSubstr("both have a feature 'ximage'"));
  EXPECT_THAT(refusal(kZip, "outputs { name: 'r' feature: 'record' dtype: UINT8 shape: 9 }"),
              AllOf(HasSubstr("output 'r'"), HasSubstr("a record of a zip is several records")));
  EXPECT_THAT(refusal(kZip, "outputs { name: 'r' feature: 'b/pear' dtype: INT64 }"),
              AllOf(HasSubstr("dataset 'a & b' has no feature 'b/pear'"), HasSubstr("'b/pair'")));
  // The datasets were zipped with another prefix than the spec says.
  const v1::FeedSpec spec = SpecFromText(absl::StrCat(kZip, kBatches, kPairs));
  const auto other = Dataset::Zip(
      {{.dataset = datasets.at("a"), .prefix = ""}, {.dataset = datasets.at("b"), .prefix = "c/"}});
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(FeedPlan::Create(spec, *other),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("different prefixes")));
}

}  // namespace
}  // namespace systole
