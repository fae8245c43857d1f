#include "core/record/webdataset/webdataset_sample.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/webdataset/archive_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The "name kind" of each feature.
std::vector<std::string> Features(const std::string& record) {
  const absl::StatusOr<ExampleView> view = ExampleView::Parse(record, WebDatasetSample());
  EXPECT_THAT(view, IsOk());
  std::vector<std::string> texts;
  for (const FeatureView& feature : view->Features()) {
    EXPECT_EQ(feature.count(), 1);
    texts.push_back(absl::StrCat(feature.name(), " ", FeatureKindName(feature.kind())));
  }
  return texts;
}

int64_t Cls(absl::string_view text) {
  const std::string record = ArchiveBuilder().Add("a.cls", text).bytes();
  const absl::StatusOr<ExampleView> view = ExampleView::Parse(record, WebDatasetSample());
  EXPECT_THAT(view, IsOk()) << text;
  int64_t value[1] = {-99};
  if (view.ok()) {
    EXPECT_THAT(view->Find("cls").CopyInt64s(value), IsOk());
  }
  return value[0];
}

TEST(WebDatasetSampleTest, FilesAreFeaturesNamedByTheirExtension) {
  EXPECT_THAT(
      Features(ArchiveBuilder()
                   .Add("a", "", '5')
                   .Add("a/1.JPG", "jpeg")
                   .Add("a/README", "no sample's")
                   .Add("a/1.seg.Png", "png")
                   .Add("a/1.cls", "3")
                   .Add("a/1.fine.cls", "4")
                   .Add("a/1.meta.json", "{\"w\": 1, \"h\": 0.5, \"s\": \"\\u0041\"}")
                   .bytes()),
      ElementsAre("__key__ bytes", "cls int64", "fine.cls int64", "jpg bytes", "meta.json bytes",
                  "meta.json/h float", "meta.json/s bytes", "meta.json/w int64", "seg.png bytes"));
}

TEST(WebDatasetSampleTest, FileBytesPointIntoTheRecordWithoutACopy) {
  const std::string record = ArchiveBuilder().Add("a.jpg", "jpeg").bytes();
  const absl::StatusOr<ExampleView> view = ExampleView::Parse(record, WebDatasetSample());
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(view->Find("jpg").BytesAt(0)->data(), record.data() + 512);
  EXPECT_THAT(*view->Find("__key__").BytesAt(0), "a");
}

TEST(WebDatasetSampleTest, ChosenFeaturesStayValidAfterTheParseCall) {
  const absl::StatusOr<ExampleParser> parser =
      ExampleParser::Create({"json/s", "cls", "absent", "json/f"});
  ASSERT_THAT(parser, IsOk());
  const std::string record =
      ArchiveBuilder().Add("a.json", "{\"s\":\"x\\ny\",\"f\":0.5}").Add("a.cls", "7").bytes();
  FeatureView views[4];
  MadeText made;
  ASSERT_THAT(parser->Parse(WebDatasetSample(), record, made, views), IsOk());
  EXPECT_THAT(views[0].BytesAt(0), IsOkAndHolds("x\ny"));
  EXPECT_THAT(views[0].BytesAt(1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("with 1 value")));
  int64_t cls[1];
  EXPECT_THAT(views[1].CopyInt64s(cls), IsOk());
  EXPECT_EQ(cls[0], 7);
  int64_t none[1];
  EXPECT_THAT(views[1].CopyFirstInt64s(absl::MakeSpan(none, 0)), IsOk());
  EXPECT_EQ(views[2].kind(), FeatureKind::kMissing);
  float score[1];
  EXPECT_THAT(views[3].CopyFloats(score), IsOk());
  EXPECT_EQ(score[0], 0.5f);
  EXPECT_THAT(views[3].CopyInt64s(cls),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has float with 1 value")));
}

TEST(WebDatasetSampleTest, ClsIsAWholeNumberAsPythonReadsIt) {
  EXPECT_EQ(Cls("0"), 0);
  EXPECT_EQ(Cls("12\n"), 12);
  EXPECT_EQ(Cls(" \t-7 \r\n"), -7);
  EXPECT_EQ(Cls("+3"), 3);
  EXPECT_EQ(Cls("007"), 7);
  EXPECT_EQ(Cls("9223372036854775807"), std::numeric_limits<int64_t>::max());
  for (const char* text : {"", " ", "x", "1.0", "1 2", "+-1", "--1", "+", "9223372036854775808"}) {
    EXPECT_THAT(
        ExampleView::Parse(ArchiveBuilder().Add("k/a.cls", text).bytes(), WebDatasetSample()),
        StatusIs(absl::StatusCode::kDataLoss,
                 HasSubstr("not a WebDataset sample: file \"k/a.cls\" holds \"")))
        << text;
  }
}

TEST(WebDatasetSampleTest, AnInvalidSampleIsDataLossWithTheCause) {
  ArchiveBuilder many;
  for (int i = 0; i <= kMaxSampleFiles; ++i) many.Add(absl::StrCat("a.", i), "");
  std::string flipped = ArchiveBuilder().Add("a.txt", "x").Add("a.cls", "1").bytes();
  flipped[1024] = 'b';
  const struct {
    std::string record;
    const char* message;
  } kCases[] = {
      {"", "it has no file with a key"},
      {ArchiveBuilder().Add("README", "").bytes(), "it has no file with a key"},
      {ArchiveBuilder().Add("a.txt", "").Add("b.txt", "").bytes(),
       "it has files of \"a\" and of \"b\""},
      {ArchiveBuilder().Add("a.TXT", "").Add("a.txt", "").bytes(), "file \"a.txt\" appears twice"},
      {ArchiveBuilder().Add("a.__key__", "").bytes(), "file \"a.__key__\" appears twice"},
      {many.bytes(), "it has more than 1000 files"},
      {ArchiveBuilder().Add("a.txt", "").Build(), "it contains a block of zeros, at byte 512"},
      {flipped, "the sum of the tar header is"},
      {ArchiveBuilder().Add("a.json", "{").bytes(),
       "file \"a.json\" as JSON: want a member's name"},
      {ArchiveBuilder()
           .Add("a.x.json", "1" + std::string(kMaxSampleJsonBytes / 2, ' '))
           .Add("a.y.json", "1" + std::string(kMaxSampleJsonBytes / 2, ' '))
           .bytes(),
       "file \"a.y.json\" brings the sample's JSON above 1048576 bytes"},
      {"no archive", "cut short: 10 bytes are left, a tar header has 512, at byte 0 of 10"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(ExampleView::Parse(c.record, WebDatasetSample()),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("not a WebDataset sample: "), HasSubstr(c.message))))
        << c.message;
  }
}

}  // namespace
}  // namespace systole
