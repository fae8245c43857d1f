#include "core/storage/local/local_store.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

TEST(LocalStoreTest, NamesOfOneFileHaveOneFullName) {
  const LocalStore store;
  const std::string here = std::filesystem::current_path().string();
  for (const char* name : {"a", "./a", ".//a", "none/../a", "none/./../a", "x/y/../../a"}) {
    EXPECT_EQ(store.FullName(name), here + "/a") << name;
  }
  EXPECT_EQ(store.FullName("/../x/."), "/x");
  EXPECT_EQ(store.FullName("/"), "/");
}

// "LINK/.." means the parent of the link's target, which need not be the parent of the link.
TEST(LocalStoreTest, TheFullNameOfALinksParentIsItsTargetsParent) {
  const LocalStore store;
  const TempFolder folder;
  std::filesystem::create_directories(folder / "deep/inside");
  std::filesystem::create_directories(folder / "shards");
  std::filesystem::create_directory_symlink(folder / "deep/inside", folder / "shards/link");
  std::filesystem::create_directory_symlink(folder / "none", folder / "shards/dangling");
  const std::string deep = std::filesystem::canonical(folder / "deep").string();
  EXPECT_EQ(store.FullName(folder / "shards/link/../a"), deep + "/a");
  EXPECT_EQ(store.FullName(folder / "shards/link/./../../a"),
            std::filesystem::path(deep).parent_path().string() + "/a");
  // If ".." does not come right after a link, the name keeps the link, so that messages have the
  // given name. A link without a target counts as a plain name.
  EXPECT_EQ(store.FullName(folder / "shards/link/a"), folder / "shards/link/a");
  EXPECT_EQ(store.FullName(folder / "shards/link/x/../a"), folder / "shards/link/a");
  EXPECT_EQ(store.FullName(folder / "shards/dangling/../a"), folder / "shards/a");
}

}  // namespace
}  // namespace systole
