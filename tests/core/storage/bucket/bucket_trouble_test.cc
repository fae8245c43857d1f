// Tests BucketStore with servers that fail, and with credentials that expire or are refused.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/storage/bucket/bucket_store.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/faulty_http_server.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/bucket/stub_bucket_store.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const AwsCredentials kNext = {.access_key_id = "AKIDNEXT", .secret_access_key = "SECRETNEXT"};

StubBucketOptions Signed() { return {.sign = SignedBy(kStubCredentials)}; }

std::unique_ptr<ByteSource> MustOpen(const BucketStore& store, const std::string& name) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = store.Open(name);
  EXPECT_THAT(source, IsOk());
  return *std::move(source);
}

// The bucket's usual answer to `request`, without its last byte.
StubAnswer Cut(StubBucket& bucket, const StubRequest& request) {
  StubAnswer answer = bucket.Usual(request);
  answer.bytes.pop_back();
  answer.closes = true;
  return answer;
}

// Disturbs the first, third, fifth .. request. These requests get `answers` in turn, then once the
// usual answer without its last byte, then `answers` again.
FaultyHttpServer::Fault EverySecond(StubBucket& bucket, std::vector<StubAnswer> answers) {
  const auto count = std::make_shared<std::atomic<size_t>>(0);
  return [=, &bucket](const StubRequest& request) -> std::optional<StubAnswer> {
    const size_t number = (*count)++;
    if (number % 2 == 1) return std::nullopt;
    const size_t which = number / 2 % (answers.size() + 1);
    return which < answers.size() ? answers[which] : Cut(bucket, request);
  };
}

TEST(BucketTroubleTest, ReadsAndListsSurviveTransientErrorsAndTruncatedBodies) {
  StubBucket bucket(Signed());
  const std::string bytes(1000, 'b');
  for (const char* key : {"d/a", "d/b"}) bucket.Put(key, bytes);
  bucket.SetFault(EverySecond(bucket, {RefuseInXml(503, "SlowDown"),
                                       RefuseInXml(500, "InternalError"),
                                       RefuseInXml(429, "TooManyRequests"),
                                       {.bytes = "", .closes = true}}));
  const BucketStore store = S3StoreOf(bucket);
  EXPECT_THAT(store.List(bucket.Name("d/*"), [](absl::string_view) { return true; }),
              IsOkAndHolds(testing::SizeIs(2)));
  const auto source = MustOpen(store, bucket.Name("d/a"));
  std::string out(100, '.');
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(source->ReadAt(i * 100, absl::MakeSpan(out)), IsOkAndHolds(100u));
    EXPECT_EQ(out, bytes.substr(0, 100));
    EXPECT_THAT(source->CheckUnchanged(), IsOk());
  }
}

TEST(BucketTroubleTest, APersistentFailureIsUnavailableWithItsErrorCode) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  const std::string name = bucket.Put("d/a", "abc");
  const auto source = MustOpen(store, name);
  bucket.SetFault([](const StubRequest&) { return RefuseInXml(503, "SlowDown"); });
  std::string out(3, '.');
  const size_t before = bucket.server().requests().size();
  EXPECT_THAT(source->ReadAt(0, absl::MakeSpan(out)),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("503 SlowDown"), HasSubstr("a: "), Not(HasSubstr("d/")))));
  EXPECT_EQ(bucket.server().requests().size() - before, 4u);
  EXPECT_THAT(store.Open(name), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(name)));
  EXPECT_THAT(store.List(name, [](absl::string_view) { return true; }),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(name)));
}

TEST(BucketTroubleTest, AnswersWithAWrongRangeLengthOrObjectStateAreRefused) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket);
  const auto source = MustOpen(store, bucket.Put("a", "0123456789"));
  std::string out(4, '.');
  const auto answers = [&](const HttpHeaders& headers, absl::string_view body) {
    bucket.SetFault([headers, body = std::string(body)](const StubRequest&) {
      return Reply(206, body, headers);
    });
    return source->ReadAt(2, absl::MakeSpan(out)).status();
  };
  EXPECT_THAT(answers({{"ETag", "\"9\""}, {"Content-Range", "bytes 2-5/10"}}, "2345"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
  EXPECT_THAT(answers({{"ETag", "\"1\""}, {"Content-Range", "bytes 0-3/10"}}, "0123"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0-3")));
  EXPECT_THAT(answers({{"ETag", "\"1\""}, {"Content-Range", "bytes 2-5/10"}}, "234"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("after 3 of 4 bytes")));
  EXPECT_THAT(answers({{"ETag", "\"1\""}, {"Content-Range", "bytes 2-5/11"}}, "2345"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
}

TEST(BucketTroubleTest, ExpiredCredentialsAreRenewedDuringReads) {
  StubBucket bucket(Signed());
  const BucketStore store = S3StoreOf(bucket, {kStubCredentials, kNext});
  const auto source = MustOpen(store, bucket.Put("d/a", "0123456789"));
  bucket.Renew(SignedBy(kNext));
  std::string out(4, '.');
  const int before = bucket.reads();
  EXPECT_THAT(source->ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(4u));
  EXPECT_EQ(bucket.reads() - before, 2);
  EXPECT_THAT(source->ReadAt(4, absl::MakeSpan(out)), IsOkAndHolds(4u));
  EXPECT_EQ(bucket.reads() - before, 3);  // One more request: the new credentials were kept.
  EXPECT_THAT(source->CheckUnchanged(), IsOk());
}

TEST(BucketTroubleTest, AnExpiredTokenIsRenewedDuringListsAndReads) {
  StubBucket bucket({.is_gcs = true, .token = "TOKEN1"});
  const BucketStore store = GcsStoreOf(bucket, {"TOKEN1", "TOKEN2"});
  const auto source = MustOpen(store, bucket.Put("d/a", "0123456789"));
  bucket.Renew("TOKEN2");
  EXPECT_THAT(store.List(bucket.Name("d/*"), [](absl::string_view) { return true; }),
              IsOkAndHolds(testing::SizeIs(1)));
  EXPECT_THAT(ReadWhole(*source, 10), IsOkAndHolds("0123456789"));
}

TEST(BucketTroubleTest, ErrorsAboutRefusedCredentialsDoNotShowTheCredentials) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("d/a", "abc");
  const AwsCredentials wrong = {.access_key_id = kStubCredentials.access_key_id,
                                .secret_access_key = "SECRETWRONG",
                                .session_token = "SESSIONWRONG"};
  for (const AwsCredentials& credentials : {wrong, kNext}) {
    const BucketStore store = S3StoreOf(bucket, {credentials});
    const auto refused =
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr(name), HasSubstr("does not accept the credentials"),
                       HasSubstr("AWS_PROFILE"), Not(HasSubstr("OFTEST")), Not(HasSubstr("WRONG")),
                       Not(HasSubstr("NEXT"))));
    EXPECT_THAT(store.Open(name), refused);
    // If a bucket may not be listed, List() returns the name itself, as the name of an object.
    // Refused credentials must not look like this case.
    EXPECT_THAT(store.List(name, [](absl::string_view) { return true; }), refused);
    EXPECT_FALSE(IsAbsent(store.Open(name).status(), name));
  }
}

TEST(BucketTroubleTest, CredentialErrorsNameTheirFileToOperatorsButNotToClients) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("d/a", "abc");
  auto source = std::make_unique<FakeAwsCredentials>(std::vector{kStubCredentials});
  FakeAwsCredentials& credentials = *source;
  auto dialect = *S3Dialect::Create({.endpoint = bucket.endpoint()}, std::move(source));
  const BucketStore store([&]() -> absl::StatusOr<BucketService> {
    return BucketService{.dialect = std::move(dialect), .web = EagerWebOptions()};
  });
  const auto shard = MustOpen(store, name);
  credentials.Fail(absl::PermissionDeniedError("/home/operator/.aws/credentials: no"));
  // With PermissionDenied, IsAbsent() would take the object for a missing one.
  EXPECT_THAT(store.Open(name), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         AllOf(HasSubstr(name), HasSubstr("/home/operator"))));
  EXPECT_FALSE(IsAbsent(store.Open(name).status(), name));
  std::string out(3, '.');
  for (const absl::Status& status :
       {shard->ReadAt(0, absl::MakeSpan(out)).status(), shard->CheckUnchanged()}) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("a: no request could be sent to its server"),
                                       Not(HasSubstr("operator")), Not(HasSubstr("d/")))));
  }
  // The failure is not kept: the next request gets the credentials again.
  credentials.Fail(absl::OkStatus());
  EXPECT_THAT(shard->CheckUnchanged(), IsOk());
}

TEST(BucketTroubleTest, UnreadableSettingsDoNotMakeTheObjectLookMissing) {
  const BucketStore store([]() -> absl::StatusOr<BucketService> {
    return absl::PermissionDeniedError("cannot read '/home/operator/.aws/config'");
  });
  const std::string name = "s3://data/d/a";
  const auto unread =
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/home/operator/.aws/config"));
  EXPECT_THAT(store.Open(name), unread);
  EXPECT_FALSE(IsAbsent(store.Open(name).status(), name));
  EXPECT_THAT(store.List(name, [](absl::string_view) { return true; }), unread);
  EXPECT_THAT(store.ListFolder("s3://data/d/"), unread);
}

// A store, and the source of its credentials. The store owns the source.
struct WatchedStore {
  FakeAwsCredentials* credentials;
  std::unique_ptr<BucketStore> store;
};
WatchedStore Watched(const StubBucket& bucket, std::vector<AwsCredentials> values,
                     const WebStoreOptions& web = EagerWebOptions()) {
  auto source = std::make_unique<FakeAwsCredentials>(std::move(values));
  FakeAwsCredentials* const credentials = source.get();
  auto dialect = std::make_shared<std::unique_ptr<S3Dialect>>(
      *S3Dialect::Create({.endpoint = bucket.endpoint()}, std::move(source)));
  return {credentials,
          std::make_unique<BucketStore>([dialect, web]() -> absl::StatusOr<BucketService> {
            return BucketService{.dialect = std::move(*dialect), .web = web};
          })};
}

TEST(BucketTroubleTest, AFailedCredentialRenewalIsRetriedByALaterRequest) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("d/a", "abc");
  const WatchedStore watched = Watched(bucket, {kStubCredentials, kNext});
  const auto shard = MustOpen(*watched.store, name);
  bucket.Renew(SignedBy(kNext));
  watched.credentials->FailAfterRefusal(absl::UnavailableError("the service of keys is away"));
  EXPECT_THAT(shard->CheckUnchanged(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("a: ")));
  EXPECT_THAT(watched.store->Open(name),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("service of keys is away")));
  watched.credentials->FailAfterRefusal(absl::OkStatus());
  watched.credentials->Fail(absl::OkStatus());
  EXPECT_THAT(shard->CheckUnchanged(), IsOk());
}

TEST(BucketTroubleTest, ARefusedUnsignedRequestLooksForNewCredentials) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("d/a", "abc");
  const WatchedStore watched = Watched(bucket, {});
  EXPECT_THAT(watched.store->Open(name),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("had no credentials")));
  watched.credentials->SetLateValues({kStubCredentials});
  EXPECT_THAT(watched.store->Open(name), IsOk());
}

TEST(BucketTroubleTest, ARequestWaitsForCredentialsNoLongerThanItsOwnTimeout) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("d/a", "abc");
  const auto now = std::make_shared<std::atomic<int>>(0);
  WebStoreOptions web = EagerWebOptions();
  web.open_timeout = absl::Seconds(60);
  web.now = [now] { return absl::Seconds(now->load()); };
  const WatchedStore watched = Watched(bucket, {kStubCredentials}, web);
  watched.credentials->OnGet([now] { *now += 100; });
  EXPECT_THAT(watched.store->Open(name),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("waiting for credentials")));
  EXPECT_LE(watched.credentials->timeout(), absl::Seconds(60));
  EXPECT_EQ(bucket.server().requests().size(), 0u);
}

TEST(BucketTroubleTest, NoRedirectIsFollowed) {
  StubBucket other;
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("a", "abc");
  bucket.SetFault([&](const StubRequest&) {
    return RefuseInXml(
        307, "TemporaryRedirect", "",
        {{"Location", other.server().Url("/a")}, {"x-amz-bucket-region", "eu-west-1"}});
  });
  EXPECT_THAT(S3StoreOf(bucket).Open(name),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("307 TemporaryRedirect"), HasSubstr("another server"))));
  EXPECT_EQ(other.server().requests().size(), 0u);
  EXPECT_EQ(bucket.server().requests().size(), 1u);
}

TEST(BucketTroubleTest, AnEndlessErrorBodyIsCutOff) {
  StubBucket bucket(Signed());
  const std::string name = bucket.Put("a", "abc");
  bucket.SetFault([&](const StubRequest&) {
    return StubAnswer{.bytes = Head(403, {}) + "<Error><Code>AccessDenied</Code><Message>",
                      .closes = false,
                      .hangs = false,
                      .endless = std::string(10'000, 'x')};
  });
  EXPECT_THAT(S3StoreOf(bucket).Open(name),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("403 AccessDenied")));
}

TEST(BucketTroubleTest, OpeningOnAnUnreachableServerIsUnavailableAndNamesTheObject) {
  StubBucket bucket;
  const std::string name = bucket.Name("d/a");
  const BucketStore store([&]() -> absl::StatusOr<BucketService> {
    BucketService service = {.dialect = nullptr, .web = EagerWebOptions()};
    SYSTOLE_ASSIGN_OR_RETURN(
        service.dialect,
        S3Dialect::Create({.endpoint = absl::StrCat("http://", DeadAddress())},
                          std::make_unique<FakeAwsCredentials>(std::vector<AwsCredentials>())));
    return service;
  });
  EXPECT_THAT(store.Open(name), StatusIs(absl::StatusCode::kUnavailable,
                                         AllOf(HasSubstr(name), HasSubstr("cannot connect"))));
}

}  // namespace
}  // namespace systole
