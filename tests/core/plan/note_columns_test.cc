#include "core/plan/note_columns.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/plan/feed_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Two shards. All records have `label` and `other`. The records of the second shard also have
// `late`. If `has_rare` is true, the last record of the second shard also has `rare`.
std::shared_ptr<Dataset> Open(const TempFolder& folder, const std::string& name, bool has_rare) {
  for (int shard = 0; shard < 2; ++shard) {
    ShardBuilder builder;
    for (int i = 0; i < 40; ++i) {
      ExampleBuilder example;
      example.AddInt64s("label", {i}).AddInt64s("other", {i});
      if (shard == 1) example.AddInt64s("late", {i});
      if (has_rare && shard == 1 && i == 39) example.AddInt64s("rare", {7});
      builder.Add(example.Serialize());
    }
    folder.Write(absl::StrCat(name, "-", shard, ".tfrecord"), builder.Build());
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open(name, {absl::StrCat(folder.path(), "/", name, "-*")});
  EXPECT_THAT(dataset, IsOk());
  return *dataset;
}

int64_t ColumnFiles(const TempFolder& folder) {
  const std::vector<std::string> names = folder.List();
  return std::count_if(names.begin(), names.end(),
                       [](const std::string& name) { return absl::EndsWith(name, ".column"); });
}

absl::StatusOr<std::vector<uint64_t>> Meet(const Dataset& dataset, const Condition& condition) {
  std::set<std::string> found;
  return dataset.RecordsThatMeet(condition, kLookUpBytes, found);
}

TEST(NoteColumnsTest, AMisspeltFeatureIsRefusedWithTheNearestNameAndNothingIsKept) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> dataset = Open(folder, "d", false);
  for (const char* const where :
       {"feature: 'lable' less: 3", "feature: 'lable' present: false",
        "any { feature: 'lable' present: true } any { feature: 'lable' in: 1 }"}) {
    const v1::FeedSpec spec =
        SpecFromText(absl::StrCat("dataset: 'd' select { where { ", where, " } }"));
    EXPECT_THAT(NoteColumnsFor(spec, *dataset),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("dataset 'd': no record has the feature 'lable'"),
                               HasSubstr("did you mean 'label'?"), Not(HasSubstr(folder.path())))))
        << where;
  }
  // No feature has a similar name.
  EXPECT_THAT(NoteColumnsOf(*dataset, {"something"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("have label, late, other")));
  EXPECT_EQ(ColumnFiles(folder), 0);
}

TEST(NoteColumnsTest, TheErrorSaysThatTheRecordsAreNotExamples) {
  const TempFolder folder;
  folder.Write("text.tfrecord", ShardBuilder().Add("one line").Add("another line").Build());
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("d", {absl::StrCat(folder.path(), "/text.tfrecord")});
  ASSERT_THAT(dataset, IsOk());
  EXPECT_THAT(NoteColumnsOf(**dataset, {"label"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("none of the records that were looked at can be read as "
                                 "tf.train.Example")));
}

TEST(NoteColumnsTest, AFeatureOfASingleRecordThatNoSampleHasSeenIsNoted) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> dataset = Open(folder, "d", true);
  const absl::StatusOr<NotedColumns> noted = NoteColumnsOf(*dataset, {"rare"});
  ASSERT_THAT(noted, IsOk());
  EXPECT_EQ(noted->features[0].records, 1);
  EXPECT_EQ(ColumnFiles(folder), 2);
}

TEST(NoteColumnsTest, AFeedConditionMayTestAFeatureOfOnlyOneMember) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> with = Open(folder, "a", true);
  const std::shared_ptr<Dataset> without = Open(folder, "b", false);
  const std::shared_ptr<Dataset> both = *Dataset::Join({with, without});
  const auto note = [&](const std::string& of_b, const std::string& of_all) {
    return NoteColumnsFor(
        SpecFromText(absl::StrCat("concatenation { dataset: 'a' } concatenation { dataset: 'b' ",
                                  of_b, " } ", of_all)),
        *both);
  };
  // The error suggests a feature of the dataset's sample. The sample has `late`, although the first
  // record of the dataset lacks `late`.
  EXPECT_THAT(note("", "select { where { feature: 'laet' present: true } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("feature 'laet'"), HasSubstr("did you mean 'late'?"))));
  EXPECT_THAT(note("select { where { feature: 'rare' present: true } }", ""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dataset 'b': no record has the feature 'rare'")));
  EXPECT_EQ(ColumnFiles(folder), 0);
  EXPECT_THAT(note("", "select { where { feature: 'rare' present: false } }"), IsOk());
  EXPECT_EQ(ColumnFiles(folder), 4);
}

// A spec over 'a' and 'b' tests 'rare', so a column of 'rare' is noted for each shard of both
// datasets. A later feed over 'b' alone finds columns of 'rare'. The feed is refused all the same,
// because no record of 'b' has 'rare'.
TEST(NoteColumnsTest, AFeatureThatNoRecordOfADatasetHasIsRefusedDespiteAColumn) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> a = Open(folder, "a", true);
  const std::shared_ptr<Dataset> b = Open(folder, "b", false);
  const std::shared_ptr<Dataset> both = *Dataset::Join({a, b});
  const std::string where = "select { where { feature: 'rare' present: false } } ";
  const std::string rest = " global_batch: 1 outputs { name: 'label' feature: 'label' }";
  const v1::FeedSpec of_both = SpecFromText(
      absl::StrCat("concatenation { dataset: 'a' } concatenation { dataset: 'b' } ", where, rest));
  ASSERT_THAT(NoteColumnsFor(of_both, *both), IsOk());
  ASSERT_EQ(ColumnFiles(folder), 4);
  EXPECT_THAT(FeedPlan::Create(of_both, both), IsOk());
  EXPECT_THAT(FeedPlan::Create(SpecFromText(absl::StrCat("dataset: 'a' ", where, rest)), a),
              IsOk());
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("dataset 'b': no record has the feature 'rare'"));
  EXPECT_THAT(FeedPlan::Create(SpecFromText(absl::StrCat("dataset: 'b' ", where, rest)), b),
              refused);
  // If only the member 'b' has the condition, the error is the same.
  EXPECT_THAT(
      FeedPlan::Create(SpecFromText(absl::StrCat("concatenation { dataset: 'a' } concatenation { ",
                                                 "dataset: 'b' ", where, "}", rest)),
                       both),
      refused);
  // A condition on the member 'b' of a zip is refused, too.
  const std::shared_ptr<Dataset> zipped =
      *Dataset::Zip({{.dataset = a, .prefix = ""}, {.dataset = b, .prefix = "b/"}});
  EXPECT_THAT(FeedPlan::Create(SpecFromText(absl::StrCat(
                                   "zip { dataset: 'a' } zip { dataset: 'b' prefix: 'b/' } select "
                                   "{ where { feature: 'b/rare' present: false } }",
                                   rest)),
                               zipped),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dataset 'a & b': no record has the feature 'b/rare'")));
}

// A failed NoteColumnsFor() must not leave a column that a later call uses.
TEST(NoteColumnsTest, ARefusedFeatureLeavesNoColumnForALaterCall) {
  const TempFolder folder;
  const std::shared_ptr<Dataset> a = Open(folder, "a", true);
  const std::shared_ptr<Dataset> b = Open(folder, "b", false);
  const std::string where = "select { where { feature: 'rare' present: false } } ";
  const v1::FeedSpec of_b = SpecFromText(absl::StrCat("dataset: 'b' ", where));
  const v1::FeedSpec of_both = SpecFromText(
      absl::StrCat("concatenation { dataset: 'a' } concatenation { dataset: 'b' ", where, "}"));
  const Condition condition = {.field = "where", .feature = "rare", .present = false};
  EXPECT_THAT(NoteColumnsFor(of_b, *b),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'rare'")));
  EXPECT_THAT(Meet(*b, condition), StatusIs(absl::StatusCode::kFailedPrecondition,
                                            HasSubstr("systole index --columns rare")));
  EXPECT_THAT(NoteColumnsFor(of_both, **Dataset::Join({a, b})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'rare'")));
  EXPECT_THAT(Meet(*b, condition), StatusIs(absl::StatusCode::kFailedPrecondition,
                                            HasSubstr("systole index --columns rare")));
}

}  // namespace
}  // namespace systole
