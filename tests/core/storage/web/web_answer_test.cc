#include "core/storage/web/web_answer.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/storage/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kName[] = "https://host/dir/a.tfrecord";

HttpResponse Answer(int status, const HttpHeaders& headers, uint64_t body_bytes = 0) {
  return {.status = status, .headers = headers, .body_bytes = body_bytes};
}

std::string IdentityOf(const HttpHeaders& headers) {
  HttpHeaders all = headers;
  all.emplace_back("content-length", "10");
  const auto object = ObjectOfHead(kName, Answer(200, all));
  EXPECT_THAT(object, IsOk());
  return (*object)->Identity();
}

TEST(WebAnswerTest, AnIdentityIsTheStrongEtagOrTheTimeWithTheSizeOrNothing) {
  EXPECT_EQ(IdentityOf({{"etag", "\"abc\""}, {"last-modified", "today"}}), "etag \"abc\"");
  EXPECT_EQ(IdentityOf({{"etag", "W/\"abc\""}, {"last-modified", "today"}}), "10 modified today");
  EXPECT_EQ(IdentityOf({{"etag", "W/\"abc\""}}), "");
  EXPECT_EQ(IdentityOf({}), "");
}

TEST(WebAnswerTest, AnIdentityIsShortPrintableTextWhateverTheServerSays) {
  for (const std::string& etag :
       {absl::StrCat("\"", std::string(249, 'x'), "\""),
        absl::StrCat("\"", std::string(250, 'x'), "\""), std::string("\"\x01\""),
        std::string("\"\xff\""), std::string("\"")}) {
    const std::string identity = IdentityOf({{"etag", etag}, {"last-modified", "\x01"}});
    EXPECT_LE(identity.size(), kMaxIdentityBytes);
    EXPECT_EQ(identity.empty(), etag.size() != 251) << etag;
  }
  EXPECT_EQ(IdentityOf({{"last-modified", std::string(65, 'x')}}), "");
}

TEST(WebAnswerTest, AHeadAnswerWithoutAUsableSizeYieldsNoObject) {
  for (const int status : {403, 405, 501}) {
    EXPECT_THAT(ObjectOfHead(kName, Answer(status, {})), IsOkAndHolds(testing::Eq(std::nullopt)));
  }
  EXPECT_THAT(ObjectOfHead(kName, Answer(200, {})), IsOkAndHolds(testing::Eq(std::nullopt)));
  for (const char* length : {"many", "0"}) {
    EXPECT_THAT(ObjectOfHead(kName, Answer(200, {{"content-length", length}})),
                IsOkAndHolds(testing::Eq(std::nullopt)));
  }
}

TEST(WebAnswerTest, ASizeAbove8TiBIsRefused) {
  EXPECT_THAT(ObjectOfHead(kName, Answer(200, {{"content-length", "9223372036854775807"}})),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("9223372036854775807")));
  // 8 TiB are accepted. One byte more is refused.
  EXPECT_THAT(ObjectOfHead(kName, Answer(200, {{"content-length", "8796093022208"}})), IsOk());
  EXPECT_THAT(ObjectOfHead(kName, Answer(200, {{"content-length", "8796093022209"}})),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("8796093022209")));
  EXPECT_THAT(ObjectOfFirstByte(kName, Answer(403, {}),
                                Answer(206, {{"content-range", "bytes 0-0/8796093022209"}}, 1)),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("8796093022209")));
}

TEST(WebAnswerTest, ARefusalSaysWhatToDo) {
  for (const auto& [status, code, words] :
       std::initializer_list<std::tuple<int, absl::StatusCode, const char*>>{
           {404, absl::StatusCode::kNotFound, "check its address"},
           {410, absl::StatusCode::kNotFound, "check its address"},
           {401, absl::StatusCode::kPermissionDenied, "signed address"},
           {403, absl::StatusCode::kPermissionDenied, "signed address"},
           {429, absl::StatusCode::kUnavailable, "try again"},
           {503, absl::StatusCode::kUnavailable, "try again"},
           {400, absl::StatusCode::kFailedPrecondition, "file server"},
           {407, absl::StatusCode::kFailedPrecondition, "http_proxy"},
           {204, absl::StatusCode::kFailedPrecondition, "file server"}}) {
    EXPECT_THAT(RefusalOf(kName, Answer(status, {})),
                StatusIs(code, AllOf(HasSubstr(words), HasSubstr(absl::StrCat(status)),
                                     HasSubstr("https://host/dir/a.tfrecord:"))));
  }
}

TEST(WebAnswerTest, TheSizeIsTakenFromTheAnswerForTheFirstByte) {
  const auto size = [](const HttpResponse& response,
                       const HttpResponse& head = Answer(403, {})) -> absl::StatusOr<uint64_t> {
    const absl::StatusOr<WebObject> object = ObjectOfFirstByte(kName, head, response);
    if (!object.ok()) return object.status();
    return object->size_bytes;
  };
  EXPECT_THAT(size(Answer(206, {{"content-range", "bytes 0-0/70"}}, 1)), IsOkAndHolds(70u));
  EXPECT_THAT(size(Answer(416, {{"content-range", "bytes */0"}})), IsOkAndHolds(0u));
  EXPECT_THAT(size(Answer(200, {}, 1)), IsOkAndHolds(1u));
  EXPECT_THAT(size(Answer(403, {})),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("status 403")));
  // A 416 without a size is accepted only if an earlier answer has said that the object is empty.
  const HttpResponse empty = Answer(200, {{"content-length", "0"}});
  EXPECT_THAT(size(Answer(416, {}), empty), IsOkAndHolds(0u));
  EXPECT_THAT(size(Answer(416, {})), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("416")));
  EXPECT_THAT(size(Answer(416, {{"content-range", "bytes */70"}}), empty),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("*/70")));
  EXPECT_THAT(size(Answer(206, {{"content-range", "bytes 0-0/*"}}, 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("how many bytes")));
  for (const char* range : {"", "bytes 1-1/70", "bytes 0-1/70", "bytes */70", "nonsense"}) {
    EXPECT_THAT(size(Answer(206, {{"content-range", range}}, 1)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(range)));
  }
}

// Checks an answer to a request for the bytes 10-19 of an object of 100 bytes.
absl::Status Checked(const HttpResponse& response,
                     const WebObject& object = {.size_bytes = 100, .etag = "\"a\""}) {
  return CheckPiece(kName, object, {.begin = 10, .end = 20}, response);
}

TEST(WebAnswerTest, JustTheAskedRangeOfTheOpenedObjectIsAccepted) {
  EXPECT_THAT(Checked(Answer(206, {{"content-range", "bytes 10-19/100"}, {"etag", "\"a\""}}, 10)),
              IsOk());
  EXPECT_THAT(Checked(Answer(206, {{"content-range", "bytes 10-19/100"}}, 10)), IsOk());
  EXPECT_THAT(Checked(Answer(206, {{"content-range", "bytes 10-19/*"}}, 10)), IsOk());
}

TEST(WebAnswerTest, AWrongRangeIsDataLossThatNamesBothRanges) {
  for (const char* range : {"", "bytes 10-18/100", "bytes 0-9/100", "bytes 10-20/100",
                            "bytes */100", "10-19", "bytes 10-19"}) {
    EXPECT_THAT(Checked(Answer(206, {{"content-range", range}}, 10)),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("bytes 10-19"), HasSubstr(absl::StrCat("\"", range)))))
        << range;
  }
  EXPECT_THAT(Checked(Answer(416, {{"content-range", "bytes */100"}})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("status 416")));
  EXPECT_THAT(Checked(Answer(200, {}, 100)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the bytes 10-19")));
  // Without an ETag, only the object's size could show that the object is still the same. This
  // answer does not give the size.
  EXPECT_THAT(Checked(Answer(206, {{"content-range", "bytes 10-19/*"}}, 10), {.size_bytes = 100}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("bytes 10-19/*")));
}

TEST(WebAnswerTest, AReplacedOrRemovedObjectIsFailedPreconditionByBaseName) {
  const auto replaced =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("shard \"a.tfrecord\" was replaced"), Not(HasSubstr("dir"))));
  EXPECT_THAT(Checked(Answer(412, {})), replaced);
  EXPECT_THAT(Checked(Answer(206, {{"content-range", "bytes 10-19/101"}}, 10)), replaced);
  EXPECT_THAT(Checked(Answer(206, {{"content-range", "bytes 10-19/100"}, {"etag", "\"b\""}}, 10)),
              replaced);
  EXPECT_THAT(Checked(Answer(206, {{"content-range", "bytes 10-19/100"}, {"etag", "W/\"a\""}}, 10)),
              replaced);
  EXPECT_THAT(Checked(Answer(416, {{"content-range", "bytes */5"}})), replaced);
  EXPECT_THAT(
      Checked(Answer(206, {{"content-range", "bytes 10-19/100"}, {"last-modified", "now"}}, 10),
              {.size_bytes = 100, .last_modified = "before"}),
      replaced);
  for (const int status : {404, 410}) {
    EXPECT_THAT(Checked(Answer(status, {})),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was removed")));
  }
}

TEST(WebAnswerTest, OnlyTheSameStrongEtagProvesThatItIsTheSameObject) {
  const WebObject object = {.size_bytes = 100, .etag = "\"a\""};
  EXPECT_TRUE(ProvesSameObject(object, Answer(206, {{"etag", "\"a\""}})));
  EXPECT_FALSE(ProvesSameObject(object, Answer(206, {})));
  EXPECT_FALSE(ProvesSameObject(object, Answer(206, {{"etag", "\"b\""}})));
  EXPECT_FALSE(ProvesSameObject(object, Answer(206, {{"etag", "W/\"a\""}})));
}

TEST(WebAnswerTest, WithoutAnEtagTheSameTimeAndSizeProveTheSameObject) {
  const WebObject dated = {.size_bytes = 100, .last_modified = "then"};
  const std::pair<std::string, std::string> range = {"content-range", "bytes 10-19/100"};
  EXPECT_TRUE(ProvesSameObject(dated, Answer(206, {{"last-modified", "then"}, range}, 10)));
  EXPECT_FALSE(ProvesSameObject(dated, Answer(206, {range}, 10)));
  EXPECT_FALSE(ProvesSameObject(dated, Answer(206, {{"last-modified", "later"}, range}, 10)));
  EXPECT_FALSE(ProvesSameObject(dated, Answer(206, {{"last-modified", "then"}}, 10)));
  for (const char* other : {"bytes 10-19/*", "bytes 10-19/99"}) {
    EXPECT_FALSE(ProvesSameObject(
        dated, Answer(206, {{"last-modified", "then"}, {"content-range", other}}, 10)));
  }
  EXPECT_TRUE(ProvesSameObject(dated, Answer(200, {{"last-modified", "then"}}, 100)));
  EXPECT_FALSE(ProvesSameObject(dated, Answer(200, {{"last-modified", "then"}}, 99)));
  EXPECT_TRUE(ProvesSameObject({.size_bytes = 100}, Answer(206, {range}, 10)));
  EXPECT_FALSE(ProvesSameObject({.size_bytes = 100}, Answer(206, {}, 10)));
}

TEST(WebAnswerTest, AGenerationIdentifiesTheObjectWhateverItsEtag) {
  const HttpHeaders same = {{"x-goog-generation", "17"}, {"etag", "\"b\""}};
  EXPECT_EQ(GenerationOf(Answer(206, same)), "17");
  for (const char* none : {"", "-1", "1a", "123456789012345678901"}) {
    EXPECT_EQ(GenerationOf(Answer(206, {{"x-goog-generation", none}})), "") << none;
  }
  const WebObject object = {.size_bytes = 100, .etag = "\"a\"", .generation = "17"};
  EXPECT_EQ(object.Identity(), "generation 17");
  EXPECT_TRUE(ProvesSameObject(object, Answer(206, same)));
  EXPECT_FALSE(ProvesSameObject(object, Answer(206, {{"etag", "\"a\""}})));
  const HttpRange asked = {.begin = 10, .end = 20};
  const std::pair<std::string, std::string> range = {"content-range", "bytes 10-19/100"};
  HttpHeaders piece = same;
  piece.push_back(range);
  EXPECT_THAT(CheckPiece(kName, object, asked, Answer(206, piece, 10)), IsOk());
  EXPECT_THAT(
      CheckPiece(kName, object, asked, Answer(206, {{"x-goog-generation", "18"}, range}, 10)),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
}

TEST(WebAnswerTest, AWholeObjectIsAcceptedOnlyIfAllOfItWasAskedFor) {
  const WebObject object = {.size_bytes = 10, .etag = "\"a\""};
  const HttpRange all = {.begin = 0, .end = 10};
  EXPECT_THAT(CheckPiece(kName, object, all, Answer(200, {{"content-length", "10"}}, 10)), IsOk());
  EXPECT_THAT(CheckPiece(kName, object, all, Answer(200, {{"content-length", "9"}}, 9)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
  EXPECT_THAT(CheckPiece(kName, object, {.begin = 1, .end = 10}, Answer(200, {}, 9)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the bytes 1-9")));
}

TEST(WebAnswerTest, ABodyShorterThanItsRangeIsUnavailable) {
  EXPECT_THAT(Checked(Answer(206, {{"content-range", "bytes 10-19/100"}}, 9)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("after 9 of 10 bytes")));
  EXPECT_THAT(CheckPiece(kName, {.size_bytes = 10}, {.begin = 0, .end = 10}, Answer(200, {}, 4)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("after 4 of 10 bytes")));
}

}  // namespace
}  // namespace systole
