#include "core/textproto/message_text.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/config.pb.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kText[] = R"(# A comment.
dataset: "flowers"
shuffle { mode: GLOBAL }
global_batch: 64
outputs { name: "image" shape: [2, 3] dtype: BFLOAT16 }
)";
constexpr char kJson[] = R"({
  "dataset": "flowers", "shuffle": {"mode": "GLOBAL"}, "globalBatch": 64,
  "outputs": [{"name": "image", "shape": [2, "3"], "dtype": "BFLOAT16"}]
})";

TEST(TextprotoTest, ReadsTextprotoAndJsonAlike) {
  v1::FeedSpec text, json;
  ASSERT_THAT(ParseTextproto(kText, "spec", text), IsOk());
  ASSERT_THAT(ParseJson(kJson, "spec", json), IsOk());
  EXPECT_EQ(text.SerializeAsString(), json.SerializeAsString());
  EXPECT_EQ(text.dataset(), "flowers");
  EXPECT_EQ(text.outputs(0).shape(1), 3);
}

TEST(TextprotoTest, JsonAlsoAcceptsFieldNamesOfTheProtoFile) {
  v1::FeedSpec spec;
  ASSERT_THAT(ParseJson(R"({"global_batch": 64})", "spec", spec), IsOk());
  EXPECT_EQ(spec.global_batch(), 64);
}

TEST(TextprotoTest, ReplacesWhatTheMessageHeld) {
  for (const bool json : {false, true}) {
    v1::FeedSpec spec;
    spec.set_seed(5);
    spec.add_outputs();
    ASSERT_THAT(json ? ParseJson("{}", "spec", spec) : ParseTextproto("", "spec", spec), IsOk());
    EXPECT_EQ(spec.ByteSizeLong(), 0u);
  }
}

TEST(TextprotoTest, AnErrorHasLineAndColumnFromOne) {
  v1::FeedSpec spec;
  EXPECT_THAT(ParseTextproto("dataset: \"x\"\n  batchsize: 3\n", "my.textproto", spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("my.textproto:2:12: "), HasSubstr("batchsize"))));
  EXPECT_THAT(ParseTextproto("seed: x", "my.textproto", spec),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("my.textproto:1:7: ")));
  EXPECT_THAT(ParseTextproto("shuffle { mode: SIDEWAYS }", "my.textproto", spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("my.textproto:1:"), HasSubstr("SIDEWAYS"))));
}

TEST(TextprotoTest, AnUnclosedMessageIsAnError) {
  v1::FeedSpec spec;
  EXPECT_THAT(ParseTextproto("shuffle { mode: GLOBAL", "my.textproto", spec),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("my.textproto:1:")));
}

TEST(TextprotoTest, AFieldGivenTwiceIsAnError) {
  v1::FeedSpec spec;
  EXPECT_THAT(ParseTextproto("seed: 1\nseed: 2", "my.textproto", spec),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("my.textproto:2:")));
}

TEST(TextprotoTest, AFieldOfAnotherMessageIsAnError) {
  v1::ServerConfig config;
  EXPECT_THAT(ParseTextproto("dataset: \"x\"", "config", config),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dataset")));
}

TEST(TextprotoTest, JsonErrorsNameTheSourceAndWhatIsWrong) {
  v1::FeedSpec spec;
  EXPECT_THAT(ParseJson(R"({"batchsize": 3})", "my.json", spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("my.json: "), HasSubstr("batchsize"))));
  EXPECT_THAT(ParseJson(R"({"seed": "x"})", "my.json", spec),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("my.json: ")));
  EXPECT_THAT(ParseJson(R"({"seed": 1)", "my.json", spec),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("my.json: ")));
  EXPECT_THAT(ParseJson("", "my.json", spec),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("my.json: ")));
}

TEST(TextprotoTest, AnUnknownEnumValueInJsonIsAnError) {
  v1::FeedSpec spec;
  EXPECT_THAT(ParseJson(R"({"shuffle": {"mode": "SIDEWAYS"}})", "my.json", spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SIDEWAYS")));
}

TEST(TextprotoTest, AnUnknownFieldGetsASuggestionOrTheListOfFields) {
  v1::FeedSpec spec;
  const auto error = [&spec](absl::string_view text) {
    return std::string(ParseTextproto(text, "s", spec).message());
  };
  EXPECT_THAT(error("globalbatch: 8"), HasSubstr("did you mean 'global_batch'?"));
  EXPECT_THAT(error("outputs { feture: 'x' }"), HasSubstr("did you mean 'feature'?"));
  EXPECT_THAT(error("shuffle { mod: GLOBAL }"), HasSubstr("did you mean 'mode'?"));
  EXPECT_THAT(error("shuffle { what: 1 }"),
              HasSubstr("it has mode, block_records, window_records"));
}

TEST(TextprotoTest, TheErrorForAnUnknownEnumValueListsTheValidOnes) {
  v1::FeedSpec spec;
  const auto error = [&spec](absl::string_view text) {
    return std::string(ParseTextproto(text, "s", spec).message());
  };
  EXPECT_THAT(error("tail: pad"), HasSubstr("want DROP, PAD"));
  EXPECT_THAT(error("shuffle { mode: global }"), HasSubstr("want NONE, GLOBAL, WINDOW"));
  EXPECT_THAT(error("outputs { dtype: FLOAT }"),
              HasSubstr("want UINT8, INT32, INT64, FLOAT32, BFLOAT16"));
}

TEST(TextprotoTest, JsonErrorsAlsoSuggestFieldsAndListEnumValues) {
  v1::FeedSpec spec;
  const auto error = [&spec](absl::string_view text) {
    return std::string(ParseJson(text, "s", spec).message());
  };
  EXPECT_THAT(error(R"({"globalbatch": 8})"), HasSubstr("did you mean 'global_batch'?"));
  EXPECT_THAT(error(R"({"outputs": [{"feture": "x"}]})"), HasSubstr("did you mean 'feature'?"));
  EXPECT_THAT(error(R"({"tail": "pad"})"), HasSubstr("want DROP, PAD"));
  EXPECT_THAT(error(R"({"outputs": [{"dtype": "FLOAT"}]})"), HasSubstr("want UINT8, INT32, "));
}

TEST(TextprotoTest, TheErrorForAMisplacedFieldNamesWhereItBelongs) {
  v1::FeedSpec spec;
  const auto error = [&spec](absl::string_view text) {
    return std::string(ParseJson(text, "s", spec).message());
  };
  EXPECT_THAT(error(R"({"select": [{"block_length": 2}]})"),
              HasSubstr("'block_length' belongs inside 'interleave'"));
  EXPECT_THAT(error(R"({"mean": 3})"), HasSubstr("'mean' belongs inside 'normalize'"));
  // Two messages have a field `select`: FeedSpec and Member. The hint names the field all the same.
  EXPECT_THAT(error(R"({"skip": 3})"), EndsWith("'skip' belongs inside 'select'"));
  EXPECT_THAT(error(R"({"shuffle": {"seed": 3}})"),
              HasSubstr("'seed' belongs inside the outermost message"));
}

TEST(TextprotoTest, DeepNestingIsAnErrorNotAnOverflow) {
  std::string text, json;
  for (int i = 0; i < 100'000; ++i) {
    text += "outputs {";
    json += "[";
  }
  v1::FeedSpec spec;
  EXPECT_THAT(ParseTextproto(text, "deep", spec), Not(IsOk()));
  EXPECT_THAT(ParseJson(json, "deep", spec), Not(IsOk()));
}

TEST(TextprotoTest, ThousandsOfErrorsGiveAShortMessage) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "nonsense_field: 1\n";
  v1::FeedSpec spec;
  const absl::Status status = ParseTextproto(text, "long", spec);
  EXPECT_THAT(status, Not(IsOk()));
  EXPECT_LT(status.message().size(), 10'000u);
}

TEST(TextprotoTest, ATextAboveTheSizeLimitIsRefused) {
  const std::string text(static_cast<size_t>(kMaxTextBytes) + 1, ' ');
  v1::FeedSpec spec;
  EXPECT_THAT(ParseTextproto(text, "big", spec),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("big")));
  EXPECT_THAT(ParseJson(text, "big", spec),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("big")));
}

TEST(LoadMessageTest, TheFileNameDecidesBetweenTextprotoAndJson) {
  const TempFolder folder;
  const std::string text = folder.Write("a.textproto", kText);
  const std::string json = folder.Write("a.json", kJson);
  v1::FeedSpec a, b;
  ASSERT_THAT(LoadMessage(text, a), IsOk());
  ASSERT_THAT(LoadMessage(json, b), IsOk());
  EXPECT_EQ(a.SerializeAsString(), b.SerializeAsString());
  EXPECT_THAT(LoadMessage(folder.Write("b.json", kText), a),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("b.json: ")));
  EXPECT_THAT(LoadMessage(folder.Write("b.textproto", "nonsense"), a),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("b.textproto:1:")));
}

TEST(LoadMessageTest, AnEmptyFileIsAnEmptyMessage) {
  const TempFolder folder;
  v1::FeedSpec spec;
  spec.set_seed(3);
  ASSERT_THAT(LoadMessage(folder.Write("empty.textproto", ""), spec), IsOk());
  EXPECT_EQ(spec.seed(), 0u);
}

TEST(LoadMessageTest, TheErrorForAnUnreadableFileNamesPathAndReason) {
  const TempFolder folder;
  v1::FeedSpec spec;
  EXPECT_THAT(LoadMessage(folder / "none.textproto", spec),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none.textproto")));
  EXPECT_THAT(LoadMessage(folder.path(), spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(folder.path()), HasSubstr("Is a directory"))));
}

TEST(LoadMessageTest, AFileOfMoreThanTheLimitIsRefused) {
  const TempFolder folder;
  const std::string path =
      folder.Write("big.textproto", std::string(static_cast<size_t>(kMaxTextBytes) + 10, '\n'));
  v1::FeedSpec spec;
  EXPECT_THAT(LoadMessage(path, spec),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("big.textproto")));
}

}  // namespace
}  // namespace systole
