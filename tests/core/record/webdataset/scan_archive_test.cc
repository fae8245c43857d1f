#include "core/record/webdataset/scan_archive.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/checksum/crc32c.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/webdataset/archive_builder.h"
#include "tests/core/storage/error_source.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Each sample of the archive as "BEGIN-END", counted in blocks of 512 bytes. A damaged sample has a
// '!' at the end.
std::vector<std::string> Samples(const std::string& archive) {
  const absl::StatusOr<ScannedArchive> scanned = ScanArchive(MemorySource(archive));
  EXPECT_THAT(scanned, IsOk());
  std::vector<std::string> texts;
  int64_t damaged = 0;
  for (int64_t i = 0; i < scanned->index.num_records(); ++i) {
    const RecordSpan span = scanned->index.span(i);
    const Sample& sample = scanned->samples[static_cast<size_t>(i)];
    EXPECT_EQ(sample.crc, Crc32c(absl::string_view(archive).substr(span.offset, span.size)));
    damaged += sample.damaged ? 1 : 0;
    texts.push_back(absl::StrCat(span.offset / 512, "-", (span.offset + span.size) / 512,
                                 sample.damaged ? "!" : ""));
  }
  EXPECT_EQ(scanned->index.num_damaged(), damaged);
  return texts;
}

std::string FirstCause(const std::string& archive) {
  const absl::StatusOr<ScannedArchive> scanned = ScanArchive(MemorySource(archive));
  EXPECT_THAT(scanned, IsOk());
  return scanned->index.damaged().empty() ? "" : scanned->index.damaged()[0].cause;
}

// Makes the samples a, b and c, each with two files of two blocks.
ArchiveBuilder Three() {
  ArchiveBuilder builder;
  for (const char* key : {"a", "b", "c"}) {
    builder.Add(absl::StrCat(key, ".txt"), "text").Add(absl::StrCat(key, ".cls"), "1");
  }
  return builder;
}

TEST(ScanArchiveTest, ASampleIsTheConsecutiveFilesOfOneKey) {
  EXPECT_THAT(Samples(Three().Build()), ElementsAre("0-4", "4-8", "8-12"));
  EXPECT_THAT(Samples(ArchiveBuilder().Add("a.x", "").Add("b.x", "").Add("a.y", "").Build()),
              ElementsAre("0-1", "1-2", "2-3"));
}

TEST(ScanArchiveTest, EntriesThatBelongToNoSampleAreSkipped) {
  EXPECT_THAT(Samples(ArchiveBuilder()
                          .Add("", PaxRecord("comment", "x"), 'g')  // Blocks 0 and 1.
                          .Add("a", "", '5')                        // 2
                          .Add("a.x", "")                           // 3
                          .Add("README", "text")                    // 4 and 5.
                          .Add("a.y", "")                           // 6
                          .Add("link", "", '2')                     // 7
                          .Add("b.x", "")                           // 8
                          .Add("__meta__/c.x", "")
                          .Build()),
              ElementsAre("0-7", "7-9"));
}

TEST(ScanArchiveTest, AnArchiveWithoutSamplesIsEmptyAndNotDamaged) {
  EXPECT_THAT(Samples(""), IsEmpty());
  EXPECT_THAT(Samples(std::string(10240, '\0')), IsEmpty());
  EXPECT_THAT(Samples(ArchiveBuilder().Add("README", "text").Build()), IsEmpty());
}

TEST(ScanArchiveTest, OneBlockOfZerosEndsAnArchiveAndItsLastBlockNeedNotBePadded) {
  EXPECT_THAT(Samples(Three().bytes() + std::string(512, '\0')), ElementsAre("0-4", "4-8", "8-12"));
  EXPECT_THAT(Samples(Three().bytes() + std::string(700, '\0')), ElementsAre("0-4", "4-8", "8-12"));
}

TEST(ScanArchiveTest, AFlippedBitOfAHeaderCostsTheSamplesThatMayHaveLostTheFile) {
  const struct {
    int block;
    std::vector<std::string> samples;
  } kCases[] = {
      {0, {"0-4!", "4-8", "8-12"}},   // Block 0 is a's first file.
      {2, {"0-2!", "2-8!", "8-12"}},  // Block 2 may be a's last file or b's first one.
      {4, {"0-4!", "4-8!", "8-12"}},  // Block 4 may be b's first file or a's last one.
      {10, {"0-4", "4-8", "8-10!"}},
  };
  for (const auto& c : kCases) {
    std::string bytes = Three().Build();
    bytes[c.block * 512 + 3] ^= 0x10;
    EXPECT_EQ(Samples(bytes), c.samples) << c.block;
    EXPECT_THAT(FirstCause(bytes), HasSubstr("the sum of the tar header is"));
  }
}

TEST(ScanArchiveTest, AFileLostWithinASampleCostsThatSampleAlone) {
  ArchiveBuilder builder;
  for (const char* key : {"a", "b", "c"}) {
    for (const char* extension : {"x", "y", "z"})
      builder.Add(absl::StrCat(key, ".", extension), "");
  }
  std::string bytes = builder.Build();
  bytes[4 * 512] = '?';
  EXPECT_THAT(Samples(bytes), ElementsAre("0-3", "3-6!", "6-9"));
}

// Under a sanitizer only each 7th bit is flipped, to save time. As 7 and 8 have no common divisor,
// the flipped bits still include each of the 8 places in a byte.
TEST(ScanArchiveTest, AFlippedBitChangesNeitherTheSampleCountNorDistantSamples) {
  const std::string good = Three().Build();
  for (size_t bit = 0; bit < 8 * Three().bytes().size(); bit += kSanitized ? 7 : 1) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const std::vector<std::string> samples = Samples(bytes);
    ASSERT_EQ(samples.size(), 3u) << bit;
    const int hit = static_cast<int>(bit / 8 / 2048);
    if (hit == 0) {
      EXPECT_EQ(samples[2], "8-12") << bit;
    }
    if (hit == 2) {
      EXPECT_EQ(samples[0], "0-4") << bit;
    }
  }
}

TEST(ScanArchiveTest, InATruncatedArchiveOnlyTheLastSampleIsDamaged) {
  const std::string good = Three().bytes();
  for (size_t size = 1; size <= good.size(); size += 37) {
    const std::vector<std::string> samples = Samples(good.substr(0, size));
    const size_t whole = (size - 1) / 2048;  // Samples before the one that is cut.
    ASSERT_GE(samples.size(), std::max<size_t>(whole, 1)) << size;
    for (size_t i = 0; i + 1 < samples.size(); ++i) {
      EXPECT_EQ(samples[i], absl::StrCat(4 * i, "-", 4 * i + 4)) << size;
    }
    EXPECT_THAT(samples.back(), HasSubstr("!")) << size;
  }
  EXPECT_THAT(FirstCause(good), HasSubstr("no block of zeros ends the archive"));
  EXPECT_THAT(FirstCause(good.substr(0, 2000)), HasSubstr("cut short"));
}

TEST(ScanArchiveTest, ABlockOfZerosBeforeMoreDataIsDamageNotTheEnd) {
  std::string bytes = Three().Build();
  bytes.replace(4 * 512, 512, 512, '\0');
  EXPECT_THAT(Samples(bytes), ElementsAre("0-4!", "4-8!", "8-12"));
  EXPECT_THAT(FirstCause(bytes), HasSubstr("a block of zeros, which ends an archive"));
  // Two archives in one file. The library webdataset reads nothing of the second archive.
  EXPECT_THAT(Samples(ArchiveBuilder().Add("a.x", "").Build() +
                      ArchiveBuilder().Add("b.x", "").Add("c.x", "").Build()),
              ElementsAre("0-1!", "1-4!", "4-5"));
}

TEST(ScanArchiveTest, AHeaderWithAHugeSizeDamagesOnlyTheAdjacentSamples) {
  std::string bytes = Three().Build();
  std::string header = TarHeader("b.txt", (uint64_t{1} << 33) - 1);
  bytes.replace(4 * 512, 512, header);
  EXPECT_THAT(Samples(bytes), ElementsAre("0-4!", "4-8!", "8-12"));
  EXPECT_THAT(FirstCause(bytes), HasSubstr("announces 8589934591 bytes"));
}

TEST(ScanArchiveTest, AnEntryWithADamagedPaxHeaderIsSkippedAndDamagesItsNeighbours) {
  // The content of the entry "hidden" looks like a header. The scan must not look for headers in
  // this content.
  EXPECT_THAT(Samples(ArchiveBuilder()
                          .Add("a.x", "")
                          .Add("", "no record", 'x')
                          .Add("hidden", TarHeader("d.x", 0))
                          .Add("c.x", "")
                          .Add("d.x", "")
                          .Build()),
              ElementsAre("0-1!", "1-6!", "6-7"));
}

TEST(ScanArchiveTest, AFileThatIsNotAnArchiveGivesOneDamagedSample) {
  EXPECT_THAT(Samples(std::string(2048, 'x')), ElementsAre("0-4!"));
  EXPECT_EQ(Samples("x").size(), 1u);
}

TEST(ScanArchiveTest, ASampleOfTooManyFilesIsDamagedAlone) {
  ArchiveBuilder builder = ArchiveBuilder().Add("a.x", "");
  for (int i = 0; i < 1001; ++i) builder.Add(absl::StrCat("b.", i), "");
  EXPECT_THAT(Samples(builder.Add("c.x", "").Build()), ElementsAre("0-1", "1-1002!", "1002-1003"));
}

TEST(ScanArchiveTest, DamageIsCountedAndListedUpToALimit) {
  ArchiveBuilder builder;
  for (int i = 0; i < 300; ++i) {
    builder.Add(absl::StrCat(i, ".json"), "").Add("", "no record", 'x');
  }
  const absl::StatusOr<ScannedArchive> scanned = ScanArchive(MemorySource(builder.Build()));
  ASSERT_THAT(scanned, IsOk());
  EXPECT_EQ(scanned->index.num_records(), 300);
  EXPECT_EQ(scanned->index.num_damaged(), 300);
  EXPECT_EQ(scanned->index.damaged().size(), kMaxDamagedListed);
}

TEST(ScanArchiveTest, TheErrorForTooManySamplesNamesTheArchiveByBaseName) {
  const MemorySource archive(Three().Build(), "/dir/a.tar");
  EXPECT_THAT(ScanArchive(archive, 3), IsOk());
  for (const uint64_t most : {0, 1, 2}) {
    EXPECT_THAT(ScanArchive(archive, most),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("\"a.tar\""), Not(HasSubstr("dir")),
                               HasSubstr(absl::StrCat("more than ", most)))));
  }
}

TEST(ScanArchiveTest, ErrorsOfTheSourceAreReturned) {
  ErrorSource source(Three().Build());
  source.FailAt(3000, absl::UnavailableError("gone"));
  EXPECT_THAT(ScanArchive(source), StatusIs(absl::StatusCode::kUnavailable, "gone"));
  ErrorSource no_size("");
  no_size.FailSize(absl::UnavailableError("gone"));
  EXPECT_THAT(ScanArchive(no_size), StatusIs(absl::StatusCode::kUnavailable, "gone"));
}

}  // namespace
}  // namespace systole
