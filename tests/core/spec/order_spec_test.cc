#include "core/spec/order_spec.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/order/record_list.h"
#include "core/order/selection.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::FeedSpec OneDataset() {
  v1::FeedSpec spec;
  spec.set_dataset("flowers");
  return spec;
}

v1::FeedSpec Parsed(const std::string& text) {
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

// The first `count` records of the order that the spec `text` describes, with the spec's shuffle.
std::vector<int64_t> FirstRecords(const std::string& text,
                                  const std::vector<DatasetRecords>& datasets, int64_t count) {
  const absl::StatusOr<OrderSpec> spec = OrderSpecOf(Parsed(text), datasets);
  EXPECT_THAT(spec, IsOk());
  const absl::StatusOr<Order> order = Order::Create(*spec);
  EXPECT_THAT(order, IsOk());
  std::vector<int64_t> records;
  for (int64_t i = 0; i < count; ++i) records.push_back(*order->PlaceOf(i, 0).record);
  return records;
}

TEST(OrderSpecOfTest, TakesEveryFieldThatDecidesTheOrder) {
  v1::FeedSpec spec = OneDataset();
  spec.set_seed(7);
  spec.set_epochs(3);
  spec.set_global_batch(32);
  spec.set_tail(v1::PAD);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::WINDOW);
  spec.mutable_shuffle()->set_block_records(4);
  spec.mutable_shuffle()->set_window_records(50);
  const OrderSpec order = *OrderSpecOf(spec, {{.num_records = 1000}});
  EXPECT_EQ(order.seed, 7u);
  EXPECT_EQ(order.epochs, 3);
  EXPECT_EQ(order.global_batch, 32);
  EXPECT_EQ(order.tail, Tail::kPad);
  EXPECT_EQ(order.mode, ShuffleMode::kWindow);
  EXPECT_EQ(order.block_records, 4);
  EXPECT_EQ(order.window_records, 50);
  EXPECT_EQ(order.num_records, 1000);
}

TEST(OrderSpecOfTest, AnUnsetShuffleKeepsTheRecordsInOrder) {
  EXPECT_EQ((*OrderSpecOf(OneDataset(), {{.num_records = 1}})).mode, ShuffleMode::kNone);
  EXPECT_EQ((*OrderSpecOf(OneDataset(), {{.num_records = 1}})).tail, Tail::kDrop);
  v1::FeedSpec global = OneDataset();
  global.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  EXPECT_EQ((*OrderSpecOf(global, {{.num_records = 1}})).mode, ShuffleMode::kGlobal);
}

TEST(OrderSpecOfTest, SelectStepsOfTheSpecSelectTheirRecords) {
  const auto spec = [](const std::string& select) { return Parsed("dataset: 'a' " + select); };
  const std::vector<int64_t> shards = {3, 4, 2};
  const auto records = [&](const std::string& select) {
    const absl::StatusOr<OrderSpec> order =
        OrderSpecOf(spec(select), {{.num_records = 9, .per_shard = shards}});
    EXPECT_THAT(order, IsOk());
    std::vector<int64_t> records;
    for (int64_t i = 0; i < order->num_records; ++i) {
      records.push_back(order->selection == nullptr ? i : order->selection->RecordAt(i));
    }
    return records;
  };
  EXPECT_THAT(records("select { skip: 6 }"), ElementsAre(6, 7, 8));
  EXPECT_THAT(records("select { take: 2 }"), ElementsAre(0, 1));
  EXPECT_THAT(records("select { shard { count: 4 index: 1 } }"), ElementsAre(1, 5));
  EXPECT_THAT(records("select { interleave { cycle_length: 3 } } select { take: 4 }"),
              ElementsAre(0, 3, 7, 1));
  EXPECT_THAT(records("select { auto_shard { policy: FILE count: 2 index: 1 } }"),
              ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(records("select { auto_shard { policy: AUTO count: 2 index: 1 } }"),
              ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(records("select { auto_shard { policy: DATA count: 4 index: 1 } }"),
              ElementsAre(1, 5));
  EXPECT_EQ(records("select { auto_shard { policy: OFF count: 2 } }").size(), 9u);
  EXPECT_TRUE(SelectsByShards(spec("select { interleave { cycle_length: 3 } }")));
  EXPECT_FALSE(SelectsByShards(spec("select { skip: 3 }")));
  EXPECT_THAT(OrderSpecOf(spec("select {}"), {{.num_records = 9, .per_shard = shards}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("select[0] names no step")));
}

TEST(OrderSpecOfTest, EachWhereStepIsEvaluatedOnTheRecordsLeftBeforeIt) {
  const std::vector<int64_t> shards = {6, 4};
  const std::vector<DatasetRecords> datasets = {{10, shards}, {4, {}}};
  std::vector<std::string> asked;
  const auto even = [&asked](const WhereStep& step) {
    asked.push_back(absl::StrCat(step.field, " of ", step.member, ", step ", step.step, ", ",
                                 step.before.num_records()));
    std::vector<uint64_t> words(1);
    for (int64_t i = 0; i < step.before.num_records(); ++i) {
      words[0] |= static_cast<uint64_t>(step.before.RecordAt(i) % 2 == 0) << i;
    }
    return absl::StatusOr<std::shared_ptr<const RecordList>>(
        std::make_shared<const RecordList>(words, step.before.num_records()));
  };
  const v1::FeedSpec spec = Parsed(
      "concatenation { dataset: 'a' select { skip: 3 } select { where {} } } concatenation { "
      "dataset: 'b' } select { take: 4 } select { where {} } global_batch: 1");
  const absl::StatusOr<OrderSpec> order = OrderSpecOf(spec, datasets, even);
  ASSERT_THAT(order, IsOk());
  EXPECT_THAT(asked, ElementsAre("concatenation[0].select[1].where of 0, step 1, 7",
                                 "select[1].where of -1, step 1, 4"));
  // The `where` of `a` leaves the records 4, 6, 8. `b` has the records 10 to 13. `take` leaves the
  // first 4 of these 7 records: 4, 6, 8, 10. The last `where` keeps them, because they are even.
  ASSERT_EQ(order->num_records, 4);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(order->selection->RecordAt(i), 4 + 2 * i);
  EXPECT_THAT(OrderSpecOf(spec, datasets),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("concatenation[0].select[1].where cannot be evaluated here")));
}

TEST(OrderSpecOfTest, AConcatenationIsOneDatasetOfAllShards) {
  const std::vector<int64_t> a = {3, 1};
  const std::vector<int64_t> b = {2};
  const std::vector<DatasetRecords> datasets = {{4, a}, {2, b}};
  const std::string ab =
      "concatenation { dataset: 'a' } concatenation { dataset: 'b' } epochs: 1 "
      "global_batch: 1 num_cores: 1 ";
  EXPECT_THAT(FirstRecords(ab, datasets, 6), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(FirstRecords(ab + "select { interleave { cycle_length: 3 } }", datasets, 6),
              ElementsAre(0, 3, 4, 1, 5, 2));
  const std::vector<int64_t> all = {3, 1, 2};
  const std::vector<DatasetRecords> one = {{6, all}};
  const std::string shuffle = "shuffle { mode: GLOBAL } ";
  EXPECT_EQ(
      FirstRecords(ab + shuffle, datasets, 6),
      FirstRecords("dataset: 'ab' epochs: 1 global_batch: 1 num_cores: 1 " + shuffle, one, 6));
}

TEST(OrderSpecOfTest, MembersSelectBeforeTheyAreConcatenated) {
  const std::vector<DatasetRecords> datasets = {{4, {}}, {3, {}}};
  const std::string some =
      "concatenation { dataset: 'a' select { skip: 3 } } "
      "concatenation { dataset: 'b' select { take: 2 } } epochs: 0 "
      "global_batch: 1 num_cores: 1 ";
  EXPECT_THAT(FirstRecords(some, datasets, 6), ElementsAre(3, 4, 5, 3, 4, 5));
  EXPECT_THAT(FirstRecords(some + "select { skip: 1 }", datasets, 4), ElementsAre(4, 5, 4, 5));
  EXPECT_THAT(OrderSpecOf(Parsed(some + "select { interleave { cycle_length: 2 } }"), datasets),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("select[0] takes whole shards, but a member has")));
}

TEST(OrderSpecOfTest, AMemberThatSelectsNoRecordIsSkippedInAConcatenation) {
  const std::vector<DatasetRecords> datasets = {{4, {}}, {3, {}}, {2, {}}};
  const auto members = [](const std::string& a, const std::string& b, const std::string& c) {
    return absl::StrCat("concatenation { dataset: 'a' ", a, " } concatenation { dataset: 'b' ", b,
                        " } concatenation { dataset: 'c' ", c,
                        " } epochs: 0 global_batch: 1 num_cores: 1 ");
  };
  const std::string none = "select { skip: 9 }";
  EXPECT_THAT(FirstRecords(members("select { take: 2 }", none, ""), datasets, 5),
              ElementsAre(0, 1, 7, 8, 0));
  EXPECT_THAT(FirstRecords(members(none, "", none), datasets, 4), ElementsAre(4, 5, 6, 4));
  EXPECT_THAT(FirstRecords(members("", "", none + " select { take: 1 }"), datasets, 8),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 0));
  const auto refused = [&](const std::string& spec, const std::string& what) {
    EXPECT_THAT(OrderSpecOf(Parsed(spec), datasets),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refused(members(none, none, none), "the members of concatenation select no record");
  refused(members(none, "", "") + "select { skip: 5 }", "select[0] leaves no record");
}

TEST(OrderSpecOfTest, MembersOfAMixtureTakeTurnsByWeight) {
  const std::vector<DatasetRecords> datasets = {{4, {}}, {3, {}}};
  const std::string mixed =
      "mixture { dataset: 'a' weight: 2 } "
      "mixture { dataset: 'b' weight: 1 select { skip: 1 } } epochs: 0 "
      "global_batch: 1 num_cores: 1";
  EXPECT_THAT(FirstRecords(mixed, datasets, 9), ElementsAre(0, 5, 1, 2, 6, 3, 0, 5, 1));
}

constexpr char kMixedHalf[] =
    "mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' weight: 1 } epochs: 0 num_cores: 1 ";

TEST(OrderSpecOfTest, WeightsChangeAtStepsOfAnyEpoch) {
  const std::vector<DatasetRecords> datasets = {{4, {}}, {3, {}}};
  const auto records = [&](const std::string& more, int64_t first_step, int64_t steps) {
    const absl::StatusOr<OrderSpec> spec =
        OrderSpecOf(Parsed(absl::StrCat(kMixedHalf, "global_batch: 2 ", more)), datasets);
    EXPECT_THAT(spec, IsOk());
    const absl::StatusOr<Order> order = Order::Create(*spec);
    EXPECT_THAT(order, IsOk());
    std::vector<int64_t> records;
    for (int64_t step = first_step; step < first_step + steps; ++step) {
      for (int64_t slot = 0; slot < 2; ++slot) {
        records.push_back(order->PlaceOf(step, slot).record.value_or(-1));
      }
    }
    return records;
  };
  const std::string weights =
      "weights { from_step: 2 weights: [0, 5] } weights { from_step: 4 weights: [2, 1] }";
  // An epoch has 7 records. With DROP it has 3 steps of 2 records each. With PAD it has 4 steps:
  // steps 0 to 2 have 2 records, and step 3 has one. After a change of weights, each member goes on
  // with its next record.
  EXPECT_THAT(records(weights, 0, 7),
              ElementsAre(0, 4, 1, 5, /**/ 6, 4, 5, 6, /**/ 2, 4, 3, 0, 5, 1));
  EXPECT_THAT(records("tail: PAD " + weights, 0, 6),
              ElementsAre(0, 4, 1, 5, /**/ 6, 4, 5, -1, /**/ 2, 6, 3, 0));
  EXPECT_THAT(records("tail: PAD " + weights, 4, 2), ElementsAre(2, 6, 3, 0));
  EXPECT_THAT(records("weights { from_step: 0 weights: [0, 1] }", 0, 2), ElementsAre(4, 5, 6, 4));
  EXPECT_EQ(records("weights { from_step: 9223372036854775807 weights: [0, 1] }", 0, 5),
            records("", 0, 5));
}

// Up to step 2 the feed has only the first half of a dataset's 4 records, and from step 3 only the
// second half. The order counts the second member's records from 4, so its second half is 6 and 7.
TEST(OrderSpecOfTest, ADatasetThatIsNamedTwiceHasAWeightForEachOfItsSelections) {
  EXPECT_THAT(FirstRecords("mixture { dataset: 'a' weight: 1 select { take: 2 } } "
                           "mixture { dataset: 'a' weight: 1 select { skip: 2 } } epochs: 0 "
                           "global_batch: 1 weights { from_step: 0 weights: [1, 0] } "
                           "weights { from_step: 3 weights: [0, 1] }",
                           {{4, {}}, {4, {}}}, 6),
              ElementsAre(0, 1, 0, 6, 7, 6));
}

TEST(OrderSpecOfTest, WeightsThatCannotBeAppliedAreRefused) {
  const std::vector<DatasetRecords> datasets = {{4, {}}, {3, {}}};
  const auto refusal = [&](const std::string& text) {
    const absl::StatusOr<OrderSpec> order = OrderSpecOf(Parsed(text), datasets);
    EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(order.status().message());
  };
  const auto mixed = [&](const std::string& more) {
    return refusal(absl::StrCat(kMixedHalf, "global_batch: 2 ", more));
  };
  const std::string weights = "weights { from_step: 1 weights: [1, 1] } ";
  for (const std::string none :
       {"dataset: 'a' global_batch: 1 ",
        "concatenation { dataset: 'a' } concatenation { dataset: 'b' } global_batch: 1 "}) {
    EXPECT_THAT(refusal(none + weights), HasSubstr("weights is set, but the spec has no mixture"));
  }
  EXPECT_THAT(mixed(weights + weights), HasSubstr("weights[1].from_step is 1, want more than 1"));
  EXPECT_THAT(mixed("weights { from_step: -9223372036854775808 weights: [1, 1] }"),
              HasSubstr("weights[0].from_step is -9223372036854775808, want 0 or more"));
  EXPECT_THAT(mixed("weights { from_example: -3 weights: [1, 1] }"),
              HasSubstr("weights[0].from_example is -3, want 0 or more"));
  EXPECT_THAT(mixed(weights + "weights { from_step: 3 from_example: 9 weights: [1, 1] }"),
              HasSubstr("weights[1] has from_step 3 and from_example 9, want one of them"));
  EXPECT_THAT(mixed("weights { from_step: -1 from_example: 9 weights: [1, 1] }"),
              HasSubstr("weights[0] has from_step -1 and from_example 9, want one of them"));
  EXPECT_THAT(mixed("weights { from_example: 100 weights: [1, 1] } " + weights),
              AllOf(HasSubstr("weights[1].from_step is 1, so this change begins at example "),
                    HasSubstr("(from_example: 100)")));
  EXPECT_THAT(
      mixed(weights + "weights { from_example: 1 weights: [1, 1] }"),
      HasSubstr("weights[1].from_example is 1, so this change begins at example 1; want a place"));
  EXPECT_THAT(mixed("weights { from_step: 1 }"), HasSubstr("has 0 weights, want 2"));
  EXPECT_THAT(mixed("weights { from_step: 1 weights: [0, 0] }"), HasSubstr("are all 0"));
  EXPECT_THAT(mixed("weights { from_step: 1 weights: [65536, 1] }"), HasSubstr("at most 65536"));
  // global_batch and the number of records decide which turn begins a step. So both are checked
  // before the steps of `weights`.
  EXPECT_THAT(refusal(kMixedHalf + weights), HasSubstr("global_batch is 0"));
  EXPECT_THAT(refusal(absl::StrCat(kMixedHalf, "global_batch: 9 ", weights)),
              HasSubstr("the members have only 7 records"));
}

TEST(OrderSpecOfTest, AnErrorNamesTheMember) {
  const std::vector<int64_t> shards = {4};
  const std::vector<DatasetRecords> datasets = {{4, shards}, {4, shards}};
  const auto refusal = [&](const std::string& text) {
    const absl::StatusOr<OrderSpec> order = OrderSpecOf(Parsed(text), datasets);
    EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(order.status().message());
  };
  EXPECT_THAT(refusal(""), HasSubstr("0 of dataset, mixture, concatenation and zip, want"));
  EXPECT_THAT(refusal("dataset: 'a' mixture { dataset: 'b' }"), HasSubstr("the spec has 2 of"));
  EXPECT_THAT(refusal("mixture { dataset: 'a' weight: 1 } mixture { weight: 1 }"),
              HasSubstr("mixture[1].dataset names no dataset"));
  EXPECT_THAT(refusal("mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' }"),
              HasSubstr("mixture[1].weight is 0, want 1 or more"));
  EXPECT_THAT(refusal("mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' weight: 65536 }"),
              HasSubstr("mixture[1].weight is 65536, want 1 or more, and all weights together at "
                        "most 65536"));
  EXPECT_THAT(refusal("mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' weight: 1 "
                      "select { skip: 4 } }"),
              HasSubstr("mixture[1].select[0] leaves no record"));
  EXPECT_THAT(refusal("mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' weight: 1 } "
                      "select { skip: 4 }"),
              HasSubstr("set it in each member"));
  EXPECT_THAT(refusal("concatenation { dataset: 'a' } concatenation { dataset: 'b' weight: 2 }"),
              HasSubstr("concatenation[1].weight is 2, want none"));
  std::string many;
  for (int i = 0; i < 65; ++i) many += "mixture { dataset: 'a' weight: 1 } ";
  EXPECT_THAT(refusal(many), HasSubstr("mixture has 65 members, want at most 64"));
  EXPECT_THAT(refusal("mixture { dataset: 'a' weight: 1 } mixture { dataset: 'b' prefix: 'x' }"),
              HasSubstr("mixture[1].prefix is set, want none"));
}

constexpr char kZip[] = "zip { dataset: 'a' } zip { dataset: 'b' prefix: 'b/' } ";

TEST(OrderSpecOfTest, AZipIsOneDataset) {
  const std::string rest =
      "shuffle { mode: GLOBAL } seed: 3 select { skip: 1 } select { shard { count: 2 } } "
      "select { auto_shard { policy: OFF } } global_batch: 1";
  EXPECT_EQ(FirstRecords(kZip + rest, {{20, {}}}, 30),
            FirstRecords("dataset: 'a' " + rest, {{20, {}}}, 30));
  EXPECT_TRUE(MembersOf(Parsed(kZip)).empty());
  EXPECT_THAT(DatasetsOf(Parsed(kZip)), ElementsAre("a", "b"));
  EXPECT_EQ(DatasetNames(Parsed(kZip)), "a & b");
}

TEST(OrderSpecOfTest, InvalidZipSpecsAreRefusedWithAReason) {
  const auto refusal = [&](const std::string& text) {
    const absl::StatusOr<OrderSpec> order = OrderSpecOf(Parsed(text), {{4, {}}});
    EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(order.status().message());
  };
  const auto zipped = [&](const std::string& more) { return refusal(kZip + more); };
  for (const std::string other :
       {"dataset: 'c'", "mixture { dataset: 'c' weight: 1 }", "concatenation { dataset: 'c' }"}) {
    EXPECT_THAT(zipped(other), HasSubstr("the spec has 2 of dataset, mixture"));
  }
  EXPECT_THAT(refusal("zip { dataset: 'a' }"), HasSubstr("zip has 1 members, want 2 to 8"));
  std::string many;
  for (int i = 0; i < 9; ++i) many += "zip { dataset: 'a' } ";
  EXPECT_THAT(refusal(many), HasSubstr("zip has 9 members"));
  EXPECT_THAT(zipped("zip {}"), HasSubstr("zip[2].dataset names no dataset"));
  EXPECT_THAT(zipped("zip { dataset: 'c' weight: 2 }"), HasSubstr("zip[2].weight is 2, want none"));
  EXPECT_THAT(zipped("zip { dataset: 'c' select { skip: 1 } }"),
              HasSubstr("zip[2].select is set, but a zip joins record i of all its members; set "
                        "select of the spec"));
  EXPECT_THAT(zipped(absl::StrCat("zip { dataset: 'c' prefix: '", std::string(65, 'x'), "' }")),
              HasSubstr("zip[2].prefix has 65 bytes, want at most 64"));
  EXPECT_THAT(zipped("select { skip: 1 } select { interleave { cycle_length: 2 } }"),
              HasSubstr("select[1].interleave takes turns among files"));
  EXPECT_THAT(zipped("select { auto_shard { policy: FILE count: 2 } }"),
              HasSubstr("select[0].auto_shard takes whole files, but the members of a zip have "
                        "different files; want policy: DATA"));
  EXPECT_THAT(zipped("weights { from_step: 1 weights: [1, 1] }"),
              HasSubstr("weights is set, but the spec has no mixture"));
}

}  // namespace
}  // namespace systole
