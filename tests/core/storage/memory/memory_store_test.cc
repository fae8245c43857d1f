#include "core/storage/memory/memory_store.h"

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

TEST(MemoryStoreTest, NamesWithoutSchemeOrWithEmptyPartsAreInvalid) {
  MemoryStore store;
  for (const char* name :
       {"", "a", "mem:/a", "mem://", "mem:///a", "mem://a/", "mem://a//b", "gs://a", "/mem://a"}) {
    EXPECT_THAT(store.Put(name, "x"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mem://NAME")))
        << name;
    EXPECT_THAT(store.Create(name).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")))
        << name;
  }
  EXPECT_THAT(store.Put("mem://a/b", "x"), IsOk());
}

TEST(MemoryStoreTest, PuttingEqualBytesAgainChangesTheIdentity) {
  MemoryStore store;
  ASSERT_THAT(store.Put("mem://a", "x"), IsOk());
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = store.Open("mem://a");
  ASSERT_THAT(source, IsOk());
  const std::string before = (*source)->identity();
  ASSERT_THAT(store.Put("mem://a", "x"), IsOk());
  EXPECT_THAT((*source)->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("\"a\" was replaced")));
  EXPECT_EQ((*source)->identity(), before);
  EXPECT_NE(store.Stat("mem://a")->identity, before);
}

}  // namespace
}  // namespace systole
