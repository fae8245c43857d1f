#include "core/plan/where_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/plan/feed_plan.h"
#include "core/plan/note_columns.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

absl::StatusOr<Condition> Translated(const std::string& text) {
  return ConditionOf(
      SpecFromText(absl::StrCat("select { where { ", text, " } }")).select(0).where(),
      "select[0].where");
}

TEST(ConditionOfTest, TranslatesEveryKindOfTest) {
  const absl::StatusOr<Condition> condition = Translated(
      "all { feature: 'a' in: [1, 2] not_in: 3 less: 4 less_equal: 5 greater: 6 greater_equal: 7 "
      "present: true min_length: 8 max_length: 9 } all { any { feature: 'b' present: false } }");
  ASSERT_THAT(condition, IsOk());
  EXPECT_TRUE(condition->all);
  const Condition& a = condition->parts[0];
  EXPECT_EQ(a.field, "select[0].where.all[0]");
  EXPECT_THAT(a.in, ElementsAre(1, 2));
  EXPECT_THAT(a.not_in, ElementsAre(3));
  EXPECT_EQ(a.less, 4);
  EXPECT_EQ(a.less_equal, 5);
  EXPECT_EQ(a.greater, 6);
  EXPECT_EQ(a.greater_equal, 7);
  EXPECT_EQ(a.present, true);
  EXPECT_EQ(a.min_length, 8);
  EXPECT_EQ(a.max_length, 9);
  const Condition& b = condition->parts[1].parts[0];
  EXPECT_FALSE(condition->parts[1].all);
  EXPECT_EQ(b.field, "select[0].where.all[1].any[0]");
  EXPECT_EQ(b.present, false);
}

TEST(ConditionOfTest, InvalidConditionsAreRefusedWithAReason) {
  const auto refused = [](const std::string& text, const std::string& what) {
    EXPECT_THAT(Translated(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << text;
  };
  refused("", "select[0].where has no condition");
  refused("feature: 'a'", "does not test feature 'a'");
  refused("less: 1", "select[0].where.feature names no feature");
  refused("feature: 'a' less: 1 all { feature: 'a' less: 1 }",
          "has several of: tests of a feature");
  refused("all { feature: 'a' less: 1 } any { feature: 'a' less: 1 }", "has several of");
  refused("any { feature: 'a' less: nan }", "select[0].where.any[0].less is not a number");
  refused("feature: 'a' in: [1, nan]", "select[0].where.in[1] is not a number");
  refused("feature: 'a' min_length: -1", ".min_length is -1");
  refused(absl::StrCat("feature: '", std::string(1025, 'a'), "' less: 1"), "1025 bytes");
  std::string values;
  for (int i = 0; i < kMaxWhereValues; ++i) absl::StrAppend(&values, " in: ", i);
  EXPECT_THAT(Translated(absl::StrCat("feature: 'a'", values)), IsOk());
  refused(absl::StrCat("feature: 'a' in: 7", values), "select[0].where.in has 1025 values");
  std::string parts;
  for (int i = 1; i < kMaxWhereConditions; ++i) parts += " any { feature: 'a' less: 1 }";
  EXPECT_THAT(Translated(parts), IsOk());
  refused(parts + " any { feature: 'a' less: 1 }", "one condition too many; want at most 64");
  std::string deep = "feature: 'a' less: 1";
  for (int level = 1; level < kMaxWhereLevels; ++level) deep = absl::StrCat("all { ", deep, " }");
  EXPECT_THAT(Translated(deep), IsOk());
  refused(absl::StrCat("any { ", deep, " }"), "more than 8 levels deep");
}

// A dataset of shards in a folder. The records are counted over all shards. Record i has a label
// (i % 10), a list of i % 4 boxes and, if i % 7 is not 0, a width (i / 2). The record `damaged` is
// damaged; -1 means none.
std::shared_ptr<Dataset> Open(const TempFolder& folder, const std::string& name,
                              const std::vector<int>& records_per_shard, int damaged = -1) {
  int record = 0;
  for (size_t shard = 0; shard < records_per_shard.size(); ++shard) {
    std::string bytes;
    for (int i = 0; i < records_per_shard[shard]; ++i, ++record) {
      ExampleBuilder example;
      example.AddInt64s("label", {record % 10});
      if (record % 7 != 0) example.AddFloats("width", {static_cast<float>(record) / 2});
      example.AddInt64s("boxes", std::vector<int64_t>(static_cast<size_t>(record % 4)));
      std::string framed = ShardBuilder().Add(example.Serialize()).Build();
      if (record == damaged) framed.back() = static_cast<char>(framed.back() ^ 1);
      bytes += framed;
    }
    folder.Write(absl::StrCat(name, "-", shard, ".tfrecord"), bytes);
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open(name, {absl::StrCat(folder.path(), "/", name, "-*")});
  EXPECT_THAT(dataset, IsOk());
  return *dataset;
}

v1::FeedSpec Spec(const std::string& text) {
  return SpecFromText(text + " outputs { name: 'id' feature: 'record_id' }");
}

// The records of each of the first `count` epochs, in the order of the feed.
std::vector<std::vector<int64_t>> Epochs(const FeedPlan& plan, int64_t count) {
  std::vector<std::vector<int64_t>> epochs(static_cast<size_t>(count));
  const Order& order = plan.order();
  for (int64_t epoch = 0; epoch < count; ++epoch) {
    for (int64_t i = 0; i < order.spec().num_records; ++i) {
      epochs[static_cast<size_t>(epoch)].push_back(order.RecordAt(epoch, i));
    }
  }
  return epochs;
}

struct Case {
  std::string where;
  std::function<bool(int64_t record)> meets;
};

const int kDamaged = 33;

std::vector<Case> Cases() {
  return {
      {"feature: 'label' not_in: [3]", [](int64_t i) { return i % 10 != 3; }},
      {"feature: 'label' in: [1, 3, 12]", [](int64_t i) { return i % 10 == 1 || i % 10 == 3; }},
      {"feature: 'width' less: 20", [](int64_t i) { return i % 7 != 0 && i < 40; }},
      {"feature: 'width' present: false", [](int64_t i) { return i % 7 == 0; }},
      {"feature: 'boxes' min_length: 1 max_length: 2",
       [](int64_t i) { return i % 4 == 1 || i % 4 == 2; }},
      {"any { all { feature: 'label' greater: 5 } all { feature: 'width' greater_equal: 30 } } any "
       "{ feature: 'boxes' max_length: 0 }",
       [](int64_t i) { return (i % 10 > 5 && i % 7 != 0 && i >= 60) || i % 4 == 0; }},
  };
}

const char* const kShuffles[] = {"", "shuffle { mode: GLOBAL }",
                                 "shuffle { mode: WINDOW block_records: 5 window_records: 17 }"};

TEST(WherePlanTest, EveryRecordThatMeetsTheConditionComesOnceAndNoOther) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> dataset = Open(folder, "d", {70, 0, 31, 64, 1}, kDamaged);
  ASSERT_THAT(dataset->NoteColumns({"boxes", "label", "width"}), IsOk());
  struct Around {
    std::string before;
    std::string after;
    std::function<std::vector<int64_t>(std::vector<int64_t>)> first;
    std::function<std::vector<int64_t>(std::vector<int64_t>)> last;
  };
  const auto same = [](std::vector<int64_t> records) { return records; };
  const auto drop = [](size_t count) {
    return [count](std::vector<int64_t> records) {
      records.erase(records.begin(),
                    records.begin() + static_cast<int64_t>(std::min(count, records.size())));
      return records;
    };
  };
  const auto odd = [](const std::vector<int64_t>& records) {
    std::vector<int64_t> kept;
    for (size_t i = 1; i < records.size(); i += 2) kept.push_back(records[i]);
    return kept;
  };
  const std::vector<Around> arounds = {
      {"", "", same, same},
      {"select { skip: 9 }", "select { skip: 3 }", drop(9), drop(3)},
      {"select { shard { count: 2 index: 1 } }", "", odd, same},
      {"", "select { shard { count: 2 index: 1 } }", same, odd}};
  for (const Case& each : Cases()) {
    for (const Around& around : arounds) {
      std::vector<int64_t> all;
      for (int64_t i = 0; i < dataset->num_records(); ++i) all.push_back(i);
      std::vector<int64_t> wanted;
      for (const int64_t i : around.first(all)) {
        if (i != kDamaged && each.meets(i)) wanted.push_back(i);
      }
      wanted = around.last(wanted);
      for (const char* const shuffle : kShuffles) {
        const std::string text =
            absl::StrCat("dataset: 'd' seed: 5 tail: PAD global_batch: 8 ", shuffle, around.before,
                         "select { where { ", each.where, " } }", around.after);
        const auto plan = FeedPlan::Create(Spec(text), dataset);
        ASSERT_THAT(plan, IsOk()) << text;
        const std::vector<std::vector<int64_t>> epochs = Epochs(**plan, 2);
        for (const std::vector<int64_t>& epoch : epochs) {
          EXPECT_THAT(epoch, UnorderedElementsAreArray(wanted)) << text;
        }
        if (*shuffle == '\0') {
          EXPECT_EQ(epochs[0], wanted) << text;
        }
      }
    }
  }
}

TEST(WherePlanTest, MembersChooseByTheirOwnConditions) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> a = Open(folder, "a", {40, 25});
  const std::shared_ptr<Dataset> b = Open(folder, "b", {33});
  ASSERT_THAT(a->NoteColumns({"label"}), IsOk());
  ASSERT_THAT(b->NoteColumns({"label", "boxes"}), IsOk());
  const std::shared_ptr<Dataset> both = *Dataset::Join({a, b});
  std::vector<int64_t> of_a;
  std::vector<int64_t> of_b;
  for (int64_t i = 0; i < 65; ++i) {
    if (i % 10 < 2) of_a.push_back(i);
  }
  for (int64_t i = 0; i < 33; ++i) {
    if (i % 4 == 3) of_b.push_back(65 + i);
  }
  std::vector<int64_t> wanted = of_a;
  wanted.insert(wanted.end(), of_b.begin(), of_b.end());
  const auto members = [](const std::string& kind, const std::string& weight) {
    return absl::StrCat(
        kind, " { dataset: 'a' ", weight, " select { where { feature: 'label' less: 2 } } } ", kind,
        " { dataset: 'b' ", weight, " select { where { feature: 'boxes' min_length: 3 } } } ");
  };
  for (const char* const shuffle : kShuffles) {
    const auto joined = FeedPlan::Create(
        Spec(absl::StrCat("global_batch: 2 tail: PAD ", shuffle, members("concatenation", ""))),
        both);
    ASSERT_THAT(joined, IsOk());
    EXPECT_THAT(Epochs(**joined, 1)[0], UnorderedElementsAreArray(wanted));
    EXPECT_THAT((*joined)->where_lists(), ElementsAre(Field(&WhereList::records, of_a.size()),
                                                      Field(&WhereList::records, of_b.size())));
    // Let |a| and |b| be the sizes of of_a and of_b. The members have equal weights, so each member
    // has half of the 2 * |a| * |b| turns below. With |a| * |b| turns, each record of `a` comes |b|
    // times, and each record of `b` comes |a| times.
    const auto mixed = FeedPlan::Create(
        Spec(absl::StrCat("global_batch: 2 ", shuffle, members("mixture", "weight: 1"))), both);
    ASSERT_THAT(mixed, IsOk());
    std::map<int64_t, size_t> counts;
    const int64_t epoch = (*mixed)->order().spec().num_records;
    const auto turns = static_cast<int64_t>(2 * of_a.size() * of_b.size());
    for (int64_t i = 0; i < turns; ++i) ++counts[(*mixed)->order().RecordAt(i / epoch, i % epoch)];
    ASSERT_EQ(counts.size(), wanted.size());
    for (const int64_t record : of_a) EXPECT_EQ(counts[record], of_b.size());
    for (const int64_t record : of_b) EXPECT_EQ(counts[record], of_a.size());
  }
  // The feed's own condition selects from the records of all members.
  const auto own = FeedPlan::Create(
      Spec("global_batch: 2 tail: PAD concatenation { dataset: 'a' select { skip: 60 } } "
           "concatenation { dataset: 'b' } select { where { feature: 'label' in: [1] } }"),
      both);
  ASSERT_THAT(own, IsOk());
  EXPECT_THAT(Epochs(**own, 1)[0], ElementsAre(61, 66, 76, 86, 96));
}

TEST(WherePlanTest, AConditionKeepsTheOrderOfInterleavedMembers) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> both =
      *Dataset::Join({Open(folder, "a", {40, 25, 3}), Open(folder, "b", {33, 8})});
  ASSERT_THAT(both->NoteColumns({"label"}), IsOk());
  const std::string members =
      "global_batch: 2 tail: PAD concatenation { dataset: 'a' select { interleave { cycle_length: "
      "3 "
      "block_length: 2 } } } concatenation { dataset: 'b' select { interleave { cycle_length: 2 } "
      "} "
      "} select { shard { count: 2 index: 1 } } ";
  const auto all = FeedPlan::Create(Spec(members), both);
  const auto some =
      FeedPlan::Create(Spec(members + "select { where { feature: 'label' not_in: 3 } }"), both);
  ASSERT_THAT(all, IsOk());
  ASSERT_THAT(some, IsOk());
  std::vector<int64_t> wanted;
  const std::vector<std::vector<int64_t>> epochs = Epochs(**all, 1);
  for (const int64_t record : epochs[0]) {
    // Record 68 is the first record of 'b', and has label 0 like the first record of 'a'.
    if ((record < 68 ? record : record - 68) % 10 != 3) wanted.push_back(record);
  }
  EXPECT_EQ(Epochs(**some, 1)[0], wanted);
}

TEST(WherePlanTest, AMissingColumnErrorNamesTheIndexCommand) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> dataset = Open(folder, "d", {20, 20});
  const auto plan = [&](const std::string& where) {
    return FeedPlan::Create(
        Spec(absl::StrCat("dataset: 'd' global_batch: 2 select { skip: 1 } select { where { ",
                          where, " } }")),
        dataset);
  };
  EXPECT_THAT(
      plan("any { feature: 'width' less: 2 } any { feature: 'lable' less: 2 }"),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("select[1].where"), HasSubstr("dataset 'd'"),
                     HasSubstr("shard 'd-0.tfrecord'"),
                     HasSubstr("`systole index --columns lable,width`"),
                     HasSubstr("did you mean 'label'?"), testing::Not(HasSubstr(folder.path())))));
  ASSERT_THAT(
      NoteColumnsFor(Spec("dataset: 'd' select { where { feature: 'boxes' less: 1 } }"), *dataset),
      IsOk());
  EXPECT_THAT(plan("feature: 'boxes' less: 1"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("feature 'boxes', which has more than one value in record 2 "
                                       "of shard 'd-0.tfrecord'"))));
  EXPECT_THAT(
      plan("feature: 'boxes' min_length: 9"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("select[1] leaves no record")));
}

TEST(WherePlanTest, ARecordThatIsDamagedLaterKeepsItsPlace) {
  const TempFolder folder;
  const v1::FeedSpec spec = Spec(
      "dataset: 'd' global_batch: 2 shuffle { mode: GLOBAL } select { where { feature: 'label' "
      "less: 8 } }");
  const std::shared_ptr<Dataset> whole = Open(folder, "d", {50});
  ASSERT_THAT(NoteColumnsFor(spec, *whole), IsOk());
  const auto before = FeedPlan::Create(spec, whole);
  ASSERT_THAT(before, IsOk());
  std::string bytes = ReadWholeFile(folder / "d-0.tfrecord");
  bytes[20] = static_cast<char>(bytes[20] ^ 1);  // In the payload of record 0.
  folder.Write("d-0.tfrecord", bytes);
  const absl::StatusOr<std::shared_ptr<Dataset>> damaged = Dataset::Open("d", {folder / "d-*"});
  ASSERT_THAT(damaged, IsOk());
  const auto kept = FeedPlan::Create(spec, *damaged);
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ((*kept)->order_fingerprint(), (*before)->order_fingerprint());
  EXPECT_EQ(Epochs(**kept, 2), Epochs(**before, 2));
}

TEST(WherePlanTest, TheOrderFingerprintDependsOnTheSelectedRecordsOnly) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> dataset = Open(folder, "d", {50});
  ASSERT_THAT(dataset->NoteColumns({"label"}), IsOk());
  const auto fingerprint = [&](const std::string& where) {
    const auto plan = FeedPlan::Create(
        Spec(absl::StrCat("dataset: 'd' global_batch: 2 select { where { ", where, " } }")),
        dataset);
    EXPECT_THAT(plan, IsOk());
    return (*plan)->order_fingerprint();
  };
  // The fingerprint depends on the records that the condition selects, not on its text.
  EXPECT_EQ(fingerprint("feature: 'label' less: 2"), fingerprint("feature: 'label' in: [0, 1]"));
  EXPECT_NE(fingerprint("feature: 'label' less: 2"), fingerprint("feature: 'label' in: [0, 2]"));
}

TEST(WherePlanTest, PlansOfOneConditionShareAList) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> dataset = Open(folder, "d", {50});
  ASSERT_THAT(dataset->NoteColumns({"label"}), IsOk());
  const auto lists = std::make_shared<RecordLists>();
  const auto plan = [&](const std::string& more) {
    return *FeedPlan::Create(
        Spec(absl::StrCat("dataset: 'd' global_batch: 2 select { where { feature: 'label' less: 5 "
                          "} }",
                          more)),
        dataset, lists);
  };
  auto one = plan("");
  auto two = plan("seed: 9 shuffle { mode: GLOBAL } select { take: 6 }");
  EXPECT_EQ(lists->size(), 1u);
  one = nullptr;
  EXPECT_EQ(lists->size(), 1u);
  two = nullptr;
  EXPECT_EQ(lists->size(), 0u);
}

TEST(WherePlanTest, ASpecsWhereStepsAndConditionsAreBoundedTogether) {
  const auto spec = [](int members, int wheres, int conditions) {
    v1::FeedSpec spec;
    for (int m = 0; m < members; ++m) {
      v1::Member& member = *spec.add_mixture();
      for (int w = 0; w < wheres; ++w) {
        v1::Where& where = *member.add_select()->mutable_where();
        const auto test = [](v1::Where& one) {
          one.set_feature("a");
          one.set_present(true);
        };
        if (conditions == 1) test(where);
        for (int c = 1; c < conditions; ++c) test(*where.add_any());
      }
    }
    return spec;
  };
  EXPECT_THAT(CheckWheres(spec(2, 4, 8)), IsOk());
  EXPECT_THAT(CheckWheres(spec(3, 3, 1)), StatusIs(absl::StatusCode::kInvalidArgument,
                                                   HasSubstr("9 `where` steps, want at most 8")));
  EXPECT_THAT(CheckWheres(spec(5, 1, 13)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("have 65 conditions")));
}

TEST(WherePlanTest, AWrongSpecIsRefusedBeforeAColumnIsRead) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> dataset = Open(folder, "d", {20});
  const auto refused = [&](const std::string& text, const std::string& what) {
    // No column was noted, so a plan that reads a column would fail with another error.
    EXPECT_THAT(FeedPlan::Create(SpecFromText(text), dataset),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  const std::string spec =
      "dataset: 'd' global_batch: 2 select { where { feature: 'label' less: 1 } } ";
  refused(spec + "outputs { name: 'x' feature: 'none' }", "'none'");
  refused(spec + "outputs { name: 'x' feature: 'label' transforms { decode_jpeg {} } }", "'x'");
  refused(spec + "select { where {} } outputs { name: 'x' feature: 'label' }",
          "select[1].where has no condition");
}

TEST(WherePlanTest, ErrorsNameTheSelectOfAMemberByItsFullPath) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> joined = *Dataset::Join({Open(folder, "a", {9})});
  const auto spec = [](const std::string& select) {
    return Spec(
        absl::StrCat("global_batch: 2 concatenation { dataset: 'a' select { ", select, " } }"));
  };
  const auto named = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    HasSubstr("concatenation[0].select[0]" + what));
  };
  EXPECT_THAT(FeedPlan::Create(spec("where {}"), joined), named(".where has no condition"));
  EXPECT_THAT(NoteColumnsFor(spec("where {}"), *joined), named(".where has no condition"));
  EXPECT_THAT(FeedPlan::Create(spec("skip: -1"), joined), named(" skip is -1"));
  EXPECT_THAT(FeedPlan::Create(spec("auto_shard { policy: 99 }"), joined),
              named(".auto_shard.policy is 99"));
}

}  // namespace
}  // namespace systole
