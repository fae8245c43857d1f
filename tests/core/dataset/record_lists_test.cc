#include "core/dataset/record_lists.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

using ListPointer = std::shared_ptr<const RecordList>;

TEST(RecordListsTest, AListIsMadeOnceForAllWhoUseItAndFreedAfterTheLast) {
  RecordLists lists;
  int made = 0;
  const auto make = [&]() -> absl::StatusOr<RecordList> {
    ++made;
    return RecordList({0b11}, 2);
  };
  absl::StatusOr<ListPointer> first = lists.Find("a", make);
  absl::StatusOr<ListPointer> second = lists.Find("a", make);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(lists.size(), 1u);
  first->reset();
  EXPECT_EQ(lists.size(), 1u);
  second->reset();
  EXPECT_EQ(lists.size(), 0u);
  ASSERT_THAT(lists.Find("a", make), IsOk());
  EXPECT_EQ(made, 2);
}

TEST(RecordListsTest, OneMoreThanTheMostIsRefusedUntilOneIsFreed) {
  RecordLists lists;
  const auto make = []() -> absl::StatusOr<RecordList> { return RecordList({}, 0); };
  std::vector<ListPointer> used;
  for (size_t i = 0; i < RecordLists::kMost; ++i) {
    absl::StatusOr<ListPointer> list = lists.Find(absl::StrCat(i), make);
    ASSERT_THAT(list, IsOk());
    used.push_back(*std::move(list));
  }
  EXPECT_THAT(lists.Find("one more", make),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("64 lists")));
  EXPECT_THAT(lists.Find("7", make), IsOk());
  used.pop_back();
  EXPECT_THAT(lists.Find("one more", make), IsOk());
}

TEST(RecordListsTest, NobodyWaitsForTheListOfAnother) {
  RecordLists lists;
  const auto make = []() -> absl::StatusOr<RecordList> { return RecordList({}, 0); };
  const absl::StatusOr<ListPointer> known = lists.Find("known", make);
  const auto other = [&]() -> absl::StatusOr<RecordList> {
    EXPECT_THAT(lists.Find("b", make),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("ask again")));
    EXPECT_THAT(lists.Find("known", make), IsOk());
    return make();
  };
  EXPECT_THAT(lists.Find("a", other), IsOk());
  EXPECT_THAT(lists.Find("b", make), IsOk());
}

TEST(RecordListsTest, AListThatCannotBeMadeTakesNoPlace) {
  RecordLists lists;
  EXPECT_THAT(
      lists.Find("a", []() -> absl::StatusOr<RecordList> { return absl::UnavailableError("no"); }),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no")));
  EXPECT_EQ(lists.size(), 0u);
}

}  // namespace
}  // namespace systole
