#include "core/record/source/read_window.h"

#include <cstdint>
#include <string>
#include <utility>

#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/error_source.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

// Makes `size` bytes in which no two stretches are equal.
std::string Numbered(size_t size) {
  std::string bytes;
  for (uint64_t i = 0; bytes.size() < size; ++i) {
    bytes.append(reinterpret_cast<const char*>(&i), sizeof(i));
  }
  bytes.resize(size);
  return bytes;
}

ReadWindow MustCreate(const ErrorSource& source, uint64_t source_bytes, int64_t read_bytes) {
  absl::StatusOr<ReadWindow> window = ReadWindow::Create(source, source_bytes, read_bytes);
  EXPECT_THAT(window, IsOk());
  return *std::move(window);
}

TEST(ReadWindowTest, AtReturnsTheRightBytesAtAnyOffset) {
  const std::string bytes = Numbered(10'000);
  const ErrorSource source(bytes);
  ReadWindow window = MustCreate(source, bytes.size(), 4096);
  for (const uint64_t offset : {0u, 16u, 4090u, 4080u, 9984u, 0u, 8191u, 5000u}) {
    absl::StatusOr<const char*> at = window.At(offset, 16);
    ASSERT_THAT(at, IsOk());
    EXPECT_EQ(std::string(*at, 16), bytes.substr(offset, 16)) << offset;
  }
}

TEST(ReadWindowTest, PiecesCoverTheSourceInOrderWithOneReadEach) {
  const std::string bytes = Numbered(10'000);
  const ErrorSource source(bytes);
  ReadWindow window = MustCreate(source, bytes.size(), 4096);
  std::string joined;
  while (joined.size() < bytes.size()) {
    absl::StatusOr<absl::string_view> piece = window.Piece(joined.size(), bytes.size());
    ASSERT_THAT(piece, IsOk());
    ASSERT_FALSE(piece->empty());
    joined.append(piece->data(), piece->size());
  }
  EXPECT_EQ(joined, bytes);
  EXPECT_EQ(source.num_reads(), 3);
  EXPECT_THAT(window.Piece(9000, 10), IsOkAndHolds(bytes.substr(9000, 10)));
}

TEST(ReadWindowTest, HeldReturnsBytesOfTheLastReadWithoutReading) {
  const std::string bytes = Numbered(10'000);
  const ErrorSource source(bytes);
  ReadWindow window = MustCreate(source, bytes.size(), 4096);
  EXPECT_EQ(window.Held(0), "");
  ASSERT_THAT(window.At(100, 16), IsOk());
  EXPECT_EQ(window.Held(100), bytes.substr(100, 4096));
  EXPECT_EQ(window.Held(4195), bytes.substr(4195, 1));
  EXPECT_EQ(window.Held(99), "");
  EXPECT_EQ(window.Held(4196), "");
  EXPECT_EQ(source.num_reads(), 1);
}

TEST(ReadWindowTest, NearPeeksShareAReadAndFarOnesReadLittle) {
  const std::string bytes = Numbered(4 << 20);
  ErrorSource source(bytes);
  ReadWindow window = MustCreate(source, bytes.size(), 256 << 10);
  for (uint64_t offset = 0; offset < 60'000; offset += 800) {
    absl::StatusOr<const char*> peek = window.Peek(offset, 16);
    ASSERT_THAT(peek, IsOk());
    EXPECT_EQ(std::string(*peek, 16), bytes.substr(offset, 16));
  }
  EXPECT_EQ(source.num_reads(), 1);
  source.ResetCounts();
  for (uint64_t offset = 100'000; offset < 4'000'000; offset += 100'000) {
    absl::StatusOr<const char*> peek = window.Peek(offset, 16);
    ASSERT_THAT(peek, IsOk());
    EXPECT_EQ(std::string(*peek, 16), bytes.substr(offset, 16));
  }
  EXPECT_EQ(source.num_reads(), 39);
  EXPECT_EQ(source.bytes_read(), 39 * 16u);
}

constexpr uint64_t kKiB = 1 << 10;
constexpr uint64_t kMiB = 1 << 20;

// Walks from `begin` to `end` in steps of `step` bytes. At each place, expects the next 16 bytes of
// `bytes`.
void Walk(ReadWindow& window, const std::string& bytes, uint64_t begin, uint64_t end,
          uint64_t step) {
  for (uint64_t offset = begin; offset + 16 <= end; offset += step) {
    absl::StatusOr<const char*> peek = window.Peek(offset, 16);
    ASSERT_THAT(peek, IsOk());
    ASSERT_EQ(std::string(*peek, 16), bytes.substr(offset, 16)) << offset;
  }
}

TEST(ReadWindowTest, TheWindowGrowsForASourceThatIsNotLocal) {
  const std::string bytes = Numbered(20 * kMiB);
  ErrorSource source(bytes);
  source.MoveAway();
  ReadWindow window = MustCreate(source, bytes.size(), 64 * kKiB);
  ASSERT_NO_FATAL_FAILURE(Walk(window, bytes, 0, bytes.size(), 100'000));
  // The reads take 256 KiB, 512 KiB, 1 MiB, .. 8 MiB, and the rest.
  EXPECT_EQ(source.num_reads(), 7);
  EXPECT_EQ(source.longest_read(), 8 * kMiB);
  EXPECT_LE(source.bytes_read(), bytes.size());
}

TEST(ReadWindowTest, PiecesOfASourceThatIsNotLocalGrowToo) {
  const std::string bytes = Numbered(20 * kMiB);
  ErrorSource source(bytes);
  source.MoveAway();
  ReadWindow window = MustCreate(source, bytes.size(), 256 * kKiB);
  uint64_t offset = 0;
  while (offset < bytes.size()) {
    absl::StatusOr<absl::string_view> piece = window.Piece(offset, bytes.size());
    ASSERT_THAT(piece, IsOk());
    ASSERT_EQ(*piece, absl::string_view(bytes).substr(offset, piece->size()));
    offset += piece->size();
  }
  EXPECT_EQ(source.num_reads(), 7);
  EXPECT_EQ(source.bytes_read(), bytes.size());
}

TEST(ReadWindowTest, FarPeeksReadOnlyTheirBytesOfASourceThatIsNotLocal) {
  const std::string bytes = Numbered(30 * kMiB);
  ErrorSource source(bytes);
  source.MoveAway();
  ReadWindow window = MustCreate(source, bytes.size(), 64 * kKiB);
  ASSERT_THAT(window.Peek(0, 16), IsOk());
  source.ResetCounts();
  ASSERT_NO_FATAL_FAILURE(Walk(window, bytes, 3 * kMiB, 15 * kMiB, 3 * kMiB));
  EXPECT_EQ(source.num_reads(), 4);
  EXPECT_EQ(source.bytes_read(), 4 * 16u);
  // When the places are close together again, the window starts again with its first size.
  source.ResetCounts();
  ASSERT_NO_FATAL_FAILURE(Walk(window, bytes, 12 * kMiB + 1000, 12 * kMiB + 200'000, 1000));
  EXPECT_EQ(source.num_reads(), 1);
  EXPECT_EQ(source.bytes_read(), 256 * kKiB);
}

TEST(ReadWindowTest, AHugeClaimedSizeNeverMakesAReadLargerThanTheWindow) {
  ErrorSource source(Numbered(1000));
  source.MoveAway();
  ReadWindow window = MustCreate(source, uint64_t{1} << 48, 64 * kKiB);
  EXPECT_THAT(window.Peek(0, 16), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("byte 1000")));
  EXPECT_EQ(source.longest_read(), 256 * kKiB);
}

TEST(ReadWindowTest, AnInterruptedWindowServesHeldBytesButReadsNoMore) {
  const ErrorSource source(Numbered(10'000));
  ReadWindow window = MustCreate(source, 10'000, 4096);
  ASSERT_THAT(window.At(0, 16), IsOk());
  InterruptFlag unwanted;
  unwanted.Raise();
  const InterruptScope scope(unwanted);
  EXPECT_THAT(window.At(100, 16), IsOk());
  EXPECT_THAT(window.At(5000, 16), StatusIs(absl::StatusCode::kCancelled, HasSubstr("needed")));
  EXPECT_EQ(source.num_reads(), 1);
}

TEST(ReadWindowTest, FailedReadIsPassedOn) {
  ErrorSource source(Numbered(10'000));
  ReadWindow window = MustCreate(source, 10'000, 4096);
  source.FailAt(5000, absl::UnavailableError("store is away"));
  EXPECT_THAT(window.At(4096, 16), StatusIs(absl::StatusCode::kUnavailable, "store is away"));
  EXPECT_THAT(window.Peek(4990, 16), StatusIs(absl::StatusCode::kUnavailable, "store is away"));
  EXPECT_THAT(window.Piece(5000, 1), StatusIs(absl::StatusCode::kUnavailable, "store is away"));
}

TEST(ReadWindowTest, FailedReadLeavesNoMixedBytesBehind) {
  const std::string bytes = Numbered(10'000);
  ErrorSource source(bytes);
  source.CutAt(5000);
  ReadWindow window = MustCreate(source, bytes.size(), 4096);
  ASSERT_THAT(window.At(0, 16), IsOk());
  EXPECT_FALSE(window.At(4096, 16).ok());  // Fills a part of the buffer, then fails.
  absl::StatusOr<const char*> at = window.At(16, 16);
  ASSERT_THAT(at, IsOk());
  EXPECT_EQ(std::string(*at, 16), bytes.substr(16, 16));
}

TEST(ReadWindowTest, SourceThatShrankIsDataLoss) {
  ErrorSource source(Numbered(10'000));
  source.CutAt(5000);
  ReadWindow window = MustCreate(source, 10'000, 4096);
  EXPECT_THAT(window.Piece(4096, 100),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ends at byte 5000")));
}

}  // namespace
}  // namespace systole
