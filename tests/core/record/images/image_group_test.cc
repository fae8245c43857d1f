#include "core/record/images/image_group.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// "daisy 1.jpg" and so on, in the order of the records.
std::vector<std::string> Order(const ImageGroup& group) {
  std::vector<std::string> order;
  for (const GroupedImage& image : group.images) {
    order.push_back(ImageNameInGroup(group.classes[image.class_index], image.name));
  }
  return order;
}

auto Refuses(const std::string& what) {
  return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
}

TEST(ImageGroupTest, NamesOfImagesAreKnownByTheirEnding) {
  for (const char* name : {"a.jpg", "a/b.JPEG", "/x.Png", "https://h/a/b.jpg?sig=x#y"}) {
    EXPECT_TRUE(HasImageName(name)) << name;
  }
  for (const char* name : {"jpg", "a.jpg.tfrecord", "a.gif", "https://h/a?b=.jpg", ""}) {
    EXPECT_FALSE(HasImageName(name)) << name;
  }
}

// '-' sorts before '/', and 'B' before 'a'. The order of whole paths would differ.
TEST(ImageGroupTest, RecordsAreSortedByClassThenByBaseName) {
  const auto group = GroupImages(
      {"/d/a/2.jpg", "/d/a-b/1.jpg", "/d/b/0.jpg", "/d/B/9.png", "/d/a/10.jpg", "/d/a/1.jpg"});
  ASSERT_THAT(group, IsOk());
  EXPECT_EQ(group->folder, "/d/");
  EXPECT_THAT(group->classes, ElementsAre("B", "a", "a-b", "b"));
  EXPECT_THAT(Order(*group),
              ElementsAre("B/9.png", "a/1.jpg", "a/10.jpg", "a/2.jpg", "a-b/1.jpg", "b/0.jpg"));
}

TEST(ImageGroupTest, TheOrderDependsNeitherOnTheFolderNorOnTheStore) {
  std::vector<std::vector<std::string>> orders;
  for (const std::string root : {"/d", "/z/y", "mem://a", "https://host/x", "relative", "../up"}) {
    const auto group = GroupImages({root + "/b/0.jpg", root + "/a/2.jpg", root + "/a/1.jpg"});
    ASSERT_THAT(group, IsOk()) << root;
    orders.push_back(Order(*group));
  }
  EXPECT_THAT(orders, testing::Each(ElementsAre("a/1.jpg", "a/2.jpg", "b/0.jpg")));
}

// '%' sorts before letters, so encoded names would have another order.
TEST(ImageGroupTest, PercentEncodedNamesInAddressesAreDecoded) {
  const auto here = GroupImages(
      {"/d/\xc3\xa9/1.jpg", "/d/z/\xc3\xa9.jpg", "/d/z/a b.jpg", "/d/z/a+b.jpg", "/d/a b/5%.jpg"});
  ASSERT_THAT(here, IsOk());
  const auto there = GroupImages({"https://h/d/%C3%A9/1.jpg", "https://h/d/z/%c3%a9.jpg",
                                  "https://h/d/z/a%20b.jpg?sig=x%2Fy", "https://h/d/z/a+b.jpg",
                                  "https://h/d/a%20b/5%25.jpg"});
  ASSERT_THAT(there, IsOk());
  EXPECT_EQ(there->classes, here->classes);
  EXPECT_EQ(Order(*there), Order(*here));
  EXPECT_THAT(Order(*here), ElementsAre("a b/5%.jpg", "z/a b.jpg", "z/a+b.jpg", "z/\xc3\xa9.jpg",
                                        "\xc3\xa9/1.jpg"));
  EXPECT_EQ(there->images[1].name, "https://h/d/z/a%20b.jpg?sig=x%2Fy");  // Keeps the query.
  // In other stores a '%' is a '%'.
  EXPECT_THAT(Order(*GroupImages({"mem://d/%41/%42.jpg"})), ElementsAre("%41/%42.jpg"));
  for (const std::string name : {"https://h/a/b%2Fc.jpg", "https://h/a%2fb/c.jpg",
                                 "https://h/a/b%00.jpg", "https://h/a%00/b.jpg"}) {
    EXPECT_THAT(GroupImages({name}), Refuses("percent-encoded '/' or zero byte")) << name;
  }
}

TEST(ImageGroupTest, RelativePathsAreResolvedBeforeImagesAreGrouped) {
  const std::filesystem::path here = std::filesystem::current_path();
  const auto group = GroupImages({"1.jpg"});
  ASSERT_THAT(group, IsOk());
  EXPECT_THAT(group->classes, ElementsAre(here.filename().string()));
  EXPECT_EQ(group->folder, absl::StrCat(here.parent_path().string(), "/"));
  // These paths name the same two folders, a and b, in several ways.
  const auto several = GroupImages(
      {"a/1.jpg", "./a/2.jpg", (here / "b" / "3.jpg").string(), "c/../b/4.jpg", "a//5.jpg"});
  ASSERT_THAT(several, IsOk());
  EXPECT_THAT(Order(*several), ElementsAre("a/1.jpg", "a/2.jpg", "a/5.jpg", "b/3.jpg", "b/4.jpg"));
}

TEST(ImageGroupTest, SecretsOfAddressesStayOutOfNames) {
  const auto group = GroupImages({"https://host/x/a/1.jpg?sig=secret"});
  ASSERT_THAT(group, IsOk());
  EXPECT_EQ(group->folder, "https://host/x/");
  EXPECT_THAT(Order(*group), ElementsAre("a/1.jpg"));
}

TEST(ImageGroupTest, SeveralPathsOfAFileGiveOneImageButSeveralUrlsAreRefused) {
  const auto group = GroupImages({"a/1.jpg", "./a/1.jpg", "a//1.jpg", "a/2.jpg", "b/../a/2.jpg"});
  ASSERT_THAT(group, IsOk());
  EXPECT_THAT(Order(*group), ElementsAre("a/1.jpg", "a/2.jpg"));
  for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{
           {"https://host/x/a/1.jpg?v=1&sig=SECRET", "https://host/x/a/1.jpg?v=2"},
           {"https://host/x/a/1.jpg", "https://host/x/a/%31.jpg"},
           {"mem://x/a/1.jpg", "mem://x/a//1.jpg"}}) {
    EXPECT_THAT(GroupImages(names),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("\"a/1.jpg\" is named twice"), Not(HasSubstr("SECRET")))));
  }
}

TEST(ImageGroupTest, ClassFoldersWithDifferentParentFoldersAreRefused) {
  EXPECT_THAT(GroupImages({"/d/train/a/1.jpg", "/d/validation/a/1.jpg"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"train/a/1.jpg\" and \"validation/a/1.jpg\""),
                             HasSubstr("one ROOT"), Not(HasSubstr("/d/")))));
}

TEST(ImageGroupTest, AnImageWithoutAClassFolderIsRefused) {
  for (const std::string name :
       {"/1.jpg", "mem://1.jpg", "mem://bucket/1.jpg", "https://host/1.jpg"}) {
    EXPECT_THAT(GroupImages({name}), Refuses("lies in no class folder")) << name;
  }
}

TEST(ImageGroupTest, TooLongClassAndImageNamesAreRefused) {
  EXPECT_THAT(GroupImages({absl::StrCat("mem://x/", std::string(1024, 'a'), "/1.jpg")}), IsOk());
  EXPECT_THAT(GroupImages({absl::StrCat("mem://x/", std::string(1025, 'a'), "/1.jpg")}),
              Refuses("name of 1025 bytes"));
  EXPECT_THAT(GroupImages({absl::StrCat("mem://x/a/", std::string(4096, 'a'), ".jpg")}),
              Refuses("the limit is 4096"));
}

}  // namespace
}  // namespace systole
