// Tests the lists of BucketStore: patterns, pages, and servers that give wrong lists.
#include "core/storage/bucket/bucket_list.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/interrupt/interrupt.h"
#include "core/storage/bucket/bucket_store.h"
#include "core/storage/bucket/ranged_list.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/bucket/stub_bucket_store.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

StubBucketOptions Signed(size_t page_keys = 1000) {
  return {.sign = SignedBy(kStubCredentials), .page_keys = page_keys};
}

absl::StatusOr<std::vector<std::string>> List(const BucketStore& store,
                                              const std::string& pattern) {
  return store.List(pattern, [](absl::string_view) { return true; });
}

// The names of these keys, for ElementsAreArray().
std::vector<std::string> Names(const StubBucket& bucket, const std::vector<std::string>& keys) {
  std::vector<std::string> names;
  for (const std::string& key : keys) names.push_back(bucket.Name(key));
  return names;
}

bool IsList(const StubRequest& request) { return absl::StrContains(request.target, "list-type"); }

TEST(BucketListTest, AGlobAFolderOrAnObjectNameListsTheMatchingObjects) {
  StubBucket bucket(Signed());
  for (const char* key : {"d/b", "d/a", "d/a.idx", "d/.hidden", "d/odd[1]", "d/odd1", "e/x/1",
                          "e/y/1", "e/y/2", "top", "d-e/z"}) {
    bucket.Put(key, "bytes");
  }
  const BucketStore store = S3StoreOf(bucket);
  const auto lists = [&](const std::string& key, const std::vector<std::string>& keys) {
    EXPECT_THAT(List(store, bucket.Name(key)),
                IsOkAndHolds(testing::UnorderedElementsAreArray(Names(bucket, keys))))
        << key;
  };
  lists("d/*", {"d/a", "d/a.idx", "d/b", "d/odd1", "d/odd[1]"});
  lists("d/[ab]", {"d/a", "d/b"});
  lists("d/?", {"d/a", "d/b"});
  lists("d", {"d/a", "d/a.idx", "d/b", "d/odd1", "d/odd[1]"});
  lists("d/", {"d/a", "d/a.idx", "d/b", "d/odd1", "d/odd[1]"});
  lists("d/a", {"d/a"});
  lists("d/odd[1]", {"d/odd[1]"});  // The name of an object is no pattern.
  lists("d/od*[1]", {"d/odd1"});
  lists("*/*/1", {"e/x/1", "e/y/1"});
  lists("e/*/2", {"e/y/2"});
  for (const char* none : {"none", "none/", "d/z*", "*/z/*", "d/a/", "d/*/", "d/\\a\\b"}) {
    EXPECT_THAT(List(store, bucket.Name(none)),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(bucket.Name(none))))
        << none;
  }
  EXPECT_THAT(List(store, bucket.Name("d/\\a")), IsOkAndHolds(ElementsAre(bucket.Name("d/a"))));
}

TEST(BucketListTest, ListRequestsAreLimitedToTheLiteralPrefixOfThePattern) {
  StubBucket bucket(Signed());
  bucket.Put("d/a-1", "");
  const BucketStore store = S3StoreOf(bucket);
  const auto asks = [&](const std::string& key) {
    List(store, bucket.Name(key)).IgnoreError();
    return bucket.server().requests().back().target.substr(1 + std::string(kStubBucket).size());
  };
  const std::string fixed = "encoding-type=url&list-type=2&max-keys=1000&prefix=";
  EXPECT_EQ(asks("d/a-*"), "?delimiter=%2F&" + fixed + "d%2Fa-");
  EXPECT_EQ(asks("d*/a-*"), "?" + fixed + "d");
  EXPECT_EQ(asks("d/"), "?delimiter=%2F&" + fixed + "d%2F");
  EXPECT_EQ(asks(""), "?delimiter=%2F&" + fixed);
  EXPECT_EQ(asks("d/a-1"), "/d/a-1");  // Asks for the object, not for a list.
  const int lists = bucket.lists();
  EXPECT_EQ(asks("d"), "?delimiter=%2F&" + fixed + "d%2F");  // "d" is no object.
  EXPECT_EQ(bucket.lists(), lists + 1);
}

// A page without names. Its token says that the list goes on at `token`.
StubAnswer EmptyPage(const std::string& token) {
  return Reply(200, absl::StrCat("<ListBucketResult><IsTruncated>true</IsTruncated>"
                                 "<NextContinuationToken>",
                                 token, "</NextContinuationToken></ListBucketResult>"));
}

TEST(BucketListTest, AFolderIsFoundBehindEmptyListPagesAndANameWithoutAList) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  const std::string name = bucket.Put("d/a", "abc");
  const auto pages = std::make_shared<std::atomic<int>>(0);
  bucket.SetFault([pages](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!IsList(request) || ++*pages % 4 == 0) return std::nullopt;
    return EmptyPage(absl::StrCat("!", pages->load()));
  });
  EXPECT_THAT(List(store, name), IsOkAndHolds(ElementsAre(name)));
  EXPECT_EQ(*pages, 0);  // A request for the object finds it.
  EXPECT_THAT(List(store, bucket.Name("d")), IsOkAndHolds(ElementsAre(name)));
  EXPECT_EQ(*pages, 4);
}

TEST(BucketListTest, AListThatTakesTooLongIsDeadlineExceededWithTheRemedy) {
  StubBucket bucket(Signed(1));
  for (int i = 0; i < 5; ++i) bucket.Put(absl::StrCat("d/", i), "");
  // Each time the clock is read, it shows one second more.
  const auto now = std::make_shared<std::atomic<int>>(0);
  WebStoreOptions web = EagerWebOptions();
  web.now = [now] { return absl::Seconds(++*now); };
  const BucketStore store =
      S3StoreOf(bucket, {kStubCredentials}, web, {.max_time = absl::Minutes(1)});
  EXPECT_THAT(List(store, bucket.Name("d/*")), IsOkAndHolds(testing::SizeIs(5)));
  const BucketStore hasty =
      S3StoreOf(bucket, {kStubCredentials}, web, {.max_time = absl::Seconds(5)});
  EXPECT_THAT(List(hasty, bucket.Name("d/*")),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr(bucket.Name("d/*")), HasSubstr("folders of their own"))));
}

TEST(BucketListTest, AListThatIsCompressedOnTheWayIsDataLossThatSaysSo) {
  StubBucket bucket(Signed());
  bucket.SetFault([](const StubRequest&) {
    return Reply(200, "\x1f\x8b", {{"Content-Encoding", "gzip"}});
  });
  EXPECT_THAT(List(S3StoreOf(bucket), bucket.Name("d/*")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("compressed (gzip)")));
}

TEST(BucketListTest, AnInnerFolderWithAnEmptyNameIsAnError) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  bucket.Put("d/a", "");
  bucket.Put("d//b", "");
  for (const char* marker : {"", "d/"}) {
    if (*marker != '\0') bucket.Put(marker, "");
    for (const char* pattern : {"d", "d/"}) {
      EXPECT_THAT(
          List(store, bucket.Name(pattern)),
          StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bucket.Name("d//\" is a folder"))))
          << pattern;
    }
  }
}

TEST(BucketListTest, NestedFoldersAreErrorsAndFolderMarkerObjectsAreSkipped) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  bucket.Put("d/", "");
  EXPECT_THAT(List(store, bucket.Name("d/")), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(List(store, bucket.Name("d")), IsOkAndHolds(IsEmpty()));
  bucket.Put("d/a", "");
  EXPECT_THAT(List(store, bucket.Name("d/")), IsOkAndHolds(ElementsAre(bucket.Name("d/a"))));
  EXPECT_THAT(List(store, bucket.Name("d/*")), IsOkAndHolds(ElementsAre(bucket.Name("d/a"))));
  bucket.Put("d/inner/", "");
  for (const char* pattern : {"d/*", "d/", "d"}) {
    EXPECT_THAT(List(store, bucket.Name(pattern)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(bucket.Name("d/inner\" is a folder")),
                               HasSubstr(bucket.Name(pattern)))));
  }
  EXPECT_THAT(store.ListFolder(bucket.Name("d/")),
              IsOkAndHolds(UnorderedElementsAre(bucket.Name("d/a"), bucket.Name("d/inner"))));
  EXPECT_THAT(store.ListFolder(bucket.Name("none/")), IsOkAndHolds(IsEmpty()));
}

TEST(BucketListTest, ABucketNameIsListedAsAFolder) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  const std::string root = absl::StrCat("s3://", kStubBucket);
  for (const std::string& name : {root, root + "/"}) {
    EXPECT_THAT(List(store, name), IsOkAndHolds(IsEmpty()));
  }
  bucket.Put("a", "");
  for (const std::string& name : {root, root + "/", root + "/*"}) {
    EXPECT_THAT(List(store, name), IsOkAndHolds(ElementsAre(bucket.Name("a"))));
  }
}

TEST(BucketListTest, TakesAgreesWithListForEachPatternAndName) {
  StubBucket bucket(Signed());
  const std::vector<std::string> keys = {"d/a",    "d/ab",     "d/c-1", "d/odd[1]",
                                         "d/odd1", "d/f[1]/x", "d/f1",  "d"};
  for (const std::string& key : keys) bucket.Put(key, "");
  const BucketStore store = S3StoreOf(bucket);
  for (const char* pattern : {"d/a", "d/a*", "d/?", "d/c-[12]", "d/[!a]", "d/odd[1]", "d/odd?",
                              "d/none", "*/a", "d/\\a", "d/f[1]", "d/f[1]/", "d/f[1]/*"}) {
    const auto listed = List(store, bucket.Name(pattern));
    EXPECT_TRUE(listed.ok() || absl::IsNotFound(listed.status())) << pattern;
    for (const std::string& key : keys) {
      const std::string name = bucket.Name(key);
      const bool named = listed.ok() && std::count(listed->begin(), listed->end(), name) > 0;
      EXPECT_EQ(store.Takes(bucket.Name(pattern), name), named) << pattern << " and " << key;
    }
  }
  EXPECT_TRUE(store.Takes(bucket.Name("d/c-*"), bucket.Name("d/c-3")));
  EXPECT_TRUE(store.Takes(bucket.Name("d/"), bucket.Name("d/missing")));
  EXPECT_TRUE(store.Takes(bucket.Name("e"), bucket.Name("e/missing")));
  EXPECT_TRUE(store.Takes(absl::StrCat("s3://", kStubBucket), bucket.Name("missing")));
  EXPECT_FALSE(store.Takes(bucket.Name("d/*"), bucket.Name("d/.hidden")));
  EXPECT_FALSE(store.Takes(bucket.Name("d/*"), bucket.Name("d/inner/a")));
  EXPECT_FALSE(store.Takes("s3://other-bucket/*", bucket.Name("d/a")));
}

TEST(BucketListTest, TenThousandObjectsAreListedInAtMost41PageRequests) {
  StubBucket bucket(Signed(/*page_keys=*/500));
  for (int i = 0; i < 10'000; ++i) bucket.Put(absl::StrCat("d/train-", 100'000 + i), "");
  bucket.Put("d/validation-1", "");
  const absl::StatusOr<std::vector<std::string>> names =
      List(S3StoreOf(bucket), bucket.Name("d/train-*"));
  ASSERT_THAT(names, IsOk());
  EXPECT_EQ(names->size(), 10'000u);
  EXPECT_GE(bucket.lists(), 20);
  EXPECT_LE(bucket.lists(), 2 * 20 + 1);
}

TEST(BucketListTest, KeyRangesAreListedInS3AndGcsBuckets) {
  for (const bool is_gcs : {false, true}) {
    StubBucketOptions options = is_gcs ? StubBucketOptions{.is_gcs = true} : Signed();
    options.page_keys = 20;
    StubBucket bucket(options);
    std::vector<std::string> keys;
    for (int i = 0; i < 1000; ++i) {
      keys.push_back(absl::StrFormat("d/train +%%ä-%04d.tar", i));
      bucket.Put(keys.back(), "bytes");
    }
    bucket.Put("d/train/in", "");
    const BucketStore store = is_gcs ? GcsStoreOf(bucket, {}) : S3StoreOf(bucket);
    EXPECT_THAT(List(store, bucket.Name("d/train +*")),
                IsOkAndHolds(UnorderedElementsAreArray(Names(bucket, keys))));
    const std::vector<StubRequest> requests = bucket.server().requests();
    EXPECT_TRUE(std::any_of(requests.begin(), requests.end(), [](const StubRequest& request) {
      return absl::StrContains(request.target, "&start-after=d%2Ftrain%20%2B%25%C3%A4-");
    }));
    EXPECT_LE(bucket.lists(), 2 * 50 + 1);
  }
}

// Some servers, such as an emulator of Cloud Storage, do not support start-after. They refuse it or
// ignore it. A list then takes a few more requests, and gives the same names.
TEST(BucketListTest, AServerThatDoesNotKnowStartAfterIsListedPageByPage) {
  for (const bool refuses : {false, true}) {
    StubBucket bucket({.page_keys = 20});
    std::vector<std::string> keys;
    for (int i = 0; i < 1000; ++i) {
      keys.push_back(absl::StrFormat("d/train-%04d", i));
      bucket.Put(keys.back(), "");
    }
    bucket.SetFault([&](StubRequest request) -> std::optional<StubAnswer> {
      const size_t at = request.target.find("&start-after=");
      if (at == std::string::npos) return std::nullopt;
      if (refuses) return RefuseInXml(400, "InvalidArgument");
      request.target.resize(at);
      return bucket.Usual(request);
    });
    EXPECT_THAT(List(S3StoreOf(bucket), bucket.Name("d/train-*")),
                IsOkAndHolds(UnorderedElementsAreArray(Names(bucket, keys))));
    EXPECT_LE(bucket.lists(), 50 + 2 * kRangesAtOnce);
  }
}

TEST(BucketListTest, AnOutageInOneRangeIsTheErrorOfTheList) {
  StubBucket bucket(Signed(/*page_keys=*/20));
  for (int i = 0; i < 1000; ++i) bucket.Put(absl::StrFormat("d/train-%04d", i), "");
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!absl::StrContains(request.target, "start-after")) return std::nullopt;
    return RefuseInXml(503, "SlowDown");
  });
  EXPECT_THAT(List(S3StoreOf(bucket), bucket.Name("d/train-*")),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("SlowDown"), HasSubstr(bucket.Name("d/train-*")))));
}

TEST(BucketListTest, ListFolderReadsAllPages) {
  StubBucket bucket({.is_gcs = true, .page_keys = 1});
  for (const char* key : {"d/a/1", "d/a/2", "d/b", "d/c/1"}) bucket.Put(key, "");
  EXPECT_THAT(GcsStoreOf(bucket, {}).ListFolder(bucket.Name("d/")),
              IsOkAndHolds(UnorderedElementsAre(bucket.Name("d/a"), bucket.Name("d/b"),
                                                bucket.Name("d/c"))));
  EXPECT_EQ(bucket.lists(), 3);
}

TEST(BucketListTest, AListThatChangesBetweenPagesEndsAndNamesNothingTwice) {
  StubBucket bucket(Signed(/*page_keys=*/2));
  for (const char* key : {"d/1", "d/2", "d/3", "d/4", "d/5"}) bucket.Put(key, "");
  std::atomic<int> pages = 0;
  bucket.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (absl::StrContains(request.target, "continuation-token") && ++pages == 1) {
      bucket.Put("d/0", "");    // Before the place that the list has reached.
      bucket.Put("d/3-x", "");  // After that place.
      bucket.Remove("d/4");
    }
    return std::nullopt;
  });
  EXPECT_THAT(List(S3StoreOf(bucket), bucket.Name("d/*")),
              IsOkAndHolds(ElementsAre(bucket.Name("d/1"), bucket.Name("d/2"), bucket.Name("d/3"),
                                       bucket.Name("d/3-x"), bucket.Name("d/5"))));
}

// A page with the XML elements `inside`. `next` is the token of the next page, or empty.
StubAnswer Page(absl::string_view inside, absl::string_view next) {
  return Reply(
      200, absl::StrCat("<ListBucketResult>", inside, "<IsTruncated>",
                        next.empty() ? "false" : "true", "</IsTruncated><NextContinuationToken>",
                        next, "</NextContinuationToken></ListBucketResult>"));
}

TEST(BucketListTest, AListThatDoesNotEndIsDataLoss) {
  StubBucket bucket;
  const BucketStore store = S3StoreOf(bucket);
  const auto stuck = StatusIs(absl::StatusCode::kDataLoss,
                              AllOf(HasSubstr("does not end"), HasSubstr(bucket.Name("d/*"))));
  const std::string key = "<Contents><Key>d/a</Key></Contents>";
  bucket.SetFault([&](const StubRequest&) { return Page(key, "the same"); });
  EXPECT_THAT(List(store, bucket.Name("d/*")), stuck);
  EXPECT_EQ(bucket.lists(), 3);  // Page 1, page 2 of a range, page 2 without ranges.
  std::atomic<int> pages = 0;
  bucket.SetFault([&](const StubRequest&) { return Page(key, absl::StrCat("next-", ++pages)); });
  EXPECT_THAT(List(store, bucket.Name("d/*")), stuck);
  EXPECT_EQ(pages, 1 + 1 + BucketListOptions().max_idle_pages + 1);
  // A few empty pages are no error.
  pages = 0;
  bucket.SetFault([&](const StubRequest&) {
    const int page = ++pages;
    return page < 10 ? Page("", absl::StrCat("next-", page)) : Page(key, "");
  });
  EXPECT_THAT(List(store, bucket.Name("d/*")), IsOkAndHolds(ElementsAre(bucket.Name("d/a"))));
}

TEST(BucketListTest, NamesPagesAndBytesAreBounded) {
  StubBucket bucket(Signed(/*page_keys=*/2));
  for (const char* key : {"d/1", "d/2", "d/3", "d/4", "d/5"}) bucket.Put(key, "");
  const auto list = [&](const BucketListOptions& options) {
    return List(S3StoreOf(bucket, {kStubCredentials}, EagerWebOptions(), options),
                bucket.Name("d/*"));
  };
  EXPECT_THAT(list({.max_names = 5}), IsOk());
  EXPECT_THAT(list({.max_names = 4}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("more than 4 names"), HasSubstr("folders of their own"))));
  EXPECT_THAT(list({.max_name_bytes = 50}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("50 bytes of names")));
  EXPECT_THAT(list({.max_pages = 3}), IsOk());
  EXPECT_THAT(list({.max_pages = 1}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 1 pages")));
  EXPECT_THAT(list({.max_page_bytes = 100}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 100 bytes")));
}

TEST(BucketListTest, KeysOutsideThePrefixAndMalformedXmlAreDataLoss) {
  StubBucket bucket;
  bucket.SetFault(
      [&](const StubRequest&) { return Page("<Contents><Key>x/a</Key></Contents>", ""); });
  EXPECT_THAT(
      List(S3StoreOf(bucket), bucket.Name("d/*")),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("do not begin with the requested prefix")));
  bucket.SetFault([&](const StubRequest&) { return Reply(200, "<html>secret words"); });
  EXPECT_THAT(List(S3StoreOf(bucket), bucket.Name("d/*")),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("malformed XML"), testing::Not(HasSubstr("secret")))));
}

TEST(BucketListTest, WithoutListPermissionOnlyObjectNamesCanBeListed) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  bucket.Put("d/a", "abc");
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (IsList(request)) return RefuseInXml(403, "AccessDenied");
    return std::nullopt;
  });
  EXPECT_THAT(List(store, bucket.Name("d/a")), IsOkAndHolds(ElementsAre(bucket.Name("d/a"))));
  EXPECT_THAT(store.Open(bucket.Name("d/a")), IsOk());
  for (const char* pattern : {"d/*", "d/", ""}) {
    EXPECT_THAT(List(store, bucket.Name(pattern)),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         AllOf(HasSubstr(bucket.Name(pattern)), HasSubstr("s3:ListBucket"))));
  }
  EXPECT_THAT(store.ListFolder(bucket.Name("d/")),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("d/")));
}

TEST(BucketListTest, AnInterruptionEndsAList) {
  StubBucket bucket;
  std::atomic<int> pages = 0;
  InterruptFlag unwanted;
  bucket.SetFault([&](const StubRequest&) {
    if (++pages == 3) unwanted.Raise();
    return Page(absl::StrCat("<Contents><Key>d/", pages.load(), "</Key></Contents>"),
                absl::StrCat("next-", pages.load()));
  });
  const InterruptScope scope(unwanted);
  EXPECT_THAT(List(S3StoreOf(bucket), bucket.Name("d/*")),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer needed")));
  EXPECT_LE(pages, 4);
}

absl::StatusOr<PatternList> ListStates(const BucketStore& store, const std::string& pattern) {
  return store.ListStates(pattern,
                          [](absl::string_view name) { return !absl::EndsWith(name, ".idx"); });
}

// A list has the same state (size and identity) of each object as Stat() returns. So the object can
// be opened without a request for its state.
TEST(BucketListTest, ListStatesReturnsObjectStatesAndTheFolderContents) {
  for (const bool is_gcs : {false, true}) {
    StubBucket bucket({.is_gcs = is_gcs, .page_keys = 2});
    for (const char* key : {"d/shard-0", "d/shard-1", "d/shard-1.idx", "d/x.manifest", "d/in/0"}) {
      bucket.Put(key, absl::StrCat("bytes of ", key));
    }
    const BucketStore store = is_gcs ? GcsStoreOf(bucket, {}) : S3StoreOf(bucket);
    for (const char* pattern : {"d/shard-*", "d/[sx]*", "d/sha?d-[01]"}) {
      const absl::StatusOr<PatternList> list = ListStates(store, bucket.Name(pattern));
      ASSERT_THAT(list, IsOk()) << pattern;
      for (const ListedFile& file : list->files) {
        const absl::StatusOr<StoredState> state = store.Stat(file.name);
        ASSERT_THAT(state, IsOk());
        EXPECT_EQ(file.state.identity, state->identity);
        EXPECT_EQ(file.state.size_bytes, state->size_bytes);
        EXPECT_NE(file.state.identity, "");
      }
      ASSERT_TRUE(list->folder.has_value());
      EXPECT_EQ(list->folder->folder, bucket.Name("d/"));
      EXPECT_EQ(list->folder->files.size(), 5u);  // Four files and a folder.
    }
    const absl::StatusOr<PatternList> list = ListStates(store, bucket.Name("d/shard-*"));
    ASSERT_EQ(list->files.size(), 2u);
    const int reads = bucket.reads();
    const auto source = store.OpenInState(list->files[1].name, list->files[1].state);
    ASSERT_THAT(source, IsOk());
    EXPECT_EQ((*source)->identity(), list->files[1].state.identity);
    EXPECT_EQ(bucket.reads(), reads);
    EXPECT_THAT(ReadWhole(**source, 100), IsOkAndHolds(std::string("bytes of d/shard-1")));
    EXPECT_EQ(bucket.reads(), reads + 1);
    bucket.Put("d/shard-1", "bytes of d/shard-1");
    EXPECT_THAT(ReadWhole(**source, 100),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("replaced")));
    EXPECT_THAT((*source)->CheckUnchanged(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("replaced")));
  }
}

TEST(BucketListTest, ListStatesOfSeveralFoldersReturnsStatesAndNoFolderContents) {
  StubBucket bucket;
  for (const char* key : {"d/a/1.jpg", "d/b/1.jpg", "d/b/2.png"}) bucket.Put(key, key);
  const BucketStore store = S3StoreOf(bucket);
  const absl::StatusOr<PatternList> list = ListStates(store, bucket.Name("d/*/*.jpg"));
  ASSERT_THAT(list, IsOk());
  EXPECT_EQ(list->files.size(), 2u);
  for (const ListedFile& file : list->files) {
    EXPECT_EQ(file.state.identity, store.Stat(file.name)->identity);
    EXPECT_EQ(file.state.size_bytes, 9u);
  }
  EXPECT_FALSE(list->folder.has_value());
}

TEST(BucketListTest, ListStatesFallsBackToThePatternPrefixIfTheFolderIsForbidden) {
  StubBucket bucket;
  bucket.Put("d/shard-0", "bytes");
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!IsList(request) || absl::StrContains(request.target, "shard-")) return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  const BucketStore store = S3StoreOf(bucket);
  const absl::StatusOr<PatternList> list = ListStates(store, bucket.Name("d/shard-*"));
  ASSERT_THAT(list, IsOk());
  EXPECT_EQ(list->files.size(), 1u);
  EXPECT_EQ(list->files[0].state.identity, store.Stat(bucket.Name("d/shard-0"))->identity);
  EXPECT_FALSE(list->folder.has_value());
}

TEST(BucketListTest, ListAndListStatesNameTheSameObjects) {
  StubBucket bucket;
  for (const char* key :
       {"d/b", "d/a", "d/.hidden", "d/odd[1]", "e/x/1", "e/y/1", "f[1]/z", "top"}) {
    bucket.Put(key, "bytes");
  }
  const BucketStore store = S3StoreOf(bucket);
  for (const char* pattern : {"d/*", "d/[ab]", "d/odd[1]", "d", "d/", "d/a", "e/*/1", "e/*", "f[1]",
                              "f[1]/", "f[1]/*", "none*", "none/", "", "t*", "none"}) {
    const auto names = List(store, bucket.Name(pattern));
    const auto list =
        store.ListStates(bucket.Name(pattern), [](absl::string_view) { return true; });
    ASSERT_EQ(list.status(), names.status()) << pattern;
    if (!list.ok()) continue;
    std::vector<std::string> listed;
    for (const ListedFile& file : list->files) listed.push_back(file.name);
    EXPECT_THAT(listed, testing::UnorderedElementsAreArray(*names)) << pattern;
  }
}

}  // namespace
}  // namespace systole
