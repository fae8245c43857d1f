// Tests WebStore with a server that has only the faults that a test injects.
#include "core/storage/web/web_store.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kLong = absl::FromChrono(kLongestWait);

// Options of a store that sends a request to the server at each CheckUnchanged(), and waits only a
// few milliseconds between attempts.
WebStoreOptions Eager(HttpClientOptions client = {}) {
  client.connect_timeout = kLong;
  client.stall_timeout = kLong;
  return {.client = client,
          .retry = {.max_attempts = 4,
                    .first_backoff = absl::Milliseconds(1),
                    .max_retry_after = absl::Milliseconds(5)},
          .timeout = kLong,
          .open_timeout = kLong,
          .trust = absl::ZeroDuration()};
}

std::string SomeBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * i >> 7);
  return bytes;
}

std::unique_ptr<ByteSource> MustOpen(const WebStore& store, const std::string& name) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = store.Open(name);
  EXPECT_THAT(source, IsOk());
  return *std::move(source);
}

int CountRequests(StubObjects& objects, absl::string_view method) {
  int count = 0;
  for (const StubRequest& request : objects.server().requests()) {
    count += request.method == method ? 1 : 0;
  }
  return count;
}

TEST(WebStoreTest, AnOpenedSourceHasTheSizeIdentityAndBytesOfTheObject) {
  StubObjects objects;
  const std::string name = objects.Put("/d/a%20b.tfrecord", "0123456789");
  const WebStore store(Eager());
  const auto source = MustOpen(store, name);
  EXPECT_THAT(source->Size(), IsOkAndHolds(10u));
  EXPECT_EQ(source->name(), name);
  EXPECT_EQ(source->identity(), "etag \"1\"");
  EXPECT_THAT(source->CheckUnchanged(), IsOk());
  const absl::StatusOr<StoredState> state = store.Stat(name);
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->size_bytes, 10u);
  EXPECT_EQ(state->identity, source->identity());
  std::string out(4, '.');
  EXPECT_THAT(source->ReadAt(3, absl::MakeSpan(out)), IsOkAndHolds(4u));
  EXPECT_EQ(out, "3456");
  EXPECT_THAT(source->ReadAt(8, absl::MakeSpan(out)), IsOkAndHolds(2u));
  EXPECT_EQ(out, "8956");
  const int requests = static_cast<int>(objects.server().requests().size());
  EXPECT_THAT(source->ReadAt(10, absl::MakeSpan(out)), IsOkAndHolds(0u));
  EXPECT_THAT(source->ReadAt(~uint64_t{0}, absl::MakeSpan(out)), IsOkAndHolds(0u));
  EXPECT_THAT(source->ReadAt(0, {}), IsOkAndHolds(0u));
  EXPECT_EQ(objects.server().requests().size(), requests);
  EXPECT_EQ(objects.server().connections(), 1);
}

TEST(WebStoreTest, AnEmptyObjectIsReadWithoutARequest) {
  StubObjects objects;
  const WebStore store(Eager());
  const auto source = MustOpen(store, objects.Put("/empty", ""));
  const size_t requests = objects.server().requests().size();
  EXPECT_THAT(ReadWhole(*source, 10), IsOkAndHolds(""));
  std::string out(4, '.');
  EXPECT_THAT(source->ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(0u));
  EXPECT_EQ(out, "....");
  EXPECT_EQ(objects.server().requests().size(), requests);
}

TEST(WebStoreTest, ALongReadIsCutIntoPiecesOfEightMiB) {
  StubObjects objects;
  const std::string bytes = SomeBytes((size_t{16} << 20) + 5);
  const WebStore store(Eager());
  const auto source = MustOpen(store, objects.Put("/a", bytes));
  std::string out(bytes.size(), '\0');
  ASSERT_THAT(source->ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(bytes.size()));
  EXPECT_TRUE(out == bytes);  // EXPECT_EQ would print 32 MiB on failure.
  std::vector<std::string> ranges;
  for (const StubRequest& request : objects.server().requests()) {
    if (request.method != "GET") continue;
    ranges.emplace_back(FindHeader(request.headers, "range"));
    EXPECT_EQ(FindHeader(request.headers, "if-match"), "\"1\"");
    EXPECT_EQ(FindHeader(request.headers, "accept-encoding"), "identity");
  }
  EXPECT_THAT(ranges,
              ElementsAre("bytes=0-8388607", "bytes=8388608-16777215", "bytes=16777216-16777220"));
}

TEST(WebStoreTest, ManyThreadsReadOneObject) {
  StubObjects objects;
  const std::string bytes = SomeBytes(100000);
  const WebStore store(Eager({.max_connections = 5}));
  const auto source = MustOpen(store, objects.Put("/a", bytes));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 12; ++thread) {
    threads.emplace_back([&, thread] {
      std::string out(997, '\0');
      for (int i = 0; i < 40; ++i) {
        const size_t offset = static_cast<size_t>(thread * 8000 + i * 100);
        ASSERT_THAT(source->ReadAt(offset, absl::MakeSpan(out)), IsOkAndHolds(out.size()));
        ASSERT_EQ(out, bytes.substr(offset, out.size()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(objects.server().connections(), 5);
}

TEST(WebStoreTest, AServerWithoutHeadIsAskedForTheFirstByte) {
  for (const int status : {403, 405, 501}) {
    StubObjects objects;
    objects.SetFault([status](const StubRequest& request) -> std::optional<StubAnswer> {
      if (request.method != "HEAD") return std::nullopt;
      return StubAnswer{.bytes = Head(status, {{"Content-Length", "0"}})};
    });
    const WebStore store(Eager());
    const auto source = MustOpen(store, objects.Put("/a", "0123456789"));
    EXPECT_EQ(source->identity(), "etag \"1\"");
    EXPECT_THAT(source->CheckUnchanged(), IsOk());
    EXPECT_THAT(ReadWhole(*source, 10), IsOkAndHolds("0123456789"));
    EXPECT_THAT(store.Stat(objects.Put("/empty", ""))->size_bytes, 0u);
    EXPECT_THAT(store.Stat(objects.server().Url("/none")),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
  }
}

TEST(WebStoreTest, AnObjectSizeOfZeroInAHeadAnswerIsNotTrusted) {
  StubObjects objects;
  objects.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method != "HEAD") return std::nullopt;
    return StubAnswer{.bytes = Head(200, {{"Content-Length", "0"}})};
  });
  const WebStore store(Eager());
  EXPECT_EQ(store.Stat(objects.Put("/a", "0123456789"))->size_bytes, 10u);
  EXPECT_EQ(store.Stat(objects.Put("/empty", ""))->size_bytes, 0u);
}

TEST(WebStoreTest, AReplacedObjectFailsChecksAndReadsByBaseName) {
  StubObjects objects;
  const std::string name = objects.Put("/dir/a", "abc");
  const WebStore store(Eager());
  const auto source = MustOpen(store, name);
  objects.Put("/dir/a", "xyz");
  const auto replaced =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("shard \"a\" was replaced"), Not(HasSubstr("dir"))));
  EXPECT_THAT(source->CheckUnchanged(), replaced);
  std::string out(3, '.');
  EXPECT_THAT(source->ReadAt(0, absl::MakeSpan(out)), replaced);
  EXPECT_EQ(out, "...");
  EXPECT_NE(store.Stat(name)->identity, source->identity());
  EXPECT_THAT(source->Size(), IsOkAndHolds(3u));
}

TEST(WebStoreTest, AnObjectReplacedDuringAReadIsNoticed) {
  StubObjects objects;
  const std::string bytes = SomeBytes(size_t{9} << 20);
  const std::string name = objects.Put("/a", bytes);
  objects.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!absl::StartsWith(FindHeader(request.headers, "range"), "bytes=0-")) return std::nullopt;
    StubAnswer answer = objects.Usual(request);
    objects.Put("/a", bytes);  // The same bytes under a new ETag.
    return answer;
  });
  const WebStore store(Eager());
  std::string out(bytes.size(), '\0');
  EXPECT_THAT(MustOpen(store, name)->ReadAt(0, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
}

TEST(WebStoreTest, AReplacementIsNoticedByEtagIfTheServerIgnoresIfMatch) {
  StubObjects objects;
  const std::string name = objects.Put("/a", "abc");
  objects.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    StubRequest careless = request;
    RemoveHeader(careless.headers, "if-match");
    return objects.Usual(careless);
  });
  const WebStore store(Eager());
  const auto source = MustOpen(store, name);
  objects.Put("/a", "xyz");
  EXPECT_THAT(ReadWhole(*source, 3),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
}

TEST(WebStoreTest, ARemovedObjectFailsChecksAndReadsByBaseName) {
  StubObjects objects;
  const WebStore store(Eager());
  const auto source = MustOpen(store, objects.Put("/dir/a", "abc"));
  objects.Remove("/dir/a");
  const auto removed = StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("shard \"a\" was removed"), Not(HasSubstr("dir"))));
  EXPECT_THAT(source->CheckUnchanged(), removed);
  EXPECT_THAT(ReadWhole(*source, 3), removed);
}

TEST(WebStoreTest, WhileTrustLastsAReadWithAnEtagCountsAsACheck) {
  StubObjects objects;
  WebStoreOptions options = Eager();
  options.trust = kLong;
  const WebStore store(options);
  const auto source = MustOpen(store, objects.Put("/a", "abc"));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(ReadWhole(*source, 3), IsOk());
    EXPECT_THAT(source->CheckUnchanged(), IsOk());
  }
  EXPECT_EQ(CountRequests(objects, "HEAD"), 1);  // Sent by Open().
}

TEST(WebStoreTest, TransientServerFaultsAreRetried) {
  StubObjects objects;
  const std::string bytes = SomeBytes(1000);
  const std::string name = objects.Put("/a", bytes);
  std::atomic<int> asked = 0;
  objects.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "HEAD") {
      if (asked++ == 0) return Reply(503, "", {{"Retry-After", "1"}});
      return std::nullopt;
    }
    StubAnswer answer = objects.Usual(request);
    switch (asked++) {
      case 2:  // Cut in the middle of the body.
        answer.bytes.resize(answer.bytes.size() - 400);
        answer.closes = true;
        return answer;
      case 3:  // A cut that HTTP cannot notice, because the answer has no length.
        return StubAnswer{.bytes = Head(206, {{"Content-Range", "bytes 0-999/1000"}}) + "short",
                          .closes = true};
      case 4:
        return Reply(429, "");
      default:
        return answer;
    }
  });
  const WebStore store(Eager());
  EXPECT_THAT(ReadWhole(*MustOpen(store, name), 1000), IsOkAndHolds(bytes));
  EXPECT_EQ(asked, 6);
}

TEST(WebStoreTest, LastingFaultsOfTheServerAreErrorsWithoutItsAddress) {
  StubObjects objects;
  const std::string name = objects.Put("/dir/a", "abc");
  const WebStore store(Eager());
  const auto source = MustOpen(store, name);
  std::atomic<int> asked = 0;
  const auto fails = [&](const StubAnswer& answer) {
    asked = 0;
    objects.SetFault([&asked, answer](const StubRequest&) -> std::optional<StubAnswer> {
      ++asked;
      return answer;
    });
    return ReadWhole(*source, 3).status();
  };
  const auto is = [](absl::StatusCode code, const char* words) {
    return StatusIs(code, AllOf(HasSubstr(words), HasSubstr("a: "), Not(HasSubstr("127.0.0.1")),
                                Not(HasSubstr("dir"))));
  };
  EXPECT_THAT(fails(Reply(500, "")), is(absl::StatusCode::kUnavailable, "status 500"));
  EXPECT_EQ(asked, 4);
  EXPECT_THAT(fails({.bytes = "", .closes = true}),
              is(absl::StatusCode::kUnavailable, "attempts: 4"));
  EXPECT_THAT(fails(Reply(403, "")), is(absl::StatusCode::kPermissionDenied, "status 403"));
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(fails(Reply(206, "abc", {{"Content-Range", "bytes 1-3/9"}})),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
  EXPECT_THAT(fails(Reply(206, "abc", {{"Content-Range", "nonsense"}})),
              is(absl::StatusCode::kDataLoss, "nonsense"));
  EXPECT_THAT(fails(Reply(206, "abcd", {{"Content-Range", "bytes 0-2/3"}})),
              is(absl::StatusCode::kResourceExhausted, "3 bytes"));
  EXPECT_EQ(asked, 1);
}

TEST(WebStoreTest, ErrorsOfReadsNameNoServerThatARedirectLeadsTo) {
  StubObjects objects;
  const std::string name = objects.Put("/dir/a", "abc");
  const WebStore store(Eager());
  const auto source = MustOpen(store, name);
  const std::string dead = DeadAddress();
  for (const std::string& location :
       {absl::StrCat("http://", dead, "/dir/b"), absl::StrCat("http://", kImpossibleHost, "/dir/b"),
        std::string("ftp://other.example/dir/b"), objects.server().Url("/dir/a")}) {
    objects.SetFault([&location](const StubRequest&) -> std::optional<StubAnswer> {
      return StubAnswer{.bytes = Head(302, {{"Location", location}, {"Content-Length", "0"}})};
    });
    for (const absl::Status& status : {ReadWhole(*source, 3).status(), source->CheckUnchanged()}) {
      EXPECT_FALSE(status.ok()) << location;
      EXPECT_THAT(std::string(status.message()),
                  AllOf(StartsWith("a: "), Not(HasSubstr("127.0.0.1")), Not(HasSubstr("/dir")),
                        Not(HasSubstr("example")), Not(HasSubstr(kImpossibleHost))));
    }
    // The message of Open() is for an operator, so it begins with the whole address.
    EXPECT_THAT(std::string(store.Open(name).status().message()), StartsWith(name));
  }
}

TEST(WebStoreTest, AServerWithoutRangeSupportServesOnlyWholeReads) {
  StubObjects objects;
  objects.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    StubRequest whole = request;
    RemoveHeader(whole.headers, "range");
    return objects.Usual(whole);
  });
  const WebStore store(Eager());
  const auto source = MustOpen(store, objects.Put("/a", "0123456789"));
  EXPECT_THAT(ReadWhole(*source, 10), IsOkAndHolds("0123456789"));
  std::string out(4, '.');
  EXPECT_THAT(source->ReadAt(0, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("supports ranges")));
}

TEST(WebStoreTest, AnInterruptionEndsAWaitingRead) {
  StubObjects objects;
  const WebStore store(Eager());
  const auto source = MustOpen(store, objects.Put("/a", "abc"));
  std::atomic<bool> asked = false;
  objects.SetFault([&](const StubRequest&) -> std::optional<StubAnswer> {
    asked = true;
    return StubAnswer{.hangs = true};
  });
  InterruptFlag unwanted;
  std::thread reader([&] {
    const InterruptScope scope(unwanted);
    EXPECT_THAT(ReadWhole(*source, 3),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer needed")));
  });
  EXPECT_TRUE(WaitUntil([&] { return asked.load(); }));
  unwanted.Raise();
  reader.join();
}

TEST(WebStoreTest, APatternListsTheObjectOfThatNameWithoutARequest) {
  StubObjects objects;
  const std::string name = objects.Put("/a", "abc");
  const WebStore store(Eager());
  const auto all = [](absl::string_view) { return true; };
  const auto none = [](absl::string_view) { return false; };
  EXPECT_THAT(store.List(name, all), IsOkAndHolds(ElementsAre(name)));
  EXPECT_THAT(store.List(name + "?version=2", all), IsOkAndHolds(ElementsAre(name + "?version=2")));
  EXPECT_THAT(store.List(name, none), IsOkAndHolds(IsEmpty()));
  EXPECT_TRUE(objects.server().requests().empty());
  EXPECT_THAT(store.Open(objects.server().Url("/none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
  EXPECT_TRUE(store.Takes(name, name));
  EXPECT_FALSE(store.Takes(name, name + "b"));
}

TEST(WebStoreTest, GlobsAndFoldersAreRefusedWithTheRemedyAndNothingIsSent) {
  StubObjects objects;
  const WebStore store(Eager());
  const auto all = [](absl::string_view) { return true; };
  for (const char* target : {"/a-*.tfrecord", "/a-[0-9]", "/{a,b}", "/", "/dir/", "/dir/?x", ""}) {
    const std::string pattern = objects.server().Url(target);
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name each object"));
    EXPECT_THAT(store.List(pattern, all), refused) << target;
    EXPECT_THAT(store.Open(pattern), refused) << target;
  }
  EXPECT_THAT(store.List("http://[::1]:80/a-*.tfrecord", all),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wildcards")));
  EXPECT_THAT(store.List("http://[::1]:80/a.tfrecord?b=*", all), IsOk());
  EXPECT_THAT(store.ListFolder(objects.server().Url("/dir/")),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("cannot be listed")));
  EXPECT_EQ(objects.server().connections(), 0);
}

TEST(WebStoreTest, AUrlWithAPasswordIsRefusedAndThePasswordNotShown) {
  EXPECT_THAT(WebStore(Eager()).Open("https://user:secret@host/a"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("user name"), Not(HasSubstr("secret")))));
}

TEST(WebStoreTest, AQueryIsSentAndNeverShown) {
  StubObjects objects;
  const std::string name = objects.Put("/a", "abc") + "?sig=secret/x";
  const WebStore store(Eager());
  const auto source = MustOpen(store, name);
  EXPECT_EQ(objects.server().requests().back().target, "/a?sig=secret/x");
  EXPECT_EQ(BaseName(name), "a");
  objects.Put("/a", "xyz");
  for (const absl::Status& status :
       {source->CheckUnchanged(), store.Stat(objects.server().Url("/b?sig=secret")).status(),
        store.Create(name).status()}) {
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  }
}

TEST(WebStoreTest, CreateAndRemoveAreRefused) {
  const WebStore store(Eager());
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("https://host/a.idx"), HasSubstr("--index-dir")));
  EXPECT_THAT(store.Create("https://host/a.idx"), refused);
  EXPECT_THAT(store.Remove("https://host/a.idx"), refused);
}

TEST(WebStoreTest, NamesOfOneObjectHaveOneFullName) {
  const WebStore store(Eager());
  EXPECT_EQ(store.FullName("https://host/a"), "https://host/a");
  EXPECT_EQ(store.FullName("https://HOST:443/a"), "https://host/a");
  EXPECT_NE(store.FullName("https://host/a"), store.FullName("https://host/b"));
  EXPECT_NE(store.FullName("https://host/a"), store.FullName("http://host/a"));
}

const std::string* asked_at_exit = nullptr;

TEST(WebStoreDeathTest, TheProcessStoreStopsBeforeEarlierExitHandlersRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // The child must begin without a store.
  StubObjects objects;
  const std::string name = objects.Put("/a", "abc");
  asked_at_exit = &name;
  EXPECT_EXIT(
      {
        // This handler is registered before the store is made, so it runs after the store's end.
        // OpenSSL's exit handler may be registered just as early, and so run just as late.
        std::atexit([] {
          const absl::Status ended = WebStore::OfProcess().Stat(*asked_at_exit + "b").status();
          ::_exit(absl::IsCancelled(ended) ? 7 : 8);
        });
        EXPECT_THAT(WebStore::OfProcess().Stat(name), IsOk());
        std::exit(1);
      },
      testing::ExitedWithCode(7), "");
}

TEST(WebStoreTest, TheProcessStoreTrustsTheAuthoritiesOfSslCertFile) {
  const TempFolder folder;
  const StubCertificate certificate = MakeCertificate("IP:127.0.0.1");
  ::unsetenv("CURL_CA_BUNDLE");  // This variable would take precedence.
  ::setenv("SSL_CERT_FILE", folder.Write("ca.pem", certificate.pem).c_str(), 1);
  StubObjects objects(&certificate);
  const std::string name = objects.Put("/a", "abc");
  EXPECT_TRUE(absl::StartsWith(name, "https://"));
  EXPECT_THAT(ReadWhole(*MustOpen(WebStore::OfProcess(), name), 3), IsOkAndHolds("abc"));
}

}  // namespace
}  // namespace systole
