#include "client/cli/pacing/missing_tally.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(MissingTallyTest, ReportsMaskedExamplesTheirRecordsAndWhereToLook) {
  MissingTally tally;
  tally.Add({.masked_examples = 2, .padded_examples = 5, .masked_records = {40, 17}});
  tally.Add({.masked_examples = 1, .masked_records = {17}});
  EXPECT_THAT(
      tally.MaskedText(),
      AllOf(StartsWith("3 examples are masked: zeros stand in the place of damaged records"),
            HasSubstr("may have held several records"), HasSubstr("(record_id 17, 40)"),
            HasSubstr("`systole status`"), HasSubstr("server's log")));
  JsonWriter json;
  json.BeginObject();
  tally.AppendTo(json);
  EXPECT_EQ(json.EndObject().text(),
            R"({"masked_examples":3,"padded_examples":5,"masked_records":[17,40]})");
}

TEST(MissingTallyTest, PaddedExamplesAreNotReportedAsMasked) {
  EXPECT_EQ(MissingTally({.padded_examples = 5}).MaskedText(), "");
  EXPECT_EQ(MissingTally().MaskedText(), "");
}

TEST(MissingTallyTest, ASentenceNamesTenRecordsAtMost) {
  FeedClientStats stats = {.masked_examples = 12};
  for (int64_t record = 0; record < 12; ++record) stats.masked_records.push_back(record);
  EXPECT_THAT(MissingTally(stats).MaskedText(), HasSubstr("8, 9, ..)"));
  EXPECT_THAT(MissingTally({.masked_examples = 1}).MaskedText(),
              AllOf(StartsWith("1 example is masked"), testing::Not(HasSubstr("record_id"))));
}

}  // namespace
}  // namespace systole
