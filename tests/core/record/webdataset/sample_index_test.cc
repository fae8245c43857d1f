#include "core/record/webdataset/sample_index.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/checksum/xxh3.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/webdataset/archive_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr char kFile[] = "4096 77";

// Makes two samples. The second one is damaged, because the archive is cut.
std::string Archive() { return ArchiveBuilder().Add("a.x", "one").Add("b.x", "two").bytes(); }

ScannedArchive Scanned() { return *ScanArchive(MemorySource(Archive())); }

// Makes an index of an archive of 2,048 bytes. The first line has the given numbers and the hash of
// `body`.
std::string WithHead(int64_t samples, int64_t damaged, const std::string& body) {
  return absl::StrFormat("systole-samples-1 2048 %d %d %016x\n%s", samples, damaged, Xxh3(body),
                         body);
}

TEST(SampleIndexTest, AWrittenIndexIsParsedUnchanged) {
  const ScannedArchive archive = Scanned();
  const std::string text = SampleIndexText(archive, 2048, kFile);
  EXPECT_LE(text.size(), MaxSampleIndexBytes(2048));
  const absl::StatusOr<ScannedArchive> parsed = ParseSampleIndex(text, 2048, kFile);
  ASSERT_THAT(parsed, IsOk());
  ASSERT_EQ(parsed->index.num_records(), 2);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(parsed->index.span(i), archive.index.span(i));
    EXPECT_EQ(parsed->samples[i].crc, archive.samples[i].crc);
    EXPECT_EQ(parsed->samples[i].damaged, archive.samples[i].damaged);
  }
  ASSERT_EQ(parsed->index.num_damaged(), 1);
  EXPECT_EQ(parsed->index.damaged()[0].record, 1);
  EXPECT_EQ(parsed->index.damaged()[0].cause, archive.index.damaged()[0].cause);
  EXPECT_EQ(SampleIndexText(*parsed, 2048, kFile), text);
}

TEST(SampleIndexTest, AnIndexOfAnotherArchiveStateIsFailedPrecondition) {
  const std::string text = SampleIndexText(Scanned(), 2048, kFile);
  const auto other = StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another state"));
  EXPECT_THAT(ParseSampleIndex(text, 2049, kFile), other);
  EXPECT_THAT(ParseSampleIndex(text, 2048, "4096 78"), other);
  EXPECT_THAT(ParseSampleIndex(text, 2048, "4096 7"), other);
  // Without an identity, two states of the archive cannot be told apart.
  EXPECT_THAT(ParseSampleIndex(SampleIndexText(Scanned(), 2048, ""), 2048, ""), other);
}

TEST(SampleIndexTest, EveryFlippedBitAndEveryCutIsRefused) {
  const std::string good = SampleIndexText(Scanned(), 2048, kFile);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(ParseSampleIndex(bad, 2048, kFile).ok()) << bad;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ParseSampleIndex(good.substr(0, size), 2048, kFile).ok()) << size;
  }
  EXPECT_FALSE(ParseSampleIndex(good + "x", 2048, kFile).ok());
}

TEST(SampleIndexTest, TheErrorForAnInvalidIndexNamesTheCause) {
  const std::string state = "4096 77\n";
  const struct {
    std::string text;
    const char* message;
  } kCases[] = {
      {"0 16\n", "is not an index of samples"},
      {"systole-samples-1 2048 1\n", "first line"},
      {"systole-samples-1 2048 01 0 0000000000000000\n", "first line"},
      {WithHead(1'000'000, 0, state), "more samples than the archive can hold"},
      {WithHead(1, 0, state), "a malformed line for sample 0"},
      {WithHead(1, 0, state + "0 00000000 good\n"), "a malformed line for sample 0"},
      {WithHead(1, 0, state + "2049 00000000 good\n"), "a malformed line for sample 0"},
      {WithHead(2, 0, state + "2048 00000000 good\n1 00000000 good\n"),
       "a malformed line for sample 1"},
      {WithHead(1, 0, state + "512 0000000 good\n"), "a malformed line for sample 0"},
      {WithHead(1, 0, state + "512 0000000g good\n"), "a malformed line for sample 0"},
      {WithHead(1, 0, state + "512 00000000 fine\n"), "does not say whether sample 0 is good"},
      {WithHead(1, 1, state + "512 00000000 good\n"), "as many damaged samples as it says"},
      {WithHead(1, 1, state + "512 00000000 damaged\n"), "as many damaged samples as it says"},
      {WithHead(1, 0, state + "512 00000000 good\n0 cause\n"), "a malformed list of damage"},
      {WithHead(1, 1, state + "512 00000000 damaged\n1 cause\n"), "a malformed list of damage"},
      {WithHead(1, 1, state + "512 00000000 damaged\n0 cause"), "a malformed list of damage"},
      {WithHead(1, 1, state + "512 00000000 damaged\n0 a\n0 a\n"), "a malformed list of damage"},
      {WithHead(1, 1, state + "512 00000000 damaged\n0 " + std::string(257, 'x') + "\n"),
       "a malformed list of damage"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(ParseSampleIndex(c.text, 2048, kFile),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.text;
  }
}

// The first line claims 2^39 samples, which would take 4 TiB of memory. But only one follows.
TEST(SampleIndexTest, AHugeClaimedNumberOfSamplesTakesNoMemory) {
  const uint64_t archive_bytes = uint64_t{1} << 48;
  const std::string body = "4096 77\n512 00000000 good\n";
  const std::string text = absl::StrFormat("systole-samples-1 %d %d 0 %016x\n%s", archive_bytes,
                                           uint64_t{1} << 39, Xxh3(body), body);
  EXPECT_THAT(ParseSampleIndex(text, archive_bytes, kFile),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line for sample 1")));
  EXPECT_LE(MaxSampleIndexBytes(archive_bytes), (uint64_t{1} << 35));
  EXPECT_LE(MaxSampleIndexBytes(archive_bytes, kMaxFarRecords), (uint64_t{1} << 31));
}

}  // namespace
}  // namespace systole
