#include "core/image/jpeg/jpeg_library.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

std::string Word(uint32_t value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// One note of a PT_NOTE segment.
std::string Note(std::string name, uint32_t type, std::string content, size_t alignment = 4) {
  std::string note = Word(static_cast<uint32_t>(name.size())) +
                     Word(static_cast<uint32_t>(content.size())) + Word(type);
  name.resize((name.size() + alignment - 1) / alignment * alignment);
  content.resize((content.size() + alignment - 1) / alignment * alignment);
  return note + name + content;
}

constexpr uint32_t kBuildId = 3;
const char kDebian12BuildId[] = "75b71ddb85234be3659c097f2561a765b45993bd";
const char kDebian12BuildIdOnAarch64[] = "d4f1a722750c068981dd36c9a7b90e87f88fa7f5";
std::string Gnu() { return std::string("GNU\0", 4); }

// The golden digests were made on Debian 12. If this test fails with another libjpeg, run the
// golden tests to see whether that libjpeg makes the same pixels. If so, add its build id to the
// table.
TEST(JpegLibraryTest, OnDebian12TheVersionIsThatOfTheRelease) {
  EXPECT_EQ(JpegLibraryVersion(), "libjpeg-turbo-2.1.5");
}

TEST(JpegLibraryTest, AKnownBuildIsNamedByItsVersionAndAnUnknownOneByItsId) {
  EXPECT_EQ(JpegVersionOfBuild(kDebian12BuildId), "libjpeg-turbo-2.1.5");
  EXPECT_EQ(JpegVersionOfBuild(kDebian12BuildIdOnAarch64), "libjpeg-turbo-2.1.5");
  EXPECT_EQ(JpegVersionOfBuild("75b71d"), "libjpeg-build-75b71d");
}

TEST(JpegLibraryTest, WithoutABuildIdTheNameIsUnknownWithTheHeadersVersion) {
  EXPECT_EQ(JpegVersionOfBuild(""), "libjpeg-unknown-headers-2.1.5");
}

TEST(JpegLibraryTest, TheBuildIdIsFoundAmongOtherNotes) {
  for (const size_t alignment : {4, 8}) {
    const std::string notes = Note(Gnu(), 1, "\1\2\3\4\5", alignment) +
                              Note("other", kBuildId, "zzzz", alignment) +
                              Note(Gnu(), kBuildId, "\xab\xcd\x01", alignment) +
                              Note(Gnu(), kBuildId, "second", alignment);
    EXPECT_EQ(BuildIdOfNotes(notes, alignment), "abcd01") << alignment;
  }
}

TEST(JpegLibraryTest, TruncatedOrInvalidNotesHaveNoBuildId) {
  const std::string whole = Note("other", 7, "xyz") + Note(Gnu(), kBuildId, "12345678");
  ASSERT_EQ(BuildIdOfNotes(whole, 4), "3132333435363738");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(BuildIdOfNotes(whole.substr(0, size), 4), "") << size;
  }
  for (const uint32_t lie : {21u, 0x7fffffffu, 0xfffffffcu, 0xffffffffu}) {
    for (const size_t field : {0, 4}) {
      std::string notes = whole;
      notes.replace(field, 4, Word(lie));
      EXPECT_EQ(BuildIdOfNotes(notes, 4), "") << lie;
    }
  }
  EXPECT_EQ(BuildIdOfNotes(Note(Gnu(), kBuildId, ""), 4), "");
  // The build id is part of the content version, whose length is limited.
  EXPECT_EQ(BuildIdOfNotes(Note(Gnu(), kBuildId, std::string(33, 'x')), 4), "");
}

TEST(JpegLibraryTest, IsJpegLibraryCodeIsFalseForCodeOutsideTheLibrary) {
  EXPECT_FALSE(IsJpegLibraryCode(reinterpret_cast<uintptr_t>(&JpegVersionOfBuild)));
  EXPECT_FALSE(IsJpegLibraryCode(reinterpret_cast<uintptr_t>(&std::abort)));
  EXPECT_FALSE(IsJpegLibraryCode(0));
}

}  // namespace
}  // namespace systole
