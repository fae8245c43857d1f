#include "core/storage/bucket/bucket_answer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string List(absl::string_view inside) {
  return absl::StrCat("<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
                      inside, "</ListBucketResult>");
}

TEST(BucketAnswerTest, AListPageIsParsedToKeysFoldersAndTheNextToken) {
  const absl::StatusOr<ListPage> page =
      ParseListPage(List("<Name>b</Name><Prefix>d/</Prefix><IsTruncated>true</IsTruncated>"
                         "<Contents><Key>d/a</Key><Owner><ID>Key</ID></Owner></Contents>"
                         "<Contents><Key>d/b&amp;c</Key></Contents>"
                         "<CommonPrefixes><Prefix>d/x/</Prefix></CommonPrefixes>"
                         "<NextContinuationToken>t/+=</NextContinuationToken>"));
  ASSERT_THAT(page, IsOk());
  EXPECT_THAT(page->keys, ElementsAre("d/a", "d/b&c"));
  EXPECT_THAT(page->folders, ElementsAre("d/x/"));
  EXPECT_EQ(page->next_token, "t/+=");
  const absl::StatusOr<ListPage> empty = ParseListPage(List(""));
  ASSERT_THAT(empty, IsOk());
  EXPECT_THAT(empty->keys, IsEmpty());
  EXPECT_EQ(empty->next_token, "");
}

TEST(BucketAnswerTest, KeysAreDecodedIfThePageSaysThatTheyAreEncoded) {
  const std::string key = "<Contents><Key>a+b%2Bc%0A</Key></Contents>";
  EXPECT_THAT(ParseListPage(List(key + "<EncodingType>url</EncodingType>"))->keys,
              ElementsAre("a b+c\n"));
  EXPECT_THAT(ParseListPage(List(key))->keys, ElementsAre("a+b%2Bc%0A"));
}

TEST(BucketAnswerTest, AMalformedListPageIsDataLoss) {
  for (const std::string& body :
       {std::string(), std::string("<html></html>"), std::string("<Error/>"),
        List("<IsTruncated>true</IsTruncated>"), List("<Contents><Key></Key></Contents>"),
        List(absl::StrCat("<Contents><Key>", std::string(1025, 'k'), "</Key></Contents>")),
        List("<CommonPrefixes><Prefix>x</Prefix></CommonPrefixes>"), List("") + "x",
        List("").substr(0, 30)}) {
    EXPECT_THAT(ParseListPage(body), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(""))) << body;
  }
}

TEST(BucketAnswerTest, CodeAndRegionAreParsedEvenFromATruncatedErrorBody) {
  const std::string body =
      "<?xml version=\"1.0\"?>\n<Error><Code>PermanentRedirect</Code><Region>eu-west-1</Region>"
      "<Message>text</Message></Error>";
  for (const std::string& text : {body, body.substr(0, body.size() - 20)}) {
    EXPECT_EQ(ParseRefusal(text).code, "PermanentRedirect");
    EXPECT_EQ(ParseRefusal(text).region, "eu-west-1");
  }
}

TEST(BucketAnswerTest, InvalidCodesAndRegionsAreIgnored) {
  for (const std::string& code :
       {std::string("Access Denied"), std::string("&#10;x"), std::string(65, 'A'), std::string(),
        std::string("Acc\xc3\xa4ss")}) {
    EXPECT_EQ(ParseRefusal(absl::StrCat("<Error><Code>", code, "</Code></Error>")).code, "");
  }
  for (const char* text : {"", "no XML", "<Code>AccessDenied</Code>", "\xff"}) {
    EXPECT_EQ(ParseRefusal(text).code, "") << text;
  }
  EXPECT_EQ(ParseRefusal("<Error><Region>evil.example/</Region></Error>").region, "");
  EXPECT_TRUE(IsRegion("us-gov-west-1"));
  for (const char* text :
       {"", "-a", "a-", "A", "a.b", "a/b", "123456789012345678901234567890123"}) {
    EXPECT_FALSE(IsRegion(text)) << text;
  }
}

TEST(BucketAnswerTest, TheIdOfAnUploadIsPrintableAndBounded) {
  const auto answer = [](const std::string& id) {
    return absl::StrCat(
        "<?xml version=\"1.0\"?>\n<InitiateMultipartUploadResult xmlns=\"x\"><Key>k"
        "</Key><UploadId>",
        id, "</UploadId></InitiateMultipartUploadResult>");
  };
  EXPECT_THAT(ParseUploadId(answer("a/b+c==&amp;")), IsOkAndHolds("a/b+c==&"));
  EXPECT_THAT(ParseUploadId(answer(std::string(kMaxUploadIdBytes, 'x'))), IsOk());
  for (const std::string& body : {answer(""), answer("a b"), answer("\xc3\xa4"),
                                  answer(std::string(kMaxUploadIdBytes + 1, 'x')), std::string(),
                                  std::string("no XML"), std::string("<UploadId>a</UploadId>")}) {
    EXPECT_THAT(ParseUploadId(body), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(""))) << body;
  }
}

TEST(BucketAnswerTest, TheAnswerToCompleteMultipartUploadIsAResultOrARefusalAndMayBeginWithBlanks) {
  const std::string result =
      "<CompleteMultipartUploadResult><ETag>&quot;1&quot;</ETag></CompleteMultipartUploadResult>";
  const std::string error = "<Error><Code>InternalError</Code></Error>";
  const std::string xml = "<?xml version=\"1.0\"?>";
  for (const std::string& before : {std::string(), std::string(" \n  "), xml, xml + "\n  "}) {
    EXPECT_THAT(ParseUploadEnd(before + result), IsOkAndHolds(testing::Eq(std::nullopt)));
    const auto refused = ParseUploadEnd(before + error);
    ASSERT_THAT(refused, IsOk());
    ASSERT_TRUE(refused->has_value());
    EXPECT_EQ((*refused)->code, "InternalError");
  }
  for (const std::string& body : {std::string(), std::string("  "), std::string("<html></html>"),
                                  result.substr(0, 50), error.substr(0, 30)}) {
    EXPECT_THAT(ParseUploadEnd(body), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(""))) << body;
  }
}

TEST(BucketAnswerTest, APageMayBeIndented) {
  std::string body = "<ListBucketResult>";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&body, "\n            <Contents>\n              <Key>", i,
                    "</Key>\n            </Contents>");
  }
  const absl::StatusOr<ListPage> page = ParseListPage(body + "\n</ListBucketResult>\n");
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->keys.size(), 1000u);
  EXPECT_EQ(page->keys.back(), "999");
}

}  // namespace
}  // namespace systole
