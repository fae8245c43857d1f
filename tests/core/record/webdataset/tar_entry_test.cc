#include "core/record/webdataset/tar_entry.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/webdataset/archive_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

using Kind = TarEntry::Kind;

TarEntry Read(const std::string& archive, uint64_t offset = 0) {
  const absl::StatusOr<TarEntry> entry =
      ReadTarEntry(offset, archive.size(),
                   [&archive](uint64_t at, uint64_t bytes) -> absl::StatusOr<const char*> {
                     EXPECT_LE(bytes, kMaxTarMetaBytes);
                     EXPECT_LE(at + bytes, archive.size());
                     return archive.data() + at;
                   });
  EXPECT_THAT(entry, IsOk());
  return *entry;
}

TEST(TarEntryTest, AFileEntryHasItsNameAndTheBoundsOfItsContent) {
  const std::string archive = ArchiveBuilder().Add("a/b.txt", "hello").Add("c", "").Build();
  const TarEntry entry = Read(archive);
  EXPECT_EQ(entry.kind, Kind::kFile);
  EXPECT_EQ(entry.name, "a/b.txt");
  EXPECT_EQ(archive.substr(entry.content, entry.size), "hello");
  EXPECT_EQ(entry.end, 1024u);
  const TarEntry empty = Read(archive, entry.end);
  EXPECT_EQ(empty.kind, Kind::kFile);
  EXPECT_EQ(empty.name, "c");
  EXPECT_EQ(empty.size, 0u);
  EXPECT_EQ(Read(archive, empty.end).kind, Kind::kEnd);
}

TEST(TarEntryTest, OnlyRegularFilesAreFilesAndOnlyTheyAndUnknownTypesHaveContent) {
  for (const char type : {'0', '\0', '7'}) {
    const TarEntry entry = Read(ArchiveBuilder().Add("a", "hello", type).Build());
    EXPECT_EQ(entry.kind, Kind::kFile) << type;
    EXPECT_EQ(entry.end, 1024u);
  }
  for (const char type : {'1', '2', '3', '4', '5', '6'}) {
    const TarEntry entry = Read(ArchiveBuilder().Add("a", "hello", type).Build());
    EXPECT_EQ(entry.kind, Kind::kOther) << type;
    EXPECT_EQ(entry.end, 512u);
  }
  EXPECT_EQ(Read(ArchiveBuilder().Add("a", "hello", 'V').Build()).kind, Kind::kOther);
  EXPECT_EQ(Read(ArchiveBuilder().Add("a", "hello", 'V').Build()).end, 1024u);
  EXPECT_EQ(Read(ArchiveBuilder().Add("a/", "", '\0').Build()).kind, Kind::kOther);
}

TEST(TarEntryTest, NamesComeFromThePrefixThePaxHeaderOrTheLongName) {
  std::string header = TarHeader("name", 0);
  header.replace(345, 6, "prefix");
  EXPECT_EQ(Read(WithNewChecksum(header)).name, "prefix/name");
  // GNU's headers have times in the place of the prefix.
  header.replace(257, 8, std::string("ustar  \0", 8));
  EXPECT_EQ(Read(WithNewChecksum(header)).name, "name");

  const std::string name(300, 'n');
  const std::string pax = absl::StrCat(PaxRecord("mtime", "1.5"), PaxRecord("path", name));
  EXPECT_EQ(Read(ArchiveBuilder().AddPax(pax, "short", "x").Build()).name, name);
  EXPECT_EQ(Read(ArchiveBuilder().Add("", name + '\0', 'L').Add("short", "x").Build()).name, name);
  // A name for all files ('g') or for a link's target ('K') is not the name of a file.
  EXPECT_EQ(Read(ArchiveBuilder().Add("", pax, 'g').Add("a", "x").Build()).name, "a");
  EXPECT_EQ(Read(ArchiveBuilder().Add("", name, 'K').Add("a", "x").Build()).name, "a");
}

TEST(TarEntryTest, SizesAreOctalOrOfBase256OrOfThePaxHeader) {
  std::string header = TarHeader("a", 0);
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\x05", 12));
  EXPECT_EQ(Read(ArchiveBuilder().AddRaw(WithNewChecksum(header)).AddContent("hello").Build()).size,
            5u);
  header.replace(124, 12, "  5         ");
  EXPECT_EQ(Read(ArchiveBuilder().AddRaw(WithNewChecksum(header)).AddContent("hello").Build()).size,
            5u);
  const std::string archive = ArchiveBuilder()
                                  .Add("", PaxRecord("size", "5"), 'x')
                                  .AddRaw(TarHeader("a", 0))
                                  .AddContent("hello")
                                  .Build();
  EXPECT_EQ(Read(archive).size, 5u);
}

TEST(TarEntryTest, SignedHeaderChecksumsOfOldWritersAreAccepted) {
  std::string header = TarHeader("\xe4", 0);
  int sum = 8 * ' ';
  for (int i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0 : static_cast<int8_t>(header[i]);
  header.replace(148, 8, absl::StrFormat("%06o", sum) + std::string("\0 ", 2));
  EXPECT_EQ(Read(header).name, "\xe4");
}

TEST(TarEntryTest, EveryFlippedBitOfAHeaderIsDamage) {
  const std::string good = ArchiveBuilder().Add("a.txt", "hello").Build();
  for (size_t bit = 0; bit < 8 * kTarBlockBytes; ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    const TarEntry entry = Read(bad);
    // The last two bytes of the checksum field only end the number, and may have any value. The
    // field's first byte may be a blank.
    if (bit / 8 == 154 || bit / 8 == 155 || (bit / 8 == 148 && entry.kind == Kind::kFile)) continue;
    EXPECT_EQ(entry.kind, Kind::kDamaged) << bit;
    EXPECT_THAT(entry.cause, HasSubstr("tar header")) << bit;
    EXPECT_TRUE(entry.is_lost);
    EXPECT_EQ(entry.end, 512u);
  }
}

TEST(TarEntryTest, AnUnreadableEntryHasACauseAndAnOffsetToResumeAt) {
  const std::string pax = PaxRecord("path", "p");
  std::string no_size = TarHeader("a", 0);
  no_size.replace(124, 3, "abc");
  std::string vast = TarHeader("a", 0);
  vast.replace(124, 12, std::string("\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 12));
  std::string beyond = TarHeader("a", 0);
  beyond.replace(124, 12, std::string("\x80\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12));
  const struct {
    std::string archive;
    const char* cause;
    uint64_t end;
    bool is_lost;
  } kCases[] = {
      {std::string(100, 'x'), "cut short: 100 bytes are left", 100, false},
      {TarHeader("a", 1), "announces 1 bytes, 0 are left", 512, true},
      {WithNewChecksum(vast), "announces 18446744073709551615 bytes", 512, true},
      {WithNewChecksum(beyond), "the size in the tar header is not a number", 512, true},
      {WithNewChecksum(no_size), "the size in the tar header is not a number", 512, true},
      {ArchiveBuilder().Add("", pax, 'x').Build(), "zeros follow a pax header", 1024, false},
      {ArchiveBuilder().Add("", pax, 'x').bytes(), "is at the archive's end", 1024, false},
      {ArchiveBuilder().Add("", "", 'L').bytes(), "is at the archive's end", 512, false},
      {ArchiveBuilder().Add("", "8 path=p\n", 'x').Build(), "record that is no", 1024, false},
      {ArchiveBuilder().Add("", "99 path=p\n", 'x').Build(), "record that is no", 1024, false},
      {ArchiveBuilder().Add("", "0 path=p\n", 'x').Build(), "record that is no", 1024, false},
      {ArchiveBuilder().Add("", "path=p\n", 'x').Build(), "record that is no", 1024, false},
      {ArchiveBuilder().Add("", "7", 'x').Build(), "record that is no", 1024, false},
      {ArchiveBuilder().Add("", "3 \n", 'x').Build(), "record without \"=\"", 1024, false},
      {ArchiveBuilder().Add("", PaxRecord("size", "1x"), 'x').Build(), "size that is not a number",
       1024, false},
      {ArchiveBuilder().AddPax(PaxRecord("GNU.sparse.major", "1"), "a", "x").Build(),
       "a sparse file", 2048, false},
      {ArchiveBuilder().Add("a", "x", 'S').Build(), "a sparse file", 1024, true},
      {ArchiveBuilder().Add("", std::string(kMaxTarMetaBytes + 1, 'n'), 'L').Add("a", "").Build(),
       "has 65537 bytes, the limit is 65536", 512 + kMaxTarMetaBytes + 512, false},
      {ArchiveBuilder().Add("", std::string(kMaxTarNameBytes + 1, 'n'), 'L').Add("a", "").Build(),
       "a file's name has 4097 bytes, the limit is 4096", 512 + 4096 + 512, false},
  };
  for (const auto& c : kCases) {
    const TarEntry entry = Read(c.archive);
    EXPECT_EQ(entry.kind, Kind::kDamaged) << c.cause;
    EXPECT_THAT(entry.cause, HasSubstr(c.cause));
    EXPECT_EQ(entry.end, c.end) << c.cause;
    EXPECT_EQ(entry.is_lost, c.is_lost) << c.cause;
  }
}

TEST(TarEntryTest, TooManyMetadataHeadersBeforeAFileAreDamage) {
  ArchiveBuilder builder;
  for (int i = 0; i < kMaxTarMetaHeaders; ++i) builder.Add("", "n", 'L');
  EXPECT_EQ(Read(ArchiveBuilder(builder).Add("a", "x").Build()).kind, Kind::kFile);
  const TarEntry entry = Read(builder.Add("", "n", 'L').Add("a", "x").Build());
  EXPECT_EQ(entry.kind, Kind::kDamaged);
  EXPECT_THAT(entry.cause, HasSubstr("more than 16 pax headers"));
  EXPECT_EQ(entry.end, 17 * 1024u);
}

TEST(TarEntryTest, OnlyAWholeHeaderWithMagicChecksumAndSizeIsDetectedAsTar) {
  const std::string good = TarHeader("a", 5);
  EXPECT_TRUE(BeginsAsTar(good));
  EXPECT_FALSE(BeginsAsTar(good.substr(0, 511)));
  std::string wrong = good;
  wrong[0] = 'b';
  EXPECT_FALSE(BeginsAsTar(wrong));
  EXPECT_TRUE(BeginsAsTar(WithNewChecksum(wrong)));
  wrong.replace(124, 3, "abc");  // No size.
  EXPECT_FALSE(BeginsAsTar(WithNewChecksum(wrong)));
  std::string old = good;  // A header before POSIX: it has a sum, but no magic.
  old.replace(257, 8, 8, '\0');
  EXPECT_FALSE(BeginsAsTar(WithNewChecksum(old)));
  EXPECT_EQ(Read(ArchiveBuilder().AddRaw(WithNewChecksum(old)).AddContent("hello").Build()).kind,
            Kind::kFile);
}

}  // namespace
}  // namespace systole
