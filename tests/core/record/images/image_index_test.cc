#include "core/record/images/image_index.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/checksum/xxh3.h"
#include "core/storage/byte_sink.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

// The line of a good image, and the line of a damaged image. The name and the cause of the damaged
// image have line breaks and spaces.
constexpr char kBody[] =
    "5 0000abcd 30 40 3 3 7 0 5 7a/1.jpg\n"
    "0 00000000 0 0 0 2 9 12 x1b/\n 2.pnga bad\ncause \n";

std::string WithHead(int files, const std::string& body) {
  return absl::StrFormat("systole-images-1 %d %016x\n%s", files, Xxh3(body), body);
}

std::vector<ImageIndexLine> Two() {
  return {{.name = "a/1.jpg",
           .identity = "5 7",
           .facts = {.bytes = 5, .crc = 0xabcd, .size = {.height = 30, .width = 40}},
           .cause = ""},
          {.name = "b/\n 2.png",
           .identity = "x1",
           .facts = {.bytes = 0, .crc = 0, .size = {.height = 0, .width = 0, .channels = 0}},
           .cause = "a bad\ncause "}};
}

std::string IndexOf(const std::vector<ImageIndexLine>& lines) {
  std::string text;
  StringSink sink(&text);
  EXPECT_THAT(WriteImageIndex(
                  [&lines](absl::FunctionRef<void(absl::string_view)> take) {
                    for (const ImageIndexLine& line : lines) take(ImageIndexLineText(line));
                  },
                  sink),
              IsOk());
  return text;
}

TEST(ImageIndexTest, TheIndexIsWrittenInTheDocumentedFormat) {
  EXPECT_EQ(IndexOf({}), WithHead(0, ""));
  EXPECT_EQ(IndexOf(Two()), WithHead(2, kBody));
}

TEST(ImageIndexTest, AWrittenIndexIsReadBackUnchanged) {
  const std::string text = IndexOf(Two());
  auto lines = CheckImageIndex(text);
  ASSERT_THAT(lines, IsOkAndHolds(absl::string_view(kBody)));
  const ImageIndexLine first = TakeImageIndexLine(*lines);
  EXPECT_EQ(first.name, "a/1.jpg");
  EXPECT_EQ(first.identity, "5 7");
  EXPECT_EQ(first.facts.crc, 0xabcdu);
  EXPECT_EQ(first.cause, "");
  const ImageIndexLine second = TakeImageIndexLine(*lines);
  EXPECT_EQ(second.name, "b/\n 2.png");
  EXPECT_EQ(second.cause, "a bad\ncause ");
  EXPECT_TRUE(second.facts.is_damaged());
  EXPECT_EQ(*lines, "");
  EXPECT_EQ(IndexOf({first, second}), text);
}

TEST(ImageIndexTest, InvalidIndexesAreRefusedWithAReason) {
  const auto refused = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  const std::string good = "5 0000abcd 30 40 3 3 7 0 5 7a/1.jpg\n";
  ASSERT_THAT(CheckImageIndex(WithHead(1, good)), IsOk());
  EXPECT_THAT(CheckImageIndex(""), refused("not an index of images"));
  EXPECT_THAT(CheckImageIndex("systole-images-1 1 12\n"), refused("malformed first line"));
  EXPECT_THAT(CheckImageIndex(WithHead(1, good) + "x"), refused("hash does not match"));
  EXPECT_THAT(CheckImageIndex(WithHead(2, good)), refused("as many files"));
  EXPECT_THAT(CheckImageIndex(WithHead(0, good)), refused("more files"));
  // A number of files that no memory could hold.
  EXPECT_THAT(CheckImageIndex(absl::StrCat("systole-images-1 18446744073709551615 ",
                                           absl::Hex(Xxh3(good), absl::kZeroPad16), "\n", good)),
              refused("the limit is"));
  EXPECT_THAT(CheckImageIndex(WithHead(2, good + good)), refused("wrong place"));
  const std::string before = "5 0000abcd 30 40 3 3 7 0 5 7a/0.jpg\n";
  EXPECT_THAT(CheckImageIndex(WithHead(2, good + before)), refused("wrong place"));
  for (const auto& [part, other] : std::vector<std::pair<std::string, std::string>>{
           {"5 0000abcd", "05 0000abcd"},  // A leading zero.
           {"0000abcd", "0000ABCD"},       // Capitals.
           {"0000abcd", "abcd"},           // Too short.
           {"30 40 3", "30 40 2"},         // 2 channels.
           {"30 40 3", "0 40 3"},          //
           {"30 40 3", "30 2000000 3"},    //
           {"30 40 3", "-3 40 3"},         //
           {"30 40 3", "0 0 0"},           // Damaged without a cause.
           {"3 7 0 5 7", "0 7 0 "},        // No identity.
           {"a/1.jpg", "aa1.jpg"},         // No class.
           {"a/1.jpg", "a/1/jpg"},         // Two classes.
           {"a/1.jpg", "/a1.jpg"},         //
           {"3 7 0", "3 8 0"},             // Sizes of other texts.
           {"3 7 0", "3 7 999999999"},     //
           {"3 7 0", "999999999999 7 0"}}) {
    EXPECT_THAT(CheckImageIndex(WithHead(1, absl::StrReplaceAll(good, {{part, other}}))),
                refused("malformed line for file 0"))
        << other;
  }
}

}  // namespace
}  // namespace systole
