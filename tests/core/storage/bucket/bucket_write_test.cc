// Tests how BucketStore writes: in one request and in parts, with servers that fail, and with
// credentials that expire.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/http/http_headers.h"
#include "core/interrupt/interrupt.h"
#include "core/storage/bucket/bucket_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/faulty_http_server.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/bucket/stub_bucket_store.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Parts of 1,000 bytes.
constexpr BucketSinkOptions kSmallParts = {.first_part_bytes = 1000};

StubBucketOptions Signed() {
  return {.sign = SignedBy(kStubCredentials), .min_part_bytes = kSmallParts.first_part_bytes};
}

BucketStore StoreOf(const StubBucket& bucket, const BucketSinkOptions& sink = kSmallParts,
                    std::vector<AwsCredentials> credentials = {kStubCredentials}) {
  return S3StoreOf(bucket, std::move(credentials), EagerWebOptions(), {}, sink);
}

std::string Bytes(size_t count) {
  std::string bytes;
  for (size_t i = 0; bytes.size() < count; ++i) absl::StrAppend(&bytes, i, ",");
  bytes.resize(count);
  return bytes;
}

// Writes `bytes`, given to the sink in pieces of 700 bytes, so that parts end within pieces.
absl::Status Write(const BucketStore& store, const std::string& name, absl::string_view bytes) {
  absl::StatusOr<std::unique_ptr<ByteSink>> sink = store.Create(name);
  if (!sink.ok()) return sink.status();
  for (size_t i = 0; i < bytes.size(); i += 700) {
    const absl::Status appended = (*sink)->Append(bytes.substr(i, 700));
    if (!appended.ok()) {
      EXPECT_EQ((*sink)->Append("more"), appended);
      EXPECT_EQ((*sink)->Close(), appended);
      return appended;
    }
  }
  const absl::Status closed = (*sink)->Close();
  if (!closed.ok()) {
    EXPECT_EQ((*sink)->Close(), closed);
  }
  return closed;
}

bool IsPart(const StubRequest& request) { return absl::StrContains(request.target, "partNumber="); }
bool IsEnd(const StubRequest& request) {
  return request.method == "POST" && absl::StrContains(request.target, "uploadId=");
}
bool IsAbort(const StubRequest& request) {
  return request.method == "DELETE" && absl::StrContains(request.target, "uploadId=");
}

int Count(const StubBucket& bucket, bool (*which)(const StubRequest&)) {
  int count = 0;
  for (const StubRequest& request : const_cast<StubBucket&>(bucket).server().requests()) {
    count += which(request);
  }
  return count;
}

// Gives `answer` to the first `count` requests for which `which` is true.
FaultyHttpServer::Fault First(int count, bool (*which)(const StubRequest&), StubAnswer answer) {
  const auto left = std::make_shared<std::atomic<int>>(count);
  return [=](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!which(request) || (*left)-- <= 0) return std::nullopt;
    return answer;
  };
}

TEST(BucketWriteTest, ASmallObjectIsOneRequestAndALargeOneIsSentInParts) {
  for (const size_t size : {0u, 1u, 999u, 1000u, 1001u, 2000u, 12'345u}) {
    StubBucket bucket(Signed());
    const BucketStore store = StoreOf(bucket);
    const std::string bytes = Bytes(size);
    EXPECT_THAT(Write(store, bucket.Name("d/a b+c"), bytes), IsOk());
    EXPECT_EQ(bucket.Get("d/a b+c"), bytes);
    EXPECT_EQ(bucket.uploads(), 0);
    const size_t parts = size <= 1000 ? 0 : (size + 999) / 1000;
    EXPECT_EQ(bucket.server().requests().size(), parts == 0 ? 1 : parts + 2) << size;
    EXPECT_EQ(Count(bucket, IsPart), static_cast<int>(parts));
  }
}

TEST(BucketWriteTest, ObjectsAreWrittenAndRemovedInCloudStorage) {
  StubBucket bucket({.is_gcs = true, .token = "TOKEN", .min_part_bytes = 1000});
  const BucketStore store = GcsStoreOf(bucket, {"TOKEN"}, kSmallParts);
  for (const size_t size : {500u, 5500u}) {
    const std::string name = bucket.Name(absl::StrCat("d/", size));
    EXPECT_THAT(Write(store, name, Bytes(size)), IsOk());
    EXPECT_EQ(bucket.Get(absl::StrCat("d/", size)), Bytes(size));
    EXPECT_THAT(store.Remove(name), IsOk());
    EXPECT_THAT(store.Remove(name), StatusIs(absl::StatusCode::kNotFound, HasSubstr(name)));
  }
}

// The stub checks each signature. The store has HMAC keys, and no tokens.
TEST(BucketWriteTest, HmacKeysOfCloudStorageSignEachRequestOfAnUpload) {
  StubBucket bucket({.is_gcs = true, .sign = SignedByHmac(kStubHmacKeys), .min_part_bytes = 1000});
  const BucketStore store =
      GcsStoreOf(bucket, {}, kSmallParts, {.hmac_keys = kStubHmacKeys, .user_project = "mine"});
  const std::string name = bucket.Name("d e/a+b");
  for (const size_t size : {500u, 5500u}) {
    EXPECT_THAT(Write(store, name, Bytes(size)), IsOk());
    EXPECT_EQ(bucket.Get("d e/a+b"), Bytes(size));
  }
  EXPECT_THAT(store.Remove(name), IsOk());
  EXPECT_EQ(bucket.Get("d e/a+b"), std::nullopt);
  // The request that ends a failed upload is signed, too.
  bucket.SetFault(First(1, IsEnd, RefuseInXml(403, "AccessDenied")));
  EXPECT_THAT(Write(store, name, Bytes(5500)),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("storage.objects.create")));
  EXPECT_EQ(Count(bucket, IsAbort), 1);
  EXPECT_EQ(bucket.uploads(), 0);
  for (const StubRequest& request : bucket.server().requests()) {
    EXPECT_EQ(FindHeader(request.headers, "x-goog-user-project"), "mine") << request.method;
    EXPECT_THAT(std::string(FindHeader(request.headers, "authorization")),
                StartsWith("GOOG4-HMAC-SHA256 "));
  }
}

TEST(BucketWriteTest, GrowingPartsReach484GiBAndTooManyPartsAreRefused) {
  const BucketSinkOptions usual;
  uint64_t most = 0;
  uint64_t part = usual.first_part_bytes;
  for (int i = 0; i < usual.max_parts; i += usual.parts_of_a_size, part *= 2) {
    most += part * static_cast<uint64_t>(usual.parts_of_a_size);
  }
  EXPECT_EQ(most >> 30, 484u);
  StubBucket bucket(Signed());
  const BucketStore store =
      StoreOf(bucket, {.first_part_bytes = 1000, .parts_of_a_size = 2, .max_parts = 5});
  const std::string fits = Bytes(2 * 1000 + 2 * 2000 + 4000);
  EXPECT_THAT(Write(store, bucket.Name("a"), fits), IsOk());
  EXPECT_EQ(bucket.Get("a"), fits);
  EXPECT_EQ(Count(bucket, IsPart), 5);
  EXPECT_THAT(Write(store, bucket.Name("b"), fits + "x"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(bucket.Name("b")), HasSubstr("more than 5 parts"))));
  EXPECT_EQ(bucket.Get("b"), std::nullopt);
  EXPECT_EQ(bucket.uploads(), 0);
}

TEST(BucketWriteTest, AnObjectThatWouldHaveTooManyPartsIsRefusedBeforeAPartIsFilled) {
  StubBucket bucket(Signed());
  const BucketStore store = StoreOf(bucket, {.first_part_bytes = 1000, .max_parts = 2});
  const std::unique_ptr<ByteSink> sink = store.Create(bucket.Name("a")).value();
  EXPECT_THAT(sink->Append(Bytes(2000)), IsOk());
  EXPECT_THAT(sink->Append("x"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("more than 2 parts")));
}

TEST(BucketWriteTest, TheRequestTimeoutGrowsWithTheBytesToSend) {
  StubBucket bucket(Signed());
  WebStoreOptions hurried = EagerWebOptions();
  hurried.timeout = absl::Milliseconds(1);        // Too short for most requests.
  const std::string bytes(size_t{8} << 20, 'x');  // 8 MiB get two minutes more.
  const BucketStore store = S3StoreOf(bucket, {kStubCredentials}, hurried);
  EXPECT_THAT(Write(store, bucket.Name("a"), bytes), IsOk());
  EXPECT_EQ(bucket.Get("a"), bytes);
}

TEST(BucketWriteTest, PartsInFlightAreBoundedInNumberAndBytes) {
  for (const BucketSinkOptions& options :
       {BucketSinkOptions{.first_part_bytes = 1000, .parts_in_flight = 3},
        BucketSinkOptions{
            .first_part_bytes = 1000, .parts_in_flight = 8, .bytes_in_flight = 3000}}) {
    StubBucket bucket(Signed());
    std::atomic<int> waiting = 0;
    std::atomic<bool> released = false;
    bucket.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
      if (!IsPart(request)) return std::nullopt;
      ++waiting;
      EXPECT_TRUE(WaitUntil([&] { return released.load(); }));
      return std::nullopt;
    });
    const BucketStore store = StoreOf(bucket, options);
    absl::Status written;
    std::thread writer([&] { written = Write(store, bucket.Name("a"), Bytes(20'000)); });
    EXPECT_TRUE(WaitUntil([&] { return waiting == 3; }));
    EXPECT_EQ(bucket.server().open_now(), 3);
    released = true;
    writer.join();
    EXPECT_THAT(written, IsOk());
    EXPECT_LE(bucket.server().most_open(), 3 + 1);
    EXPECT_EQ(bucket.Get("a"), Bytes(20'000));
  }
}

TEST(BucketWriteTest, TheObjectIsUnchangedBeforeCloseOrIfTheSinkIsDropped) {
  StubBucket bucket(Signed());
  bucket.Put("a", "before");
  const BucketStore store = StoreOf(bucket);
  for (const size_t size : {10u, 5500u}) {
    absl::StatusOr<std::unique_ptr<ByteSink>> sink = store.Create(bucket.Name("a"));
    ASSERT_THAT(sink, IsOk());
    ASSERT_THAT((*sink)->Append(Bytes(size)), IsOk());
    EXPECT_EQ(bucket.Get("a"), "before");
  }
  EXPECT_EQ(bucket.Get("a"), "before");
  EXPECT_EQ(bucket.uploads(), 0);
  EXPECT_EQ(Count(bucket, IsAbort), 1);
}

TEST(BucketWriteTest, WritesAndRemovalsInvalidateCachedAnswers) {
  StubBucket bucket(Signed());
  WebStoreOptions web = EagerWebOptions();
  web.trust = absl::Hours(1);
  const BucketStore store = S3StoreOf(bucket, {kStubCredentials}, web);
  const std::string name = bucket.Put("a", "abc");
  const absl::StatusOr<std::unique_ptr<ByteSource>> source = store.Open(name);
  ASSERT_THAT(source, IsOk());
  EXPECT_THAT((*source)->CheckUnchanged(), IsOk());
  ASSERT_THAT(Write(store, name, "defg"), IsOk());
  EXPECT_EQ(store.Stat(name)->size_bytes, 4u);
  EXPECT_THAT((*source)->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was replaced")));
  ASSERT_THAT(store.Remove(name), IsOk());
  EXPECT_THAT(store.Stat(name), StatusIs(absl::StatusCode::kNotFound, HasSubstr(name)));
  EXPECT_THAT((*source)->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was removed")));
}

TEST(BucketWriteTest, TransientFailuresOfEachKindOfRequestAreRetried) {
  const auto any = [](const StubRequest&) { return true; };
  for (const StubAnswer& answer : {RefuseInXml(500, "InternalError"), RefuseInXml(503, "SlowDown"),
                                   StubAnswer{.bytes = "", .closes = true}}) {
    for (bool (*const which)(const StubRequest&) : {+any, &IsPart, &IsEnd}) {
      StubBucket bucket(Signed());
      bucket.SetFault(First(2, which, answer));
      EXPECT_THAT(Write(StoreOf(bucket), bucket.Name("a"), Bytes(3500)), IsOk());
      EXPECT_EQ(bucket.Get("a"), Bytes(3500));
      EXPECT_EQ(bucket.uploads(), 0);
    }
  }
  StubBucket bucket(Signed());
  bucket.SetFault(First(2, any, RefuseInXml(503, "SlowDown")));
  EXPECT_THAT(Write(StoreOf(bucket), bucket.Name("a"), "small"), IsOk());
  EXPECT_EQ(bucket.Get("a"), "small");
}

TEST(BucketWriteTest, AFailureThatStaysIsAnErrorAfterABoundedNumberOfTriesAndEndsTheUpload) {
  StubBucket bucket(Signed());
  bucket.SetFault(First(1 << 20, IsPart, RefuseInXml(500, "InternalError")));
  EXPECT_THAT(Write(StoreOf(bucket, {.first_part_bytes = 1000, .parts_in_flight = 1}),
                    bucket.Name("a"), Bytes(9500)),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(bucket.Name("a")), HasSubstr("500 InternalError"),
                             HasSubstr("fewer writers"), Not(HasSubstr("SECRET")))));
  EXPECT_EQ(Count(bucket, IsPart), 4);  // EagerWebOptions() allows four attempts.
  EXPECT_EQ(Count(bucket, IsAbort), 1);
  EXPECT_EQ(bucket.uploads(), 0);
  EXPECT_EQ(bucket.Get("a"), std::nullopt);
}

TEST(BucketWriteTest, AnErrorBodyWithStatus200IsAnErrorAndRetriedIfTransient) {
  const auto after_200 = [](const char* code) {
    return Reply(
        200, absl::StrCat("<?xml version=\"1.0\"?>\n  \n<Error><Code>", code, "</Code></Error>"));
  };
  {
    StubBucket bucket(Signed());
    bucket.SetFault(First(2, IsEnd, after_200("InternalError")));
    EXPECT_THAT(Write(StoreOf(bucket), bucket.Name("a"), Bytes(3500)), IsOk());
    EXPECT_EQ(bucket.Get("a"), Bytes(3500));
  }
  for (const auto& [answer, error] :
       {std::pair(after_200("InternalError"), "InternalError"),
        std::pair(after_200("EntityTooLarge"), "EntityTooLarge"),
        std::pair(Reply(200, "<html></html>"), "not a CompleteMultipartUploadResult"),
        std::pair(Reply(200, ""), "XML")}) {
    StubBucket bucket(Signed());
    bucket.SetFault(First(1 << 20, IsEnd, answer));
    const absl::Status written = Write(StoreOf(bucket), bucket.Name("a"), Bytes(3500));
    EXPECT_FALSE(written.ok());
    EXPECT_THAT(std::string(written.message()),
                AllOf(HasSubstr(bucket.Name("a")), HasSubstr(error)));
    EXPECT_EQ(bucket.Get("a"), std::nullopt);
    EXPECT_EQ(bucket.uploads(), 0);
  }
}

TEST(BucketWriteTest, ALostCompletionAnswerIsNoErrorIfTheObjectExists) {
  StubBucket bucket(Signed());
  bucket.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!IsEnd(request)) return std::nullopt;
    // The first request ends the upload, but its answer is lost. The answer to the second request
    // is NoSuchUpload.
    StubAnswer lost = bucket.Usual(request);
    if (absl::StrContains(lost.bytes, "NoSuchUpload")) return lost;
    return StubAnswer{.bytes = "", .closes = true};
  });
  EXPECT_THAT(Write(StoreOf(bucket), bucket.Name("a"), Bytes(3500)), IsOk());
  EXPECT_EQ(bucket.Get("a"), Bytes(3500));
  EXPECT_EQ(Count(bucket, IsEnd), 2);
}

TEST(BucketWriteTest, AnUploadUnknownToTheServerFailsEvenIfAnOldObjectExists) {
  StubBucket bucket(Signed());
  bucket.Put("a", Bytes(3500));
  bucket.SetFault(First(1 << 20, IsEnd, RefuseInXml(404, "NoSuchUpload")));
  EXPECT_THAT(Write(StoreOf(bucket), bucket.Name("a"), Bytes(3500)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("unfinished uploads")));
}

TEST(BucketWriteTest, ExpiredCredentialsAreRenewedDuringAnUpload) {
  const AwsCredentials next = {.access_key_id = "AKIDNEXT", .secret_access_key = "SECRETNEXT"};
  StubBucket bucket(Signed());
  std::atomic<int> parts = 0;
  bucket.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (IsPart(request) && ++parts == 3) bucket.Renew(SignedBy(next));
    return std::nullopt;
  });
  EXPECT_THAT(Write(StoreOf(bucket, {.first_part_bytes = 1000, .parts_in_flight = 1},
                            {kStubCredentials, next}),
                    bucket.Name("a"), Bytes(5500)),
              IsOk());
  EXPECT_EQ(bucket.Get("a"), Bytes(5500));
}

TEST(BucketWriteTest, AForbiddenWriteNamesThePermissionsAndShowsNoSecret) {
  StubBucket bucket(Signed());
  bucket.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
    return RefuseInXml(403, "AccessDenied");
  });
  const BucketStore store = StoreOf(bucket);
  const std::string name = bucket.Put("d/there", "abc");
  const auto refused =
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr(name), HasSubstr("403 AccessDenied"), HasSubstr("s3:PutObject"),
                     HasSubstr("set AWS_REQUEST_PAYER=requester"), Not(HasSubstr("SECRET")),
                     Not(HasSubstr("SESSION")), Not(HasSubstr("AKID"))));
  EXPECT_THAT(Write(store, name, "small"), refused);
  EXPECT_THAT(Write(store, name, Bytes(3500)), refused);
  EXPECT_THAT(store.Remove(name), refused);
  EXPECT_EQ(bucket.Get("d/there"), "abc");
  EXPECT_EQ(Count(bucket, IsAbort), 0);  // No upload has begun.
  EXPECT_THAT(
      Write(S3StoreOf(bucket, {}), name, "small"),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr("not everybody may write it"), HasSubstr("had no credentials"))));
}

TEST(BucketWriteTest, AnInterruptedWriterGivesUpAndTheUploadIsEnded) {
  StubBucket bucket(Signed());
  InterruptFlag unwanted;
  bucket.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (!IsPart(request)) return std::nullopt;
    unwanted.Raise();
    return StubAnswer{.hangs = true};
  });
  const InterruptScope scope(unwanted);
  EXPECT_THAT(Write(StoreOf(bucket), bucket.Name("a"), Bytes(20'000)),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  EXPECT_EQ(bucket.uploads(), 0);
  EXPECT_EQ(Count(bucket, IsAbort), 1);
}

TEST(BucketWriteTest, AMissingUploadIdOrInvalidPartEtagIsDataLoss) {
  const auto is_begin = [](const StubRequest& request) {
    return absl::EndsWith(request.target, "?uploads=");
  };
  for (const auto& [fault, error] :
       {std::pair(First(1, is_begin, Reply(200, "<html></html>")), "no ID"),
        std::pair(First(1, IsPart, Reply(200, "")), "no ETag"),
        std::pair(First(1, IsPart, Reply(200, "", {{"ETag", std::string(300, 'x')}})),
                  "no ETag")}) {
    StubBucket bucket(Signed());
    bucket.SetFault(fault);
    EXPECT_THAT(Write(StoreOf(bucket), bucket.Name("a"), Bytes(3500)),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(bucket.Name("a")), HasSubstr(error))));
    EXPECT_EQ(bucket.uploads(), 0);
  }
}

}  // namespace
}  // namespace systole
