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

TEST(BaseNameTest, BaseNamesAndClientNamesOfUrlsHoldNoSecrets) {
  EXPECT_EQ(BaseName("https://host/a.tfrecord?sig=x/y"), "a.tfrecord");
  EXPECT_EQ(BaseName("http://host/a.tfrecord"), "a.tfrecord");
  EXPECT_EQ(BaseName("HTTPS://host/a.tfrecord#x/y"), "a.tfrecord");
  EXPECT_EQ(BaseName("https://user:secret@host"), "host");
  EXPECT_EQ(BaseName("folder/a?b"), "a?b");
  for (const absl::string_view all : {"https://host", "https://user:secret@host", "http://host?q",
                                      "https://host/", "s3://bucket", "gs://bucket/", "/", ""}) {
    EXPECT_EQ(NameForClients(all), "/") << all;
  }
  EXPECT_EQ(NameForClients("https://host/a?sig=x"), "a");
  EXPECT_EQ(NameForClients("s3://bucket/a@b"), "a@b");
  EXPECT_EQ(NameForClients("folder/a"), "a");
}

TEST(ShownNameTest, PathsAreShownAsTheyAreAndAddressesWithoutSecrets) {
  for (const char* name : {"", "a", "/data/a?b#c", "mem://a/b?", "data/https://x@y?z"}) {
    EXPECT_EQ(ShownName(name), name);
  }
  EXPECT_EQ(ShownName("https://user:secret@host/a?sig=secret"), "https://...@host/a");
  EXPECT_EQ(ShownName("HTTP://host/a?sig=secret"), "HTTP://host/a");
}

constexpr uint64_t kMiB = 1 << 20;

TEST(ReadWholeTest, AllBytesAreReadForAnySize) {
  for (const bool local : {true, false}) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{1}, kMiB - 1, kMiB, kMiB + 1, 5 * kMiB + 3}) {
      std::string bytes(size, '.');
      for (size_t i = 0; i < size; i += 4093) bytes[i] = static_cast<char>('a' + i % 26);
      ErrorSource source(bytes);
      if (!local) source.MoveAway();
      const absl::StatusOr<std::string> read = ReadWhole(source, size);
      ASSERT_THAT(read, IsOk());
      EXPECT_TRUE(*read == bytes) << size;
    }
  }
}

TEST(ReadWholeTest, ALocalFileIsOneRead) {
  const ErrorSource source(std::string(5 * kMiB, 'x'));
  ASSERT_THAT(ReadWhole(source, 5 * kMiB), IsOk());
  EXPECT_EQ(source.num_reads(), 1);
}

// A read needs memory for all bytes that it asks for. So the longest read shows how much memory
// ReadWhole() takes.
TEST(ReadWholeTest, MemoryGrowsWithTheBytesReadNotWithTheClaimedSize) {
  ErrorSource source(std::string(5 * kMiB, 'x'), "https://user:secret@host/dir/a.idx?sig=secret");
  source.MoveAway();
  source.ClaimSize(uint64_t{1} << 46);
  EXPECT_THAT(ReadWhole(source, uint64_t{1} << 46),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("\"a.idx\" ends at byte 5242880")));
  EXPECT_EQ(source.num_reads(), 4);  // The reads take 1, 1, 2 and 4 MiB.
  EXPECT_EQ(source.longest_read(), 4 * kMiB);
}

TEST(ReadWholeTest, AFailedPieceEndsTheRead) {
  ErrorSource source(std::string(5 * kMiB, 'x'));
  source.MoveAway();
  source.FailAt(kMiB, absl::UnavailableError("store is away"));
  EXPECT_THAT(ReadWhole(source, 5 * kMiB),
              StatusIs(absl::StatusCode::kUnavailable, "store is away"));
  EXPECT_EQ(source.num_reads(), 2);
}

TEST(ReadWholeTest, MoreThanTheBoundIsRefusedUnreadAndWithoutSecrets) {
  ErrorSource source("", "https://user:secret@host/dir/a.idx?sig=secret");
  source.ClaimSize(11);
  EXPECT_THAT(ReadWhole(source, 10),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "\"https://...@host/dir/a.idx\" has 11 bytes, want at "
                       "most 10"));
  EXPECT_EQ(source.num_reads(), 0);
}

}  // namespace
}  // namespace systole
