// Tests which answers of a server a WebStore trusts, and for how long. The tests set the clock.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/storage/web/recent_objects.h"
#include "core/storage/web/web_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A server, and a store that trusts the server's answers for the time `trust`.
class Scene {
 public:
  explicit Scene(absl::Duration trust = absl::Seconds(1)) : store_(Options(trust)) {}

  StubObjects& objects() { return objects_; }
  const WebStore& store() const { return store_; }
  void Wait(int64_t milliseconds) { now_ms_ += milliseconds; }

  std::unique_ptr<ByteSource> Open(const std::string& name) {
    absl::StatusOr<std::unique_ptr<ByteSource>> source = store_.Open(name);
    EXPECT_THAT(source, IsOk());
    return *std::move(source);
  }

  int Heads() {
    int count = 0;
    for (const StubRequest& request : objects_.server().requests()) {
      count += request.method == "HEAD" ? 1 : 0;
    }
    return count;
  }

 private:
  WebStoreOptions Options(absl::Duration trust) {
    WebStoreOptions options;
    options.client.connect_timeout = absl::FromChrono(kLongestWait);
    options.client.stall_timeout = absl::FromChrono(kLongestWait);
    options.retry.max_attempts = 1;
    options.timeout = absl::FromChrono(kLongestWait);
    options.open_timeout = options.timeout;
    options.trust = trust;
    options.now = [this] { return absl::Milliseconds(now_ms_.load()); };
    return options;
  }

  std::atomic<int64_t> now_ms_ = 5 * 3600 * 1000;  // The server's threads change it, too.
  StubObjects objects_;
  WebStore store_;
};

bool All(absl::string_view) { return true; }

void WithoutEtag(std::string& answer) {
  const size_t etag = answer.find("ETag: ");
  answer.erase(etag, answer.find("\r\n", etag) + 2 - etag);
}

TEST(WebTrustTest, ListStatAndOpenTakeOneRequestWhileTrustLasts) {
  Scene scene;
  const std::string name = scene.objects().Put("/a", "abc");
  EXPECT_THAT(scene.store().List(name, All), IsOkAndHolds(ElementsAre(name)));
  EXPECT_EQ(scene.Heads(), 0);
  EXPECT_EQ(scene.store().Stat(name)->size_bytes, 3u);
  scene.Wait(999);
  EXPECT_EQ(scene.Open(name)->identity(), "etag \"1\"");
  EXPECT_EQ(scene.Heads(), 1);
  scene.Wait(1);
  EXPECT_THAT(scene.store().Stat(name), IsOk());
  EXPECT_EQ(scene.Heads(), 2);
}

TEST(WebTrustTest, TrustCountsFromTheRequestEvenIfOpenUsedACachedAnswer) {
  Scene scene;
  const std::string name = scene.objects().Put("/a", "abc");
  EXPECT_THAT(scene.store().Stat(name), IsOk());
  scene.Wait(900);
  const auto source = scene.Open(name);
  scene.objects().Put("/a", "xyz");
  EXPECT_THAT(source->CheckUnchanged(), IsOk());
  EXPECT_EQ(scene.Heads(), 1);
  scene.Wait(100);
  EXPECT_THAT(source->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
}

TEST(WebTrustTest, ACheckIgnoresCachedAnswersOfStatButItsAnswerServesOpen) {
  Scene scene;
  const std::string name = scene.objects().Put("/a", "abc");
  const auto source = scene.Open(name);
  scene.Wait(1000);
  EXPECT_THAT(scene.store().Stat(name), IsOk());
  EXPECT_EQ(scene.Heads(), 2);
  scene.objects().Put("/a", "xyz");
  EXPECT_THAT(source->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
  EXPECT_EQ(scene.Open(name)->identity(), "etag \"2\"");
  EXPECT_EQ(scene.Heads(), 3);
}

TEST(WebTrustTest, AfterAReadFindsAReplacementOpenReturnsTheNewObject) {
  Scene scene;
  const std::string name = scene.objects().Put("/a", "abc");
  const auto source = scene.Open(name);
  scene.objects().Put("/a", "xyz");
  EXPECT_THAT(ReadWhole(*source, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
  EXPECT_THAT(ReadWhole(*scene.Open(name), 3), IsOkAndHolds("xyz"));
}

TEST(WebTrustTest, AReadCountsAsACheckOnlyIfEachOfItsAnswersHasTheEtag) {
  // Answers to requests whose Range header begins with `part` lack the ETag. A read of the whole
  // object takes two requests, for two ranges.
  for (const char* part : {"none", "bytes=0-", "bytes=8388608-"}) {
    SCOPED_TRACE(part);
    Scene scene;
    const std::string bytes((size_t{8} << 20) + 1, 'x');
    const std::string name = scene.objects().Put("/a", bytes);
    // The server ignores If-Match.
    scene.objects().SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
      StubRequest careless = request;
      RemoveHeader(careless.headers, "if-match");
      StubAnswer answer = scene.objects().Usual(careless);
      if (absl::StartsWith(FindHeader(request.headers, "range"), part)) WithoutEtag(answer.bytes);
      return answer;
    });
    const auto source = scene.Open(name);
    scene.Wait(900);
    std::string out(bytes.size(), '\0');
    ASSERT_THAT(source->ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(bytes.size()));
    scene.objects().Put("/a", bytes);
    scene.Wait(200);
    if (part == absl::string_view("none")) {
      EXPECT_THAT(source->CheckUnchanged(), IsOk());
    } else {
      EXPECT_THAT(source->CheckUnchanged(),
                  StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
    }
  }
}

TEST(WebTrustTest, AReadWithoutAnEtagIsNotCheckedByEarlierAnswers) {
  Scene scene(absl::Hours(1));
  const std::string name = scene.objects().Put("/a", "abc");
  // A cache that ignores If-Match, and whose answers to GET have no ETag.
  scene.objects().SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "HEAD") return std::nullopt;
    StubRequest careless = request;
    RemoveHeader(careless.headers, "if-match");
    StubAnswer answer = scene.objects().Usual(careless);
    WithoutEtag(answer.bytes);
    return answer;
  });
  const auto source = scene.Open(name);
  EXPECT_THAT(source->CheckUnchanged(), IsOk());
  EXPECT_EQ(scene.Heads(), 1);
  scene.objects().Put("/a", "xyz");
  scene.Wait(1);
  std::string out(3, '\0');
  ASSERT_THAT(source->ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(3u));
  EXPECT_EQ(out, "xyz");
  scene.Wait(1);
  EXPECT_THAT(source->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
}

TEST(WebTrustTest, AnObjectWithoutIdentityIsNotRecheckedAfterEachRead) {
  Scene scene(absl::Hours(1));
  scene.objects().SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    StubRequest careless = request;
    RemoveHeader(careless.headers, "if-match");
    StubAnswer answer = scene.objects().Usual(careless);
    WithoutEtag(answer.bytes);
    return answer;
  });
  const auto source = scene.Open(scene.objects().Put("/a", "abc"));
  EXPECT_EQ(source->identity(), "");
  for (int i = 0; i < 5; ++i) {
    scene.Wait(1);
    EXPECT_THAT(ReadWhole(*source, 3), IsOkAndHolds("abc"));
    EXPECT_THAT(source->CheckUnchanged(), IsOk());
  }
  EXPECT_EQ(scene.Heads(), 1);
}

TEST(WebTrustTest, OpeningManyObjectsSlowlyTakesOneRequestEach) {
  Scene scene;
  scene.objects().SetFault([&](const StubRequest&) -> std::optional<StubAnswer> {
    scene.Wait(50);
    return std::nullopt;
  });
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) {
    names.push_back(scene.objects().Put(absl::StrCat("/", i), "abc"));
  }
  for (const std::string& name : names) EXPECT_THAT(scene.store().List(name, All), IsOk());
  for (const std::string& name : names) scene.Open(name);
  EXPECT_EQ(scene.Heads(), 60);
}

SeenObject Seen(uint64_t size_bytes, absl::Duration asked) {
  return {.object = {.size_bytes = size_bytes}, .asked = asked};
}

TEST(RecentObjectsTest, AnAnswerIsKnownUntilItIsOldOrForgotten) {
  RecentObjects recent(absl::Seconds(1));
  recent.Remember("a", Seen(1, absl::Seconds(7)));
  EXPECT_EQ(recent.Find("a", absl::Seconds(7))->object.size_bytes, 1u);
  EXPECT_TRUE(recent.Find("a", absl::Seconds(8) - absl::Nanoseconds(1)).has_value());
  EXPECT_FALSE(recent.Find("b", absl::Seconds(7)).has_value());
  EXPECT_FALSE(recent.Find("a", absl::Seconds(8)).has_value());
  recent.Remember("a", Seen(1, absl::Seconds(7)));
  recent.Forget("a");
  EXPECT_FALSE(recent.Find("a", absl::Seconds(7)).has_value());
}

TEST(RecentObjectsTest, WithZeroTrustNothingIsCached) {
  RecentObjects recent(absl::ZeroDuration());
  recent.Remember("a", Seen(1, absl::Seconds(7)));
  EXPECT_FALSE(recent.Find("a", absl::Seconds(7)).has_value());
}

TEST(RecentObjectsTest, TheAnswerToTheLaterRequestIsKept) {
  RecentObjects recent(absl::Seconds(1));
  recent.Remember("a", Seen(2, absl::Seconds(7)));
  recent.Remember("a", Seen(1, absl::Seconds(6)));
  EXPECT_EQ(recent.Find("a", absl::Seconds(7))->object.size_bytes, 2u);
}

TEST(RecentObjectsTest, NoMoreThan4096AreKnownAtATime) {
  RecentObjects recent(absl::Seconds(1));
  for (int i = 0; i < 10000; ++i) {
    recent.Remember(absl::StrCat(i), Seen(1, absl::Seconds(7)));
    EXPECT_TRUE(recent.Find(absl::StrCat(i), absl::Seconds(7)).has_value());
  }
  int known = 0;
  for (int i = 0; i < 10000; ++i) {
    known += recent.Find(absl::StrCat(i), absl::Seconds(7)).has_value() ? 1 : 0;
  }
  EXPECT_LE(known, 4096);
}

}  // namespace
}  // namespace systole
