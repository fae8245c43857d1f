#include "client/cli/shards/image_tree.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ImageTreeTest, ClassesAndFilesAreSortedByBytesAndHiddenOnesLeftOut) {
  const TempFolder folder;
  for (const char* name : {"b", "a", "Z", ".git"}) std::filesystem::create_directory(folder / name);
  for (const char* name :
       {"LICENSE.txt", "a/2.jpg", "a/10.jpg", "a/.DS_Store", "b/x.JPG", "Z/y.jpeg", ".git/z.jpg"}) {
    folder.Write(name, "bytes");
  }
  const absl::StatusOr<ImageTree> tree = ListImageTree(folder.path());
  ASSERT_THAT(tree, IsOk());
  EXPECT_THAT(tree->classes, ElementsAre("Z", "a", "b"));
  ASSERT_EQ(tree->files.size(), 4u);
  EXPECT_EQ(tree->files[0].path, folder / "Z/y.jpeg");
  EXPECT_EQ(tree->files[1].path, folder / "a/10.jpg");
  EXPECT_EQ(tree->files[2].path, folder / "a/2.jpg");
  EXPECT_EQ(tree->files[3].path, folder / "b/x.JPG");
  EXPECT_EQ(tree->files[0].label, 0);
  EXPECT_EQ(tree->files[2].label, 1);
  EXPECT_EQ(tree->files[3].label, 2);
}

TEST(ImageTreeTest, EmptyClassFolderKeepsItsNumber) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  folder.Write("b/x.jpg", "bytes");
  const absl::StatusOr<ImageTree> tree = ListImageTree(folder.path());
  ASSERT_THAT(tree, IsOk());
  EXPECT_THAT(tree->classes, ElementsAre("a", "b"));
  EXPECT_EQ(tree->files[0].label, 1);
}

TEST(ImageTreeTest, MissingRootPlainFileAndEmptyTreeAreNotFound) {
  const TempFolder folder;
  EXPECT_THAT(ListImageTree(folder / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(ListImageTree(folder.Write("file", "x")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("file")));
  std::filesystem::create_directory(folder / "a");
  EXPECT_THAT(ListImageTree(folder.path()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("1 class folder and nothing")));
}

TEST(ImageTreeTest, ErrorForImagesWithoutAClassFolderSuggestsTheParent) {
  const TempFolder folder;
  folder.Write("a.jpg", "x");
  folder.Write("b.JPEG", "x");
  folder.Write("notes.txt", "x");
  EXPECT_THAT(
      ListImageTree(folder.path()),
      StatusIs(absl::StatusCode::kNotFound,
               HasSubstr("2 images lie directly in this folder; want ROOT/CLASS/IMAGE.jpg: if "
                         "this is a class folder, give the folder that holds it")));
}

TEST(ImageTreeTest, AFolderInsideAClassFolderIsRefused) {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "train/daisy");
  EXPECT_THAT(ListImageTree(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("daisy")));
}

TEST(ImageTreeTest, PatternsAndListsOfAnyStoreGiveTheSameTree) {
  const TempFolder folder;
  const std::string root = "mem://image_tree_test/flowers";
  std::string lines = "\r\n";
  for (const char* name : {"b/2.jpg", "b/10.png", "a/x.JPG"}) {
    std::filesystem::create_directories((folder / name).substr(0, (folder / name).rfind('/')));
    folder.Write(name, "bytes");
    ASSERT_THAT(PutStored(absl::StrCat(root, "/", name), "bytes"), IsOk());
    absl::StrAppend(&lines, root, "/", name, "\r\n");
  }
  const std::string list = folder.Write("names.txt", lines);
  const absl::StatusOr<ImageTree> tree = ListImages(folder.path());
  ASSERT_THAT(tree, IsOk());
  for (const std::string& images :
       {root, root + "/", root + "/*/*", folder.path() + "/*/*", "@" + list}) {
    const absl::StatusOr<ImageTree> other = ListImages(images);
    ASSERT_THAT(other, IsOk()) << images;
    EXPECT_EQ(other->classes, tree->classes);
    ASSERT_EQ(other->files.size(), 3u) << images;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(other->files[i].label, tree->files[i].label);
      EXPECT_EQ(BaseName(other->files[i].path), BaseName(tree->files[i].path));
    }
  }
  EXPECT_EQ(ListImages(root + "/*/*.jpg")->files.size(), 1u);
}

TEST(ImageTreeTest, InvalidImageAddressesAndListsAreRefused) {
  const TempFolder folder;
  ASSERT_THAT(PutStored("mem://image_tree_deep/a/b/c.jpg", "bytes"), IsOk());
  EXPECT_THAT(ListImages("mem://image_tree_deep"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  EXPECT_THAT(ListImages("mem://image_tree_none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("image_tree_none")));
  EXPECT_THAT(ListImages("@" + (folder / "none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(ListImages("@" + folder.Write("empty", "\n\n")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("names no image")));
  EXPECT_THAT(ListImages("https://host/flowers/*/*.jpg?sig=SECRET"),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::Not(HasSubstr("SECRET"))));
}

TEST(ImageTreeTest, AMistypedAddressIsShownWithoutItsSecrets) {
  for (const char* address : {"https:/host/img?sig=SECRET", "https:/user:SECRET@host/img"}) {
    EXPECT_THAT(ListImages(address),
                StatusIs(absl::StatusCode::kNotFound,
                         testing::AllOf(HasSubstr("host/img"), testing::Not(HasSubstr("SECRET")))));
  }
}

TEST(ImageTreeTest, APathWithOnlyABackslashEscapeIsAPattern) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "a");
  folder.Write("a/x.jpg", "bytes");
  const absl::StatusOr<ImageTree> tree = ListImages(folder / "a/\\x.jpg");
  ASSERT_THAT(tree, IsOk());
  EXPECT_EQ(tree->files[0].path, folder / "a/x.jpg");
}

}  // namespace
}  // namespace systole
