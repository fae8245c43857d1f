#include "core/record/source/foreign_kind.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ForeignKindTest, CompressionIsNamedWithTheRemedy) {
  EXPECT_THAT(ForeignKind("\x1f\x8b\x08"), AllOf(HasSubstr("gzip"), HasSubstr("'detect'")));
  EXPECT_THAT(ForeignKind("\x28\xb5\x2f\xfd"), AllOf(HasSubstr("zstd"), HasSubstr("decompress")));
  for (const char* begin : {"\x78\x01", "\x78\x5e", "\x78\x9c", "\x78\xda"}) {
    EXPECT_THAT(ForeignKind(begin), HasSubstr("zlib"));
  }
}

TEST(ForeignKindTest, ForImagesTheHintNamesTheFileEndingAndSystolePack) {
  EXPECT_THAT(ForeignKind("\xff\xd8\xff\xe0"),
              AllOf(HasSubstr("JPEG"), HasSubstr(".jpg"), HasSubstr("systole pack")));
  EXPECT_THAT(ForeignKind("\x89PNG\r\n\x1a\n"), AllOf(HasSubstr("PNG"), HasSubstr(".png")));
}

TEST(ForeignKindTest, ForUnknownBytesTheHintIsEmpty) {
  for (const std::string begin :
       {"", "\x1f", "x", "\x78", "\x78\x02", "\xff\xd8", "\x28\xb5\x2f"}) {
    EXPECT_EQ(ForeignKind(begin), "");
  }
}

}  // namespace
}  // namespace systole
