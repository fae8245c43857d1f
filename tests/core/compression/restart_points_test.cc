#include "core/compression/restart_points.h"

#include <string>

#include "core/checksum/xxh3.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

const StoredState kFile = {.size_bytes = 900, .identity = "900 seven"};

RestartPoints Three() {
  return {
      .points = {{}, {.compressed_bit = 1001, .offset = 2000, .window_hash = 9}, {3003, 4000, 8}},
      .size_bytes = 5000};
}

absl::StatusOr<RestartPoints> Parse(const std::string& bytes) {
  return ParseRestartTable(bytes, kFile, Compression::kGzip, 2000);
}

std::string Bytes(const RestartPoints& points) {
  return RestartTableBytes(kFile, Compression::kGzip, points);
}

TEST(RestartPointsTest, ATableReadsAsItWasWritten) {
  const std::string bytes = Bytes(Three());
  EXPECT_THAT(Parse(bytes), IsOkAndHolds(Three()));
  EXPECT_THAT(RestartTableSize(bytes.substr(bytes.size() - kRestartTrailerBytes)),
              IsOkAndHolds(bytes.size()));
}

TEST(RestartPointsTest, EachChunkReachesFromItsPointToTheNextPointOrTheEnd) {
  const RestartPoints points = Three();
  EXPECT_EQ(points.ChunkAt(0), 0);
  EXPECT_EQ(points.ChunkAt(1999), 0);
  EXPECT_EQ(points.ChunkAt(2000), 1);
  EXPECT_EQ(points.ChunkAt(4999), 2);
  EXPECT_EQ(points.chunk_bytes(0), 2000);
  EXPECT_EQ(points.chunk_bytes(2), 1000);
  EXPECT_EQ(points.largest_chunk_bytes(), 2000);
}

TEST(RestartPointsTest, ATableForAnotherSizeIdentityOrCompressionIsRefused) {
  for (const StoredState& other :
       {StoredState{900, "900 eight"}, StoredState{901, "900 seven"}, StoredState{900, ""}}) {
    EXPECT_THAT(Parse(RestartTableBytes(other, Compression::kGzip, Three())),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another state")));
  }
  EXPECT_THAT(Parse(RestartTableBytes(kFile, Compression::kZlib, Three())),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another state")));
}

TEST(RestartPointsTest, NoTableIsTrustedForAFileWithoutAnIdentity) {
  const StoredState nameless = {.size_bytes = 900, .identity = ""};
  EXPECT_THAT(ParseRestartTable(RestartTableBytes(nameless, Compression::kGzip, Three()), nameless,
                                Compression::kGzip, 2000),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("")));
}

TEST(RestartPointsTest, InvalidPointsAndDamagedOrTruncatedTablesAreRefused) {
  const auto refuses = [](const RestartPoints& points, absl::string_view why) {
    EXPECT_THAT(Parse(Bytes(points)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(why))));
  };
  refuses({.points = {}, .size_bytes = 0}, "0 restart points");
  refuses({.points = {{.compressed_bit = 8, .offset = 0}}, .size_bytes = 10}, "out of order");
  refuses({.points = {{}, {8, 20}, {8, 30}}, .size_bytes = 40}, "out of order");
  refuses({.points = {{}, {8, 20}, {16, 20}}, .size_bytes = 40}, "out of order");
  refuses({.points = {{}, {8, 40}}, .size_bytes = 40}, "out of order");
  refuses({.points = {{}, {8 * 901, 20}}, .size_bytes = 40}, "out of order");
  refuses({.points = {{}}, .size_bytes = 2001}, "too far apart");
  const std::string good = Bytes(Three());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] ^= 1;
    EXPECT_FALSE(Parse(flipped).ok()) << i;
  }
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(Parse(good.substr(0, bytes)).ok()) << bytes;
  }
}

TEST(RestartPointsTest, ARestartPointIsKeptOnlyOnceBytesFollowIt) {
  std::string windows;
  const auto keep = [&](absl::string_view window) {
    windows.append(window.data(), window.size());
    return absl::OkStatus();
  };
  RestartScan scan(10, 100, keep);
  EXPECT_FALSE(scan.Wants(9));
  EXPECT_TRUE(scan.Wants(10));
  scan.Offer({.compressed_bit = 80, .offset = 10}, "A");
  EXPECT_FALSE(scan.Wants(15));
  EXPECT_THAT(scan.Reach(10), IsOk());
  EXPECT_EQ(windows, "");
  EXPECT_THAT(scan.Reach(60), IsOk());
  EXPECT_EQ(windows, "A");
  scan.Offer({.compressed_bit = 90, .offset = 60}, "B");
  EXPECT_EQ(
      std::move(scan).Take(),
      (RestartPoints{.points = {{}, {.compressed_bit = 80, .offset = 10, .window_hash = Xxh3("A")}},
                     .size_bytes = 60}));
}

TEST(RestartPointsTest, AChunkOfMoreThanTheLimitIsRefused) {
  const auto ignore = [](absl::string_view) { return absl::OkStatus(); };
  RestartScan scan(10, 100, ignore);
  EXPECT_THAT(scan.Reach(100), IsOk());
  EXPECT_THAT(
      scan.Reach(101),
      StatusIs(absl::StatusCode::kResourceExhausted,
               HasSubstr("the frame or block near byte 0 decompresses to more than 100 bytes")));
}

}  // namespace
}  // namespace systole
