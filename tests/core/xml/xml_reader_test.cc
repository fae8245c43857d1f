#include "core/xml/xml_reader.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// All elements that are read, each as "PATH=TEXT". After an error, its code comes last.
std::vector<std::string> ReadAll(absl::string_view xml, const XmlBounds& bounds = {}) {
  std::vector<std::string> all;
  const absl::Status status = ReadXml(
      xml,
      [&](absl::string_view path, absl::string_view text) {
        all.push_back(absl::StrCat(path, "=", text));
        return absl::OkStatus();
      },
      bounds);
  if (!status.ok()) all.push_back(absl::StatusCodeToString(status.code()));
  return all;
}

absl::Status Read(absl::string_view xml, const XmlBounds& bounds = {}) {
  return ReadXml(
      xml, [](absl::string_view, absl::string_view) { return absl::OkStatus(); }, bounds);
}

TEST(XmlReaderTest, EachElementIsReportedAtItsEndWithPathAndOwnText) {
  EXPECT_THAT(ReadAll("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                      "<a xmlns=\"http://x/\"><b k='v'>1<!-- no -->2</b><c/>x<b>\xc3\xa4</b></a>"),
              ElementsAre("a/b=12", "a/c=", "a/b=\xc3\xa4", "a=x"));
  EXPECT_THAT(ReadAll("<s:a xmlns:s=\"http://x/\"><s:b>1</s:b></s:a>"), ElementsAre("a/b=1", "a="));
}

TEST(XmlReaderTest, WhitespaceBetweenElementsDoesNotCountTowardsTheTextLimit) {
  std::string xml = "<a>";
  for (int i = 0; i < 1000; ++i) xml += "\n            <b> 1</b>";
  xml += "\n</a>";
  EXPECT_THAT(Read(xml, {.max_text_bytes = 100}), IsOk());
  EXPECT_THAT(ReadAll("<a>\n  <b> 1 </b>\n</a>"), ElementsAre("a/b= 1 ", "a=\n"));
}

TEST(XmlReaderTest, PredefinedEntitiesCharacterReferencesAndCdataAreDecoded) {
  EXPECT_THAT(ReadAll("<a>&lt;&amp;&gt;&quot;&apos;&#x41;&#66;<![CDATA[<&]]></a>"),
              ElementsAre("a=<&>\"'AB<&"));
}

TEST(XmlReaderTest, UnknownEntitiesAndDocumentTypesAreDataLoss) {
  EXPECT_THAT(Read("<a>&x;</a>"), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("entity")));
  for (const char* xml : {"<!DOCTYPE a><a/>", "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
                          "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>",
                          "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><a>&x;</a>"}) {
    EXPECT_THAT(Read(xml), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("document type")))
        << xml;
  }
}

TEST(XmlReaderTest, MalformedXmlIsDataLossAndTheErrorDoesNotShowIt) {
  for (const char* xml : {"", "  ", "secret", "<a>", "<a></b>", "<a></a><b/>", "<a>\x01</a>",
                          "<a>\xff</a>", "{\"a\": 1}", "<a b=c/>"}) {
    EXPECT_THAT(Read(xml),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("malformed XML at byte"), Not(HasSubstr("secret")))))
        << xml;
  }
}

TEST(XmlReaderTest, DepthTextAndNamesAreBounded) {
  const XmlBounds bounds = {.max_depth = 3, .max_text_bytes = 5};
  EXPECT_THAT(ReadAll("<a><b><c>12345</c></b></a>", bounds),
              ElementsAre("a/b/c=12345", "a/b=", "a="));
  const auto refused = [](const char* what) {
    return StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(what));
  };
  EXPECT_THAT(Read("<a><b><c><d/></c></b></a>", bounds), refused("3 elements inside each other"));
  EXPECT_THAT(Read("<a>123<b/>456</a>", bounds), refused("a text of more than 5 bytes"));
  EXPECT_THAT(Read("<a><b123456/></a>", bounds), refused("a name of more than 5 bytes"));
  // Of a million elements inside each other, the first one beyond the bound is refused.
  std::string deep;
  for (int i = 0; i < 1'000'000; ++i) deep += "<a>";
  EXPECT_THAT(Read(deep), refused("16 elements"));
}

TEST(XmlReaderTest, TheFirstErrorOfTheCallbackEndsTheReading) {
  int taken = 0;
  const auto take = [&](absl::string_view, absl::string_view) {
    return ++taken < 2 ? absl::OkStatus() : absl::CancelledError("enough");
  };
  EXPECT_THAT(ReadXml("<a><b/><b/><b/></a>", take),
              StatusIs(absl::StatusCode::kCancelled, "enough"));
  EXPECT_EQ(taken, 2);
}

TEST(XmlReaderTest, ADocumentOfMoreThanAMebibyteIsReadWhole) {
  std::string xml = "<a>";
  for (int i = 0; i < 100'000; ++i) absl::StrAppend(&xml, "<b>", 1'000'000 + i, "</b>");
  xml += "</a>";
  ASSERT_GT(xml.size(), size_t{1} << 20);
  int64_t at = 0;
  EXPECT_THAT(ReadXml(xml,
                      [&](absl::string_view path, absl::string_view text) {
                        if (path == "a/b" && text != absl::StrCat(1'000'000 + at++)) {
                          return absl::InternalError("another text");
                        }
                        return absl::OkStatus();
                      }),
              IsOk());
  EXPECT_EQ(at, 100'000);
}

}  // namespace
}  // namespace systole
