#include "core/column/condition.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/column/column.h"
#include "core/example/feature_view.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Column Int64s(const std::vector<int64_t>& values) {
  ColumnBuilder builder("n");
  for (const int64_t value : values) {
    EXPECT_THAT(builder.Add(FeatureView::OfInt64("n", value)), IsOk());
  }
  return std::move(builder).Build();
}

Column Floats(const std::vector<float>& values) {
  ColumnBuilder builder("n");
  for (const float value : values) {
    EXPECT_THAT(builder.Add(FeatureView::OfFloat("n", value)), IsOk());
  }
  return std::move(builder).Build();
}

std::vector<int64_t> Meet(const Condition& condition, const std::vector<Column>& columns) {
  const int64_t records = columns[0].num_records;
  const absl::StatusOr<std::vector<uint64_t>> meeting =
      RecordsThatMeet(condition, [&](const std::string& feature) -> absl::StatusOr<Column> {
        for (const Column& column : columns) {
          if (column.feature == feature) return column;
        }
        return absl::NotFoundError(feature);
      });
  EXPECT_THAT(meeting, IsOk());
  const std::vector<uint64_t>& bits = *meeting;
  EXPECT_EQ(bits.size(), static_cast<size_t>((records + 63) / 64));
  std::vector<int64_t> met;
  for (int64_t i = 0; i < static_cast<int64_t>(bits.size()) * 64; ++i) {
    if ((bits[static_cast<size_t>(i / 64)] >> (i % 64) & 1) != 0) met.push_back(i);
  }
  return met;
}

TEST(ConditionTest, InNotInAndRangesSelectRecordsByTheirValue) {
  const std::vector<Column> columns = {Int64s({3, 1, 4, 1, 5, -9})};
  EXPECT_THAT(Meet({.feature = "n", .in = {1, 5, 7}}, columns), ElementsAre(1, 3, 4));
  EXPECT_THAT(Meet({.feature = "n", .not_in = {1, 5}}, columns), ElementsAre(0, 2, 5));
  EXPECT_THAT(Meet({.feature = "n", .less = 3}, columns), ElementsAre(1, 3, 5));
  EXPECT_THAT(Meet({.feature = "n", .less_equal = 3}, columns), ElementsAre(0, 1, 3, 5));
  EXPECT_THAT(Meet({.feature = "n", .greater = 3}, columns), ElementsAre(2, 4));
  EXPECT_THAT(Meet({.feature = "n", .greater_equal = 3}, columns), ElementsAre(0, 2, 4));
  EXPECT_THAT(Meet({.feature = "n", .not_in = {4}, .less = 5, .greater = 1}, columns),
              ElementsAre(0));
}

TEST(ConditionTest, Int64sAreComparedExactlyOverTheirWholeRange) {
  const int64_t odd = (int64_t{1} << 53) + 1;  // No double is equal to it.
  const std::vector<Column> columns = {Int64s({kLeast, -1, 0, 1, odd, kMost})};
  const double two_to_53 = 9007199254740992.0;
  const double two_to_63 = 9223372036854775808.0;
  EXPECT_THAT(Meet({.feature = "n", .in = {two_to_53, two_to_63, 0.5, -two_to_63}}, columns),
              ElementsAre(0));
  EXPECT_THAT(Meet({.feature = "n", .greater = two_to_53}, columns), ElementsAre(4, 5));
  EXPECT_THAT(Meet({.feature = "n", .less_equal = two_to_53}, columns), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Meet({.feature = "n", .less = two_to_63}, columns), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Meet({.feature = "n", .less = -two_to_63}, columns), IsEmpty());
  EXPECT_THAT(Meet({.feature = "n", .less_equal = -two_to_63}, columns), ElementsAre(0));
  EXPECT_THAT(Meet({.feature = "n", .greater = -two_to_63}, columns), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Meet({.feature = "n", .greater_equal = two_to_63}, columns), IsEmpty());
  EXPECT_THAT(Meet({.feature = "n", .greater = -kInfinity}, columns),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(Meet({.feature = "n", .less = -kInfinity}, columns), IsEmpty());
  EXPECT_THAT(Meet({.feature = "n", .greater = kInfinity}, columns), IsEmpty());
  EXPECT_THAT(Meet({.feature = "n", .less = 0.5, .greater = -0.5}, columns), ElementsAre(2));
  EXPECT_THAT(Meet({.feature = "n", .less_equal = -0.5}, columns), ElementsAre(0, 1));
  EXPECT_THAT(Meet({.feature = "n", .less_equal = 1.5, .greater_equal = 0.5}, columns),
              ElementsAre(3));
}

TEST(ConditionTest, ForFloatColumnsNumbersInConditionsAreRoundedToFloat) {
  const float nan = std::nanf("");
  const std::vector<Column> columns = {
      Floats({0.1F, 0.25F, nan, -0.0F, std::numeric_limits<float>::infinity()})};
  EXPECT_THAT(Meet({.feature = "n", .in = {0.1, 0}}, columns), ElementsAre(0, 3));
  EXPECT_THAT(Meet({.feature = "n", .not_in = {0.1}}, columns), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Meet({.feature = "n", .less_equal = 0.1}, columns), ElementsAre(0, 3));
  EXPECT_THAT(Meet({.feature = "n", .less = 1e300}, columns), ElementsAre(0, 1, 3));
  EXPECT_THAT(Meet({.feature = "n", .in = {kInfinity}}, columns), ElementsAre(4));
  EXPECT_THAT(Meet({.feature = "n", .greater = -1e300}, columns), ElementsAre(0, 1, 3, 4));
}

TEST(ConditionTest, ARecordWithoutTheFeatureMatchesOnlyPresentFalse) {
  ColumnBuilder builder("n");
  ASSERT_THAT(builder.Add(FeatureView::OfInt64("n", 0)), IsOk());
  ASSERT_THAT(builder.Add(FeatureView("n")), IsOk());
  builder.AddDamaged();
  const std::vector<Column> columns = {std::move(builder).Build()};
  EXPECT_THAT(Meet({.feature = "n", .present = true}, columns), ElementsAre(0));
  EXPECT_THAT(Meet({.feature = "n", .present = false}, columns), ElementsAre(1));
  EXPECT_THAT(Meet({.feature = "n", .in = {0}}, columns), ElementsAre(0));
  EXPECT_THAT(Meet({.feature = "n", .not_in = {7}}, columns), ElementsAre(0));
  EXPECT_THAT(Meet({.feature = "n", .max_length = 5}, columns), ElementsAre(0));
  EXPECT_THAT(Meet({.feature = "n", .in = {0}, .present = false}, columns), IsEmpty());
}

TEST(ConditionTest, AllAndAnyCombineConditionsOverMoreThan64Records) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 200; ++i) values.push_back(i);
  const std::vector<Column> columns = {Int64s(values)};
  const Condition low = {.feature = "n", .less = 66};
  const Condition high = {.feature = "n", .greater = 62};
  const Condition last = {.feature = "n", .in = {199}};
  EXPECT_THAT(Meet({.all = true, .parts = {low, high}}, columns), ElementsAre(63, 64, 65));
  EXPECT_THAT(Meet({.parts = {{.all = true, .parts = {low, high}}, last}}, columns),
              ElementsAre(63, 64, 65, 199));
  EXPECT_THAT(FeaturesOf({.parts = {low, {.feature = "a"}, high}}), ElementsAre("a", "n"));
}

TEST(ConditionTest, ComparingListsBytesOrMixedTypesIsAnErrorThatNamesTheRecord) {
  const Condition compares = {.field = "select[0].where.any[1]", .feature = "n", .in = {1}};
  const auto check = [&](const ColumnFacts& first, const ColumnFacts& second) {
    return CheckComparable(
        {.parts = {compares}}, "n",
        {{.shard = "shard 'a'", .facts = first}, {.shard = "shard 'b'", .facts = second}});
  };
  EXPECT_THAT(check({.first_int64 = 0}, {.first_int64 = 0}), IsOk());
  EXPECT_THAT(check({.first_int64 = 0}, {}), IsOk());
  EXPECT_THAT(check({.first_int64 = 0}, {.first_int64 = 0, .first_long = 7}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("select[0].where.any[1]"), HasSubstr("feature 'n'"),
                             HasSubstr("more than one value in record 7 of shard 'b'"))));
  EXPECT_THAT(check({.first_bytes = 2}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes in record 2")));
  EXPECT_THAT(check({.first_int64 = 4}, {.first_float = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a float in record 1 of shard 'b' and an int64 in record 4 of "
                                 "shard 'a'")));
  // The presence and the length of a feature can be tested even if its values are bytes.
  EXPECT_THAT(CheckComparable({.feature = "n", .present = true, .min_length = 2}, "n",
                              {{.shard = "shard 'a'", .facts = {.first_bytes = 0}}}),
              IsOk());
}

TEST(ConditionTest, EachColumnIsReadOnceEvenIfSeveralConditionsTestIt) {
  const Condition condition = {
      .parts = {
          {.feature = "n", .less = 0},
          {.all = true, .parts = {{.feature = "m", .present = true}, {.feature = "n", .in = {2}}}},
          {.feature = "n", .greater = 9}}};
  std::vector<std::string> asked;
  const auto get = [&](const std::string& feature) -> absl::StatusOr<Column> {
    asked.push_back(feature);
    Column column = Int64s({-1, 2, 3, 10});
    column.feature = feature;
    return column;
  };
  EXPECT_THAT(RecordsThatMeet(condition, get), IsOkAndHolds(ElementsAre(0b1011)));
  EXPECT_THAT(asked, ElementsAre("m", "n"));
  InterruptFlag unwanted;
  const InterruptScope scope(unwanted);
  unwanted.Raise();
  EXPECT_THAT(RecordsThatMeet(condition, get),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer needed")));
  EXPECT_EQ(asked.size(), 2u);
}

}  // namespace
}  // namespace systole
