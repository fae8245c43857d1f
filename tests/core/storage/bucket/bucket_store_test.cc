// Tests BucketStore with buckets that answer as S3 and Cloud Storage do.
#include "core/storage/bucket/bucket_store.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_headers.h"
#include "core/status/status_macros.h"
#include "core/storage/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/bucket/fake_credentials.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/bucket/stub_bucket_store.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::unique_ptr<ByteSource> MustOpen(const BucketStore& store, const std::string& name) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = store.Open(name);
  EXPECT_THAT(source, IsOk());
  return *std::move(source);
}

StubBucketOptions Signed() { return {.sign = SignedBy(kStubCredentials)}; }

TEST(BucketStoreTest, AnOpenedSourceHasTheSizeIdentityAndBytesOfTheObject) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("d/a.tfrecord", "0123456789");
  const BucketStore store = S3StoreOf(bucket);
  const auto source = MustOpen(store, name);
  EXPECT_THAT(source->Size(), IsOkAndHolds(10u));
  EXPECT_EQ(source->name(), name);
  EXPECT_EQ(source->identity(), "etag \"1\"");
  EXPECT_FALSE(source->is_local());
  EXPECT_THAT(source->CheckUnchanged(), IsOk());
  const absl::StatusOr<StoredState> state = store.Stat(name);
  ASSERT_THAT(state, IsOk());
  EXPECT_EQ(state->size_bytes, 10u);
  EXPECT_EQ(state->identity, source->identity());
  std::string out(4, '.');
  EXPECT_THAT(source->ReadAt(3, absl::MakeSpan(out)), IsOkAndHolds(4u));
  EXPECT_EQ(out, "3456");
  EXPECT_THAT(source->ReadAt(8, absl::MakeSpan(out)), IsOkAndHolds(2u));
  EXPECT_THAT(source->ReadAt(10, absl::MakeSpan(out)), IsOkAndHolds(0u));
  EXPECT_EQ(FindHeader(bucket.server().requests().back().headers, "if-match"), "\"1\"");
}

TEST(BucketStoreTest, TheIdentityInCloudStorageIsTheGeneration) {
  StubBucket bucket({.is_gcs = true, .token = "TOKEN1"});
  const std::string name = bucket.Put("d/a", "0123456789");
  const BucketStore store = GcsStoreOf(bucket, {"TOKEN1"});
  const auto source = MustOpen(store, name);
  EXPECT_EQ(source->identity(), "generation 1001");
  EXPECT_THAT(ReadWhole(*source, 10), IsOkAndHolds("0123456789"));
  EXPECT_EQ(FindHeader(bucket.server().requests().back().headers, "x-goog-if-generation-match"),
            "1001");
  bucket.Put("d/a", "0123456789");  // The same bytes, but a new generation.
  std::string out(4, '.');
  for (const absl::Status& status :
       {source->ReadAt(0, absl::MakeSpan(out)).status(), source->CheckUnchanged()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("shard \"a\" was replaced")));
  }
  EXPECT_EQ(store.Stat(name)->identity, "generation 1002");
}

TEST(BucketStoreTest, HmacKeysOfCloudStorageSignReadsAndLists) {
  StubBucket bucket({.is_gcs = true, .sign = SignedByHmac(kStubHmacKeys)});
  const std::string name = bucket.Put("d e/a+b", "0123456789");
  GcsOptions options = {.hmac_keys = kStubHmacKeys, .user_project = "mine"};
  const BucketStore store = GcsStoreOf(bucket, {"TOKEN1"}, /*sink=*/{}, options);
  EXPECT_THAT(ReadWhole(*MustOpen(store, name), 10), IsOkAndHolds("0123456789"));
  EXPECT_THAT(store.ListFolder(bucket.Name("d e")), IsOkAndHolds(ElementsAre(name)));
  for (const StubRequest& request : bucket.server().requests()) {
    EXPECT_EQ(FindHeader(request.headers, "x-goog-user-project"), "mine");
  }
  options.hmac_keys->secret_access_key = "SECRETOFOTHERS";
  EXPECT_THAT(GcsStoreOf(bucket, {}, /*sink=*/{}, options).Open(name),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("SignatureDoesNotMatch"), HasSubstr("GS_SECRET_ACCESS_KEY"),
                             Not(HasSubstr("SECRETOF")))));
}

TEST(BucketStoreTest, RequesterPaysHeaderIsSentAndSignedForReadsListsAndWrites) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("a", "0123456789");
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (FindHeader(request.headers, "x-amz-request-payer") == "requester") return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  EXPECT_THAT(S3StoreOf(bucket).Open(name), StatusIs(absl::StatusCode::kPermissionDenied,
                                                     HasSubstr("set AWS_REQUEST_PAYER=requester")));
  const BucketStore store([&bucket]() -> absl::StatusOr<BucketService> {
    BucketService service = {.dialect = nullptr, .web = EagerWebOptions()};
    SYSTOLE_ASSIGN_OR_RETURN(
        service.dialect,
        S3Dialect::Create({.endpoint = bucket.endpoint(), .requester_pays = true},
                          std::make_unique<FakeAwsCredentials>(std::vector{kStubCredentials})));
    return service;
  });
  EXPECT_THAT(ReadWhole(*MustOpen(store, name), 10), IsOkAndHolds("0123456789"));
  EXPECT_THAT(store.List(bucket.Name("*"), [](absl::string_view) { return true; }),
              IsOkAndHolds(ElementsAre(name)));
  absl::StatusOr<std::unique_ptr<ByteSink>> sink = store.Create(name);
  ASSERT_THAT(sink, IsOk());
  EXPECT_THAT((*sink)->Append("new"), IsOk());
  EXPECT_THAT((*sink)->Close(), IsOk());
  EXPECT_EQ(bucket.Get("a"), "new");
  EXPECT_THAT(store.Remove(name), IsOk());
}

TEST(BucketStoreTest, AnEmptyObjectIsOpenedAndRead) {
  StubBucket s3(Signed());
  EXPECT_THAT(ReadWhole(*MustOpen(S3StoreOf(s3), s3.Put("a", "")), 1), IsOkAndHolds(""));
  // The real S3 answers a read of an empty object with 416 and without a size.
  s3.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "HEAD") return std::nullopt;
    return RefuseInXml(416, "InvalidRange");
  });
  const auto source = MustOpen(S3StoreOf(s3), s3.Name("a"));
  EXPECT_THAT(source->Size(), IsOkAndHolds(0u));
  EXPECT_EQ(source->identity(), "etag \"1\"");
  StubBucket gcs({.is_gcs = true});
  EXPECT_EQ(MustOpen(GcsStoreOf(gcs, {}), gcs.Put("a", ""))->identity(), "generation 1001");
}

TEST(BucketStoreTest, OpeningAnEmptyObjectNoticesReplacementAndRemoval) {
  StubBucket bucket({.is_gcs = true});
  const std::string name = bucket.Put("a", "");
  bucket.SetFault([&bucket](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "HEAD") bucket.Put("a", "abcd");
    return std::nullopt;
  });
  const auto source = MustOpen(GcsStoreOf(bucket, {}), name);
  EXPECT_THAT(source->Size(), IsOkAndHolds(4u));
  EXPECT_EQ(source->identity(), "generation 1002");
  bucket.Put("a", "");
  bucket.SetFault([&bucket](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "HEAD") bucket.Remove("a");
    return std::nullopt;
  });
  EXPECT_THAT(GcsStoreOf(bucket, {}).Open(name),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("NoSuchKey")));
  // The reads see an empty object, and each HEAD sees 4 bytes. After some attempts Open() fails.
  bucket.Put("a", "abcd");
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "HEAD") return std::nullopt;
    return RefuseInXml(416, "InvalidRange", "", {{"Content-Range", "bytes */0"}});
  });
  const size_t before = bucket.server().requests().size();
  EXPECT_THAT(GcsStoreOf(bucket, {}).Open(name),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(name), HasSubstr("replaced all the time"))));
  EXPECT_EQ(bucket.server().requests().size() - before, 6u);
}

TEST(BucketStoreTest, OddKeysAreSignedAskedForAndListedAsTheyAre) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  for (const char* key : {"a b", "a+b", "a%20b", "a%", "a?x=1&y", "a#b", "a&b=c",
                          "\xc3\xa4\xe2\x82\xac", "a:b@c", "~tilde", "'(quoted)'", "a;b,c", "!$",
                          "a\"<>\\^`{|}", "x//y", "/x", "x/./y", "x/../y", "d/odd[1]*?"}) {
    const std::string name = bucket.Put(key, key);
    EXPECT_THAT(ReadWhole(*MustOpen(store, name), 100), IsOkAndHolds(key));
    if (absl::StrContains(key, '\\')) continue;  // List() takes a backslash as an escape.
    EXPECT_THAT(store.List(name, [](absl::string_view) { return true; }),
                IsOkAndHolds(testing::ElementsAre(name)))
        << key;
  }
}

TEST(BucketStoreTest, SequentialReadsReuseOneConnection) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  const auto source = MustOpen(store, bucket.Put("a", std::string(1000, 'x')));
  std::string out(10, '.');
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(source->ReadAt(i * 10, absl::MakeSpan(out)), IsOkAndHolds(10u));
  }
  EXPECT_EQ(bucket.server().connections(), 1);
}

TEST(BucketStoreTest, RecentAnswersServeStatAndChecksWithoutARequest) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("a", "abc");
  WebStoreOptions web = EagerWebOptions();
  web.trust = absl::Hours(1);
  const BucketStore store = S3StoreOf(bucket, {kStubCredentials}, web);
  const auto source = MustOpen(store, name);
  EXPECT_THAT(store.Stat(name), IsOk());
  EXPECT_THAT(source->CheckUnchanged(), IsOk());
  EXPECT_EQ(bucket.server().requests().size(), 1u);
  EXPECT_THAT(ReadWhole(*source, 3), IsOkAndHolds("abc"));
  EXPECT_THAT(source->CheckUnchanged(), IsOk());  // Takes no request: the read had the ETag.
  EXPECT_EQ(bucket.server().requests().size(), 2u);
}

TEST(BucketStoreTest, AReplacedOrRemovedObjectIsFailedPreconditionByBaseName) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  const std::string name = bucket.Put("d/a", "abc");
  const auto source = MustOpen(store, name);
  std::string out(3, '.');
  bucket.Put("d/a", "def");
  const auto replaced = StatusIs(
      absl::StatusCode::kFailedPrecondition,
      AllOf(HasSubstr("shard \"a\" was replaced"), Not(HasSubstr("d/")), Not(HasSubstr("127."))));
  EXPECT_THAT(source->CheckUnchanged(), replaced);
  EXPECT_THAT(source->ReadAt(0, absl::MakeSpan(out)), replaced);
  bucket.Remove("d/a");
  const auto removed = StatusIs(
      absl::StatusCode::kFailedPrecondition,
      AllOf(HasSubstr("shard \"a\" was removed"), Not(HasSubstr("d/")), Not(HasSubstr("127."))));
  EXPECT_THAT(source->CheckUnchanged(), removed);
  EXPECT_THAT(source->ReadAt(0, absl::MakeSpan(out)), removed);
}

TEST(BucketStoreTest, NotFoundIsDistinguishedFromPermissionDenied) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  const std::string name = bucket.Name("d/none");
  EXPECT_THAT(store.Open(name), StatusIs(absl::StatusCode::kNotFound,
                                         AllOf(HasSubstr(name), HasSubstr("no such object"))));
  const std::string elsewhere = "s3://other-bucket/a";
  EXPECT_THAT(store.Open(elsewhere),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(elsewhere), HasSubstr("no such bucket"))));
  EXPECT_THAT(store.List(elsewhere, [](absl::string_view) { return true; }),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(elsewhere), HasSubstr("no such bucket"))));
  bucket.SetFault([](const StubRequest&) { return RefuseInXml(403, "AccessDenied"); });
  EXPECT_THAT(store.Open(name), StatusIs(absl::StatusCode::kPermissionDenied,
                                         AllOf(HasSubstr(name), HasSubstr("s3:GetObject"))));
}

TEST(BucketStoreTest, WithoutCredentialsAPublicBucketIsReadUnsigned) {
  StubBucket bucket;
  const BucketStore store = S3StoreOf(bucket, {});
  EXPECT_THAT(ReadWhole(*MustOpen(store, bucket.Put("a", "abc")), 3), IsOkAndHolds("abc"));
  EXPECT_EQ(FindHeader(bucket.server().requests().front().headers, "authorization"), "");
}

TEST(BucketStoreTest, FoldersBucketsAndMalformedNamesAreRefusedWithoutARequest) {
  StubBucket bucket;
  const BucketStore store = S3StoreOf(bucket);
  for (const std::string& name :
       {bucket.Name(""), bucket.Name("d/"), std::string("s3://x"), std::string("s3://A/b")}) {
    EXPECT_THAT(store.Open(name), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
    EXPECT_THAT(store.Stat(name), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
    EXPECT_THAT(store.Create(name), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
    EXPECT_THAT(store.Remove(name), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
  EXPECT_EQ(bucket.server().requests().size(), 0u);
}

TEST(BucketStoreTest, SetupRunsAtFirstUseAndIsRetriedAfterAFailure) {
  int made = 0;
  StubBucket bucket;
  bucket.Put("a", "abc");
  const BucketStore store([&]() -> absl::StatusOr<BucketService> {
    if (++made == 1) return absl::FailedPreconditionError("no profile");
    BucketService service = {.dialect = nullptr, .web = EagerWebOptions()};
    SYSTOLE_ASSIGN_OR_RETURN(
        service.dialect,
        S3Dialect::Create({.endpoint = bucket.endpoint()},
                          std::make_unique<FakeAwsCredentials>(std::vector<AwsCredentials>())));
    return service;
  });
  EXPECT_EQ(made, 0);
  EXPECT_THAT(store.Open(bucket.Name("a")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no profile")));
  EXPECT_THAT(store.Open(bucket.Name("a")), IsOk());
  EXPECT_THAT(store.Open(bucket.Name("a")), IsOk());
  EXPECT_EQ(made, 2);
}

}  // namespace
}  // namespace systole
