#include "proto/framing/guarded_message.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "systole/v1/service.pb.h"
#include "tests/proto/framing/sliced_message.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;

v1::StreamStepsRequest Request() {
  v1::StreamStepsRequest request;
  request.mutable_spec()->set_dataset("flowers");
  request.set_first_step(300);
  request.set_count(7);
  return request;
}

CallMetadata With(const std::string& checksum) { return {{kMessageChecksumKey, checksum}}; }

TEST(GuardedMessageTest, TheChecksumIsCrc32cInHex) {
  EXPECT_EQ(MessageChecksum("123456789"), "e3069283");
  EXPECT_EQ(MessageChecksum(""), "00000000");
}

TEST(GuardedMessageTest, AMessageSurvivesEncodingAndDecoding) {
  const GuardedMessage sent = EncodeGuarded(Request());
  EXPECT_EQ(BytesOf(sent.bytes), Request().SerializeAsString());
  EXPECT_EQ(sent.checksum, MessageChecksum(Request().SerializeAsString()));
  v1::StreamStepsRequest received;
  ASSERT_THAT(DecodeGuarded(SlicedMessage(BytesOf(sent.bytes), 3), With(sent.checksum), received),
              IsOk());
  EXPECT_EQ(received.SerializeAsString(), Request().SerializeAsString());
}

TEST(GuardedMessageTest, EveryFlippedBitIsSeen) {
  const GuardedMessage sent = EncodeGuarded(Request());
  const std::string bytes = BytesOf(sent.bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    v1::StreamStepsRequest received;
    EXPECT_THAT(DecodeGuarded(SlicedMessage(damaged, 64), With(sent.checksum), received),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged on the way")))
        << bit;
  }
}

TEST(GuardedMessageTest, AMessageWithoutAChecksumIsAccepted) {
  const GuardedMessage sent = EncodeGuarded(Request());
  v1::StreamStepsRequest received;
  const std::string other = "0";
  EXPECT_THAT(DecodeGuarded(sent.bytes, {}, received), IsOk());
  EXPECT_THAT(DecodeGuarded(sent.bytes, {{"other-key", other}}, received), IsOk());
}

TEST(GuardedMessageTest, AMalformedChecksumIsDataLossWithAShortSafeMessage) {
  const GuardedMessage sent = EncodeGuarded(Request());
  for (const std::string& checksum :
       {std::string(), std::string("0"), std::string("\x1b[2J"), std::string(4000, 'x'),
        "0x" + sent.checksum, sent.checksum + " "}) {
    v1::StreamStepsRequest received;
    const absl::Status status = DecodeGuarded(sent.bytes, With(checksum), received);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr(sent.checksum)));
    EXPECT_LT(status.message().size(), 400u);
    EXPECT_EQ(status.message().find('\x1b'), absl::string_view::npos);
  }
}

TEST(GuardedMessageTest, MalformedAndMissingMessagesAreRefused) {
  v1::StreamStepsRequest received;
  const std::string checksum = MessageChecksum("\xff");
  EXPECT_THAT(DecodeGuarded(SlicedMessage("\xff", 1), With(checksum), received),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not a systole.v1.StreamStepsRequest message")));
  EXPECT_THAT(DecodeGuarded(grpc::ByteBuffer(), {}, received),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no message arrived")));
}

}  // namespace
}  // namespace systole
