#include "core/storage/object_names.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const ObjectNames kObjects = {"t://x/.hidden", "t://x/a",   "t://x/a.b", "t://x/b1",
                              "t://x/b2",      "t://x/y/c", "t://z[1]"};

bool Any(absl::string_view) { return true; }

TEST(ObjectNamesTest, GlobsMatchNeitherSlashesNorHiddenNames) {
  EXPECT_THAT(ListObjects(kObjects, "t://x/b?", Any),
              IsOkAndHolds(UnorderedElementsAre("t://x/b1", "t://x/b2")));
  EXPECT_THAT(ListObjects(kObjects, "t://*/[ab]", Any),
              IsOkAndHolds(UnorderedElementsAre("t://x/a")));
  EXPECT_THAT(ListObjects(kObjects, "t://x/*d*", Any).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"t://x/*d*\" matches no file")));
}

TEST(ObjectNamesTest, ANameThatExistsIsNotExpanded) {
  EXPECT_THAT(ListObjects(kObjects, "t://z[1]", Any), IsOkAndHolds(ElementsAre("t://z[1]")));
}

TEST(ObjectNamesTest, ANameWithASlashAtItsEndIsAFolderThatMayBeEmpty) {
  const ObjectNames objects = {"t://x/", "t://x/a", "t://e/"};
  EXPECT_THAT(ListObjects(objects, "t://x/", Any), IsOkAndHolds(ElementsAre("t://x/a")));
  EXPECT_THAT(ListObjects(objects, "t://x/*", Any), IsOkAndHolds(ElementsAre("t://x/a")));
  for (const char* empty : {"t://e", "t://e/"}) {
    EXPECT_THAT(ListObjects(objects, empty, Any), IsOkAndHolds(IsEmpty()));
    EXPECT_TRUE(TakesObject(objects, empty, "t://e/missing"));
    EXPECT_FALSE(TakesObject(objects, empty, "t://e/"));
  }
  EXPECT_THAT(ListObjects(objects, "t://[e]", Any),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"t://e\" is a folder")));
}

TEST(ObjectNamesTest, AFolderNameListsTheObjectsInTheFolder) {
  for (const char* folder : {"t://x/y", "t://x/y/"}) {
    EXPECT_THAT(ListObjects(kObjects, folder, Any), IsOkAndHolds(ElementsAre("t://x/y/c")));
  }
  EXPECT_THAT(ObjectsIn(kObjects, "t://x/"),
              ElementsAre("t://x/a", "t://x/a.b", "t://x/b1", "t://x/b2", "t://x/y"));
  EXPECT_THAT(ObjectsIn(kObjects, "t://none/"), IsEmpty());
}

TEST(ObjectNamesTest, AMatchedFolderIsAnErrorUnlessTheFilterRejectsTheName) {
  for (const char* pattern : {"t://x", "t://x/*"}) {
    EXPECT_THAT(ListObjects(kObjects, pattern, Any).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(pattern), HasSubstr("\"t://x/y\" is a folder"))));
  }
  EXPECT_THAT(ListObjects(kObjects, "t://x",
                          [](absl::string_view name) { return absl::EndsWith(name, "a"); }),
              IsOkAndHolds(ElementsAre("t://x/a")));
}

TEST(ObjectNamesTest, PatternsAreMatchedAgainstNamesOfMissingObjects) {
  EXPECT_TRUE(TakesObject(kObjects, "t://x/b?", "t://x/b3"));
  EXPECT_TRUE(TakesObject(kObjects, "t://x", "t://x/new"));
  EXPECT_TRUE(TakesObject(kObjects, "t://new", "t://new"));
  EXPECT_FALSE(TakesObject(kObjects, "t://x", "t://x/.new"));
  EXPECT_FALSE(TakesObject(kObjects, "t://x", "t://x/y/new"));
  EXPECT_FALSE(TakesObject(kObjects, "t://x/*", "t://x/y/new"));
  EXPECT_FALSE(TakesObject(kObjects, "t://z[1]", "t://z1"));
}

}  // namespace
}  // namespace systole
