// Tests what the metadata service of an EC2 instance gives, when a machine does not count as an
// instance, and which errors the service's faults cause.
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/aws_credentials.h"
#include "core/http/http_headers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/credentials/aws_stub_servers.h"
#include "tests/core/credentials/fake_surroundings.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr auto kPermissionDenied = absl::StatusCode::kPermissionDenied;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

using AwsInstanceTest = AwsServersTest;

TEST_F(AwsInstanceTest, RoleKeysAreFetchedWithASessionTokenAndRenewed) {
  UseInstance();
  const auto source = Source();
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  const std::vector<StubRequest> requests = server_.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].method, "PUT");
  EXPECT_EQ(requests[0].body, "");
  EXPECT_EQ(FindHeader(requests[0].headers, "x-aws-ec2-metadata-token-ttl-seconds"), "60");
  fake_.Pass(absl::Hours(6) - absl::Minutes(5));
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(2));
  source->Refused(AwsCredentials{"id-2", "s3cr3t-2", "s3cr3t-token"});
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(3));
}

TEST_F(AwsInstanceTest, WithoutMetadataThereAreNoKeysAndOneRequestPerMinute) {
  UseInstance();
  std::atomic<bool> is_other_cloud = true;
  faulty_.SetFault([&is_other_cloud](const StubRequest&) -> std::optional<StubAnswer> {
    if (is_other_cloud) return Reply(404, "");
    return std::nullopt;
  });
  const auto source = Source();
  for (int i = 0; i < 5; ++i) EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  EXPECT_EQ(server_.requests().size(), 1u);
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  EXPECT_EQ(server_.requests().size(), 2u);
  is_other_cloud = false;
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));

  fake_.Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", absl::StrCat("http://", DeadAddress()));
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
  UseInstance();
  fake_.Set("AWS_EC2_METADATA_DISABLED", "TRUE");
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
}

// Surroundings in which the n-th look for the metadata service finds the address `address(n)`.
CredentialSurroundings WithAddresses(CredentialSurroundings surroundings, std::atomic<int>& looks,
                                     std::function<std::string(int n)> address) {
  surroundings.variable = [&looks, address = std::move(address),
                           others = surroundings.variable](const char* name) {
    return absl::string_view(name) == "AWS_EC2_METADATA_SERVICE_ENDPOINT" ? address(++looks)
                                                                          : others(name);
  };
  return surroundings;
}

TEST_F(AwsInstanceTest, MetadataThatStartsALittleLaterThanThisProcessIsFound) {
  UseInstance();
  std::atomic<int> looks = 0;
  const std::string dead = absl::StrCat("http://", DeadAddress());
  const auto source = AwsCredentialsOfEnvironment(
      WithAddresses(fake_.Get(), looks, [&](int n) { return n < 3 ? dead : server_.Url(""); }));
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  EXPECT_EQ(looks, 3);
}

TEST_F(AwsInstanceTest, AbsentMetadataIsLookedForAgainOncePerMinuteOrAfterARefusal) {
  UseInstance();
  std::atomic<int> looks = 0;
  std::atomic<bool> is_there = false;
  const std::string dead = absl::StrCat("http://", DeadAddress());
  const auto source = AwsCredentialsOfEnvironment(
      WithAddresses(fake_.Get(), looks, [&](int) { return is_there ? server_.Url("") : dead; }));
  EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  EXPECT_EQ(looks, 3);
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  EXPECT_EQ(looks, 4);
  for (int i = 0; i < 3; ++i) {
    source->Refused(std::nullopt);
    EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
    EXPECT_EQ(looks, 5);
  }
  is_there = true;
  EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  fake_.Pass(absl::Seconds(10));
  source->Refused(std::nullopt);
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
}

TEST_F(AwsInstanceTest, AFailingMetadataServiceIsAnErrorNotMissingCredentials) {
  UseInstance();
  for (const char* target : {"/token", "/security-credentials/"}) {
    for (const StubAnswer& answer :
         {StubAnswer{.closes = true},
          StubAnswer{.bytes = Head(200, {{"content-length", "9"}}) + "x", .closes = true},
          Reply(503, "")}) {
      faulty_.SetFault([target, answer](const StubRequest& request) -> std::optional<StubAnswer> {
        if (absl::StrContains(request.target, target)) return answer;
        return std::nullopt;
      });
      EXPECT_THAT(Get(), FailsWith(kUnavailable, HasSubstr("AWS credentials of this EC2")));
    }
  }
}

TEST_F(AwsInstanceTest, IfRefusedKeysCannotBeRenewedTheErrorSaysWhy) {
  UseInstance();
  std::atomic<bool> fails = false;
  faulty_.SetFault([&fails](const StubRequest&) -> std::optional<StubAnswer> {
    if (fails) return Reply(503, "");
    return std::nullopt;
  });
  const auto source = Source();
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  fails = true;
  source->Refused(AwsCredentials{"id-1", "s3cr3t-1", "s3cr3t-token"});
  EXPECT_THAT(source->Get(kLongTime), FailsWith(kUnavailable, HasSubstr("status 503")));
}

TEST_F(AwsInstanceTest, AMetadataServiceThatNeverAnswersIsATimeoutError) {
  UseInstance();
  faulty_.SetFault([](const StubRequest&) { return StubAnswer{.bytes = "", .hangs = true}; });
  CredentialSurroundings surroundings = fake_.Get();
  surroundings.link_timeout = absl::Milliseconds(20);
  EXPECT_THAT(AwsCredentialsOfEnvironment(surroundings)->Get(kLongTime),
              FailsWith(absl::StatusCode::kDeadlineExceeded,
                        AllOf(HasSubstr("HttpPutResponseHopLimit"),
                              HasSubstr("AWS_EC2_METADATA_DISABLED"))));
}

TEST_F(AwsInstanceTest, OtherThreadsDoNotWaitWhileOneLooksForMetadataAgain) {
  UseInstance();
  std::atomic<bool> holds = false;
  std::atomic<bool> held = false;
  faulty_.SetFault([&](const StubRequest&) -> std::optional<StubAnswer> {
    if (holds) {
      held = true;
      EXPECT_TRUE(WaitUntil([&] { return !holds; }));
    }
    return Reply(404, "");
  });
  const auto source = Source();
  EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  fake_.Pass(absl::Minutes(1));
  holds = true;
  std::thread looks([&source] { EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt)); });
  EXPECT_TRUE(WaitUntil([&] { return held.load(); }));
  for (int i = 0; i < 5; ++i) EXPECT_THAT(source->Get(kLongTime), IsOkAndHolds(std::nullopt));
  holds = false;
  looks.join();
}

TEST_F(AwsInstanceTest, AnInstanceWithoutARoleHasNoCredentials) {
  UseInstance();
  faulty_.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (absl::EndsWith(request.target, "/security-credentials/")) return Reply(404, "");
    return std::nullopt;
  });
  EXPECT_THAT(Get(), IsOkAndHolds(std::nullopt));
}

TEST_F(AwsInstanceTest, AnInstanceThatStopsGivingKeysIsAnError) {
  UseInstance();
  std::atomic<int> status = 0;
  faulty_.SetFault([&status](const StubRequest&) -> std::optional<StubAnswer> {
    if (status == 0) return std::nullopt;
    return Reply(status, "");
  });
  const auto source = Source();
  EXPECT_THAT(source->Get(kLongTime), HoldsKeys(1));
  fake_.Pass(absl::Hours(7));
  status = 403;
  EXPECT_THAT(source->Get(kLongTime),
              FailsWith(kPermissionDenied, HasSubstr("AWS_EC2_METADATA_DISABLED")));
  status = 503;
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), FailsWith(kUnavailable, HasSubstr("status 503")));
  fake_.Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", absl::StrCat("http://", DeadAddress()));
  fake_.Pass(absl::Minutes(1));
  EXPECT_THAT(source->Get(kLongTime), FailsWith(kUnavailable, HasSubstr("cannot connect")));
}

TEST_F(AwsInstanceTest, AnInstancesDamagedAnswersAreErrors) {
  UseInstance();
  std::atomic<int> step = 0;
  const std::string bad[] = {"s3cr3t \x80", "../../s3cr3t", "{\"s3cr3t"};
  faulty_.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    const int at = request.method == "PUT"                                    ? 0
                   : absl::EndsWith(request.target, "/security-credentials/") ? 1
                                                                              : 2;
    if (at != step) return std::nullopt;
    return Reply(200, bad[at]);
  });
  EXPECT_THAT(Get(), FailsWith(kDataLoss, HasSubstr("gave a session token that is empty")));
  step = 1;
  EXPECT_THAT(Get(), FailsWith(kDataLoss, HasSubstr("names no role")));
  step = 2;
  EXPECT_THAT(Get(), FailsWith(kDataLoss, HasSubstr("not a JSON object")));
  fake_.Set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "s3cr3t");
  EXPECT_THAT(Get(),
              FailsWith(kFailedPrecondition, HasSubstr("AWS_EC2_METADATA_SERVICE_ENDPOINT")));
}

}  // namespace
}  // namespace systole
