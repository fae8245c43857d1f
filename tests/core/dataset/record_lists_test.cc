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

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using ListPointer = std::shared_ptr<const RecordList>;

absl::StatusOr<RecordList> Make() { return RecordList({}, 0); }

// Takes lists for `peer` until it gets no more. Returns how many it got.
size_t TakeAll(RecordLists& lists, const std::string& peer, std::vector<ListPointer>& used) {
  for (size_t i = 0;; ++i) {
    absl::StatusOr<ListPointer> list = lists.Find(absl::StrCat(peer, i), peer, Make);
    if (!list.ok()) return i;
    used.push_back(*std::move(list));
  }
}

TEST(RecordListsTest, AListIsMadeOnceForAllWhoUseItAndFreedAfterTheLast) {
  RecordLists lists;
  int made = 0;
  const auto make = [&]() -> absl::StatusOr<RecordList> {
    ++made;
    return RecordList({0b11}, 2);
  };
  absl::StatusOr<ListPointer> first = lists.Find("a", "one", make);
  absl::StatusOr<ListPointer> second = lists.Find("a", "two", make);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(lists.size(), 1u);
  first->reset();
  EXPECT_EQ(lists.size(), 1u);
  second->reset();
  EXPECT_EQ(lists.size(), 0u);
  ASSERT_THAT(lists.Find("a", "one", make), IsOk());
  EXPECT_EQ(made, 2);
}

TEST(RecordListsTest, EachPeerCanTakeHalfOfTheFreePlacesRoundedUp) {
  RecordLists lists;
  std::vector<ListPointer> used;
  std::vector<size_t> taken;
  for (const char* const peer : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    taken.push_back(TakeAll(lists, peer, used));
  }
  EXPECT_THAT(taken, ElementsAre(32, 16, 8, 4, 2, 1, 1, 0));
  EXPECT_EQ(lists.size(), RecordLists::kMost);
  EXPECT_THAT(
      lists.Find("one more", "b", Make),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("of the 64 lists"), HasSubstr("0 are left, and 16 of those in use"),
                     HasSubstr("End a feed"))));
  // A list that another feed uses already takes no further place.
  EXPECT_THAT(lists.Find("a7", "b", Make), IsOk());
  used.clear();
  EXPECT_EQ(TakeAll(lists, "b", used), 32u);
}

TEST(RecordListsTest, ListsKeptForNobodyAreDroppedOnlyWhenPlacesRunOut) {
  std::vector<ListPointer> kept;
  int asked = 0;
  RecordLists lists([&] {
    ++asked;
    const bool any = !kept.empty();
    kept.clear();
    return any;
  });
  for (int i = 0; i < 32; ++i) {
    absl::StatusOr<ListPointer> list = lists.Find(absl::StrCat(i), "a", Make);
    ASSERT_THAT(list, IsOk());
    kept.push_back(*std::move(list));
  }
  // An error of the function that makes a list is not taken for a lack of places.
  EXPECT_THAT(lists.Find("b", "b", [] { return absl::ResourceExhaustedError("no memory"); }),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no memory")));
  EXPECT_EQ(asked, 0);
  absl::StatusOr<ListPointer> list = lists.Find("32", "a", Make);
  EXPECT_THAT(list, IsOk());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(lists.size(), 1u);
}

TEST(RecordListsTest, AListThatIsMadeTwiceAtOnceIsKeptOnce) {
  RecordLists lists;
  ListPointer inner;
  const absl::StatusOr<ListPointer> outer = lists.Find("a", "one", [&] {
    // This call stands for a call by another thread.
    inner = *lists.Find("b", "two", Make);
    return Make();
  });
  ASSERT_THAT(outer, IsOk());
  const absl::StatusOr<ListPointer> twice = lists.Find("c", "one", [&] {
    inner = *lists.Find("c", "two", Make);
    return Make();
  });
  ASSERT_THAT(twice, IsOk());
  EXPECT_EQ(*twice, inner);
  EXPECT_EQ(lists.size(), 2u);
}

TEST(RecordListsTest, AListThatCannotBeMadeTakesNoPlace) {
  RecordLists lists;
  EXPECT_THAT(lists.Find("a", "", [] { return absl::UnavailableError("no"); }),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no")));
  EXPECT_EQ(lists.size(), 0u);
}

}  // namespace
}  // namespace systole
