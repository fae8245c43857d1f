#include "proto/framing/status_bridge.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

TEST(StatusBridgeTest, EveryCodeSurvivesConversionToGrpcAndBack) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_THAT(FromGrpcStatus(grpc::Status::OK), IsOk());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "shard-3, offset 17");
    EXPECT_EQ(static_cast<int>(ToGrpcStatus(status).error_code()), code);
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
}

TEST(StatusBridgeTest, CodesMapToGrpcCodesOfTheSameName) {
  using absl::StatusCode;
  const std::pair<StatusCode, grpc::StatusCode> codes[] = {
      {StatusCode::kCancelled, grpc::CANCELLED},
      {StatusCode::kUnknown, grpc::UNKNOWN},
      {StatusCode::kInvalidArgument, grpc::INVALID_ARGUMENT},
      {StatusCode::kDeadlineExceeded, grpc::DEADLINE_EXCEEDED},
      {StatusCode::kNotFound, grpc::NOT_FOUND},
      {StatusCode::kAlreadyExists, grpc::ALREADY_EXISTS},
      {StatusCode::kPermissionDenied, grpc::PERMISSION_DENIED},
      {StatusCode::kResourceExhausted, grpc::RESOURCE_EXHAUSTED},
      {StatusCode::kFailedPrecondition, grpc::FAILED_PRECONDITION},
      {StatusCode::kAborted, grpc::ABORTED},
      {StatusCode::kOutOfRange, grpc::OUT_OF_RANGE},
      {StatusCode::kUnimplemented, grpc::UNIMPLEMENTED},
      {StatusCode::kInternal, grpc::INTERNAL},
      {StatusCode::kUnavailable, grpc::UNAVAILABLE},
      {StatusCode::kDataLoss, grpc::DATA_LOSS},
      {StatusCode::kUnauthenticated, grpc::UNAUTHENTICATED}};
  for (const auto& [code, grpc_code] : codes) {
    SCOPED_TRACE(absl::StatusCodeToString(code));
    EXPECT_EQ(ToGrpcStatus(absl::Status(code, "x")).error_code(), grpc_code);
    EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc_code, "x")), absl::Status(code, "x"));
  }
}

TEST(StatusBridgeTest, ALongMessageIsCut) {
  const std::string message =
      ToGrpcStatus(absl::InternalError(std::string(1 << 20, 'x'))).error_message();
  EXPECT_EQ(message, std::string(kMaxStatusMessageBytes, 'x'));
}

TEST(StatusBridgeTest, APeersMessageIsEscapedAndBounded) {
  const grpc::Status hostile(grpc::StatusCode::NOT_FOUND, "a\x1b[2Jb\nc\r\x07 \xff");
  EXPECT_EQ(FromGrpcStatus(hostile), absl::NotFoundError("a\\x1b[2Jb\\nc\\r\\x07 \\xff"));
  const grpc::Status endless(grpc::StatusCode::NOT_FOUND, std::string(3 << 20, '\n'));
  EXPECT_LE(FromGrpcStatus(endless).message().size(), static_cast<size_t>(kMaxStatusMessageBytes));
}

TEST(StatusBridgeTest, AStatusWithoutAMessageNamesItsCode) {
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "")),
            absl::UnimplementedError("UNIMPLEMENTED, without a message"));
}

TEST(StatusBridgeTest, AnUnknownCodeIsNotOk) {
  // gRPC's own enumeration cannot hold a larger code.
  const grpc::Status strange(static_cast<grpc::StatusCode>(20), "strange");
  EXPECT_THAT(FromGrpcStatus(strange), testing::Not(IsOk()));
}

}  // namespace
}  // namespace systole
