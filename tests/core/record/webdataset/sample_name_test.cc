#include "core/record/webdataset/sample_name.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

std::string Split(absl::string_view path) {
  const std::optional<SampleName> name = SampleNameOf(path);
  return name.has_value() ? absl::StrCat(name->key, "|", name->extension) : "none";
}

// webdataset.tariterators.base_plus_ext() and tar_file_iterator() split each name in the same way.
TEST(SampleNameTest, KeyEndsAtTheFirstDotOfTheBaseName) {
  EXPECT_EQ(Split("a.jpg"), "a|jpg");
  EXPECT_EQ(Split("train/0001.seg.PNG"), "train/0001|seg.PNG");
  EXPECT_EQ(Split("./a.jpg"), "./a|jpg");
  EXPECT_EQ(Split("v1.0/a.jpg"), "v1.0/a|jpg");
  EXPECT_EQ(Split("a."), "a|");
  EXPECT_EQ(Split("a..jpg"), "a|.jpg");
  EXPECT_EQ(Split("a/.jpg"), "a/|jpg");
  EXPECT_EQ(Split("v1.0/a/.jpg"), "v1.0/a/|jpg");
}

TEST(SampleNameTest, FilesWithoutAKeyOrExtensionAreInNoSample) {
  for (const char* path : {"", "a", "a/b", "v1.0/b", ".jpg", "..", "v1.0/.jpg", "a.b/"}) {
    EXPECT_EQ(Split(path), "none") << path;
  }
}

TEST(SampleNameTest, MetadataIsInNoSample) {
  for (const char* path : {"__meta__", "__a.b__", "____", "__meta__/a.jpg", "____/a.jpg"}) {
    EXPECT_EQ(Split(path), "none") << path;
  }
  EXPECT_EQ(Split("__a.jpg"), "__a|jpg");
  EXPECT_EQ(Split("__a__.jpg"), "__a__|jpg");
  EXPECT_EQ(Split("__/a.jpg"), "__/a|jpg");
  EXPECT_EQ(Split("___/a.jpg"), "___/a|jpg");
  EXPECT_EQ(Split("a/__b__/c.jpg"), "a/__b__/c|jpg");
}

}  // namespace
}  // namespace systole
