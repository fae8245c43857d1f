#include "core/record/tfrecord/dali_index.h"

#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// DALI's tfrecord2idx prints this for a shard of payloads of 0, 3, 784 and 109,412 bytes.
constexpr char kDaliIndex[] = "0 16\n16 19\n35 800\n835 109428\n";
constexpr uint64_t kDaliShardBytes = 110'263;

TEST(DaliIndexTest, DaliFileComesBackByteForByte) {
  absl::StatusOr<RecordIndex> index = ParseDaliIndex(kDaliIndex, kDaliShardBytes);
  ASSERT_THAT(index, IsOk());
  ASSERT_EQ(index->num_records(), 4);
  EXPECT_EQ(index->span(0), (RecordSpan{.offset = 0, .size = 16}));
  EXPECT_EQ(index->span(1), (RecordSpan{.offset = 16, .size = 19}));
  EXPECT_EQ(index->span(3), (RecordSpan{.offset = 835, .size = 109'428}));
  EXPECT_EQ(index->end(), kDaliShardBytes);
  EXPECT_THAT(index->damaged(), IsEmpty());
  EXPECT_EQ(DaliIndexText(*index), kDaliIndex);
}

TEST(DaliIndexTest, EmptyTextIsTheIndexOfAnEmptyShardOnly) {
  absl::StatusOr<RecordIndex> index = ParseDaliIndex("", 0);
  ASSERT_THAT(index, IsOk());
  EXPECT_EQ(index->num_records(), 0);
  EXPECT_EQ(DaliIndexText(*index), "");
  EXPECT_THAT(ParseDaliIndex("", 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ends at byte 0")));
  EXPECT_THAT(ParseDaliIndex("0 1\n", 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("index line 1")));
}

TEST(DaliIndexTest, LinesOfDamagedStretchesMayHaveAnySize) {
  const std::string text = "0 19\n19 3\n22 20\n42 5\n";
  absl::StatusOr<RecordIndex> index = ParseDaliIndex(text, 47);
  ASSERT_THAT(index, IsOk());
  EXPECT_EQ(index->span(1).size, 3u);
  EXPECT_EQ(DaliIndexText(*index), text);
}

TEST(DaliIndexTest, LargestOffsetsFit) {
  const uint64_t max = std::numeric_limits<uint64_t>::max();
  const std::string text = absl::StrCat("0 ", max - 20, "\n", max - 20, " 20\n");
  absl::StatusOr<RecordIndex> index = ParseDaliIndex(text, max);
  ASSERT_THAT(index, IsOk());
  EXPECT_EQ(DaliIndexText(*index), text);
}

TEST(DaliIndexTest, TheErrorForAMalformedIndexNamesTheLine) {
  for (const char* line : {"x",
                           "16",
                           "16 ",
                           "16 19",
                           "16 19 ",
                           " 16 19\n",
                           "16  19\n",
                           "16\t19\n",
                           "16 19\r\n",
                           "+16 19\n",
                           "-16 19\n",
                           "16 -19\n",
                           "16 19x\n",
                           "16 19 1\n",
                           "016 19\n",
                           "16 019\n",
                           "0x10 19\n",
                           "16.0 19\n",
                           "\n",
                           "\n16 19\n",
                           "18446744073709551616 19\n",
                           "16 18446744073709551616\n"}) {
    EXPECT_THAT(ParseDaliIndex(absl::StrCat("0 16\n", line), 35),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("index line 2 is not")))
        << line;
  }
  EXPECT_THAT(ParseDaliIndex(absl::string_view("\0\0\0\0", 4), 35),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("index line 1 is not")));
}

TEST(DaliIndexTest, RecordsThatDoNotCoverTheShardAreInvalid) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"16 19\n", "line 1 has offset 16, want 0"},             // Does not begin at 0.
      {"0 16\n17 18\n", "line 2 has offset 17, want 16"},      // Gap.
      {"0 16\n15 20\n", "line 2 has offset 15, want 16"},      // Overlap.
      {"0 16\n0 16\n", "line 2 has offset 0, want 16"},        // Line 1 twice.
      {"0 16\n16 0\n16 19\n", "line 2 has size 0"},            // No bytes.
      {"0 16\n16 20\n", "line 2 has size 20, want 1 to 19"},   // Beyond the shard.
      {"0 16\n16 18446744073709551615\n", "line 2 has size"},  // Would wrap around.
      {"0 16\n", "index ends at byte 16, the shard at byte 35"},
      {"0 16\n16 19\n35 1\n", "line 3 has size 1, want 1 to 0"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(ParseDaliIndex(c.text, 35),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.text;
  }
}

TEST(DaliIndexTest, TextTooLongForTheShardIsRefusedUnread) {
  const std::string text(MaxDaliIndexBytes(100) + 1, 'x');
  EXPECT_THAT(ParseDaliIndex(text, 100), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr("too many for a shard of 100")));
}

// A server may claim any size for a shard. So the bound for the size of an index has a maximum.
TEST(DaliIndexTest, MaxDaliIndexBytesCoversTheLongestIndexAndIsCapped) {
  for (const uint64_t shard_bytes : {0, 15, 16, 100, 999, 1000}) {
    // The longest text: records of 16 bytes, the least size, and damaged stretches of 1 byte take
    // turns.
    std::string text;
    for (uint64_t end = 0; end + 17 <= shard_bytes; end += 17) {
      absl::StrAppend(&text, end, " 16\n", end + 16, " 1\n");
    }
    EXPECT_LE(text.size(), MaxDaliIndexBytes(shard_bytes)) << shard_bytes;
  }
  EXPECT_EQ(MaxDaliIndexBytes(1000), (2 * 62 + 1) * uint64_t{10});
  EXPECT_EQ(MaxDaliIndexBytes(1000, 7), 7 * uint64_t{10});
  EXPECT_LE(MaxDaliIndexBytes(uint64_t{1} << 48), kMaxIndexedRecords * 32);
  EXPECT_LE(MaxDaliIndexBytes(std::numeric_limits<uint64_t>::max()), kMaxIndexedRecords * 42);
}

}  // namespace
}  // namespace systole
