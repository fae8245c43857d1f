#include "core/storage/memory_source.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/error_source.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MemorySourceTest, ReadsAnywhereAndShortOnlyAtTheEnd) {
  const MemorySource source("0123456789", "folder/digits");
  std::string out(4, '.');
  EXPECT_THAT(source.ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(4u));
  EXPECT_EQ(out, "0123");
  EXPECT_THAT(source.ReadAt(8, absl::MakeSpan(out)), IsOkAndHolds(2u));
  EXPECT_EQ(out, "8923");
  EXPECT_THAT(source.ReadAt(10, absl::MakeSpan(out)), IsOkAndHolds(0u));
  EXPECT_THAT(source.ReadAt(std::numeric_limits<uint64_t>::max(), absl::MakeSpan(out)),
              IsOkAndHolds(0u));
  EXPECT_THAT(source.ReadAt(3, absl::Span<char>()), IsOkAndHolds(0u));
  EXPECT_THAT(source.Size(), IsOkAndHolds(10u));
  EXPECT_THAT(source.CheckUnchanged(), IsOk());
  EXPECT_EQ(source.name(), "folder/digits");
}

TEST(MemorySourceTest, EmptySourceReadsNothing) {
  const MemorySource source("");
  char out[1];
  EXPECT_THAT(source.ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(0u));
  EXPECT_THAT(source.Size(), IsOkAndHolds(0u));
}

TEST(ReadExactlyAtTest, ShortReadIsDataLossThatNamesSourceAndByte) {
  const MemorySource source("0123456789", "folder/digits");
  std::string out(4, '.');
  EXPECT_THAT(ReadExactlyAt(source, 6, absl::MakeSpan(out)), IsOk());
  EXPECT_EQ(out, "6789");
  EXPECT_THAT(ReadExactlyAt(source, 7, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("\"digits\" ends at byte 10"), HasSubstr("wanted 4 bytes"),
                             HasSubstr("from byte 7"))));
}

TEST(ReadExactlyAtTest, PassesOnTheErrorOfTheSource) {
  ErrorSource source("0123456789");
  source.FailAt(5, absl::UnavailableError("store is away"));
  std::string out(4, '.');
  EXPECT_THAT(ReadExactlyAt(source, 0, absl::MakeSpan(out)), IsOk());
  EXPECT_THAT(ReadExactlyAt(source, 2, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kUnavailable, "store is away"));
  EXPECT_THAT(ReadExactlyAt(source, 6, absl::MakeSpan(out)), IsOk());
}

TEST(BaseNameTest, IsWhatStandsAfterTheLastSlash) {
  EXPECT_EQ(BaseName("a/b/c.tfrecord"), "c.tfrecord");
  EXPECT_EQ(BaseName("c.tfrecord"), "c.tfrecord");
  EXPECT_EQ(BaseName("/c"), "c");
  EXPECT_EQ(BaseName("a/"), "");
  EXPECT_EQ(BaseName(""), "");
}

TEST(BaseNameTest, OfAnAddressOfTheWebItIsWhatStandsBeforeTheQuery) {
  EXPECT_EQ(BaseName("https://host/a.tfrecord?sig=x/y"), "a.tfrecord");
  EXPECT_EQ(BaseName("http://host/a.tfrecord"), "a.tfrecord");
  EXPECT_EQ(BaseName("folder/a?b"), "a?b");
}

}  // namespace
}  // namespace systole
