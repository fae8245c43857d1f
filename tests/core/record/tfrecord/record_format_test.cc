#include "core/record/tfrecord/record_format.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"

namespace systole {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

// Every event file of TensorFlow begins with a record of 24 bytes, whose header is this.
constexpr unsigned char kTensorFlowHeader24[] = {0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22};

TEST(RecordFormatTest, DecodesAHeaderThatTensorFlowWrote) {
  EXPECT_THAT(DecodeRecordHeader(reinterpret_cast<const char*>(kTensorFlowHeader24)),
              Optional(Eq(24u)));
}

TEST(RecordFormatTest, EncodesWhatTensorFlowWrites) {
  char header[kRecordHeaderBytes];
  EncodeRecordHeader(24, header);
  EXPECT_EQ(std::string(header, sizeof(header)),
            std::string(reinterpret_cast<const char*>(kTensorFlowHeader24), 12));
}

TEST(RecordFormatTest, EncodedLengthsAreDecodedUnchanged) {
  for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{784}, uint64_t{1} << 32,
                                uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()}) {
    char header[kRecordHeaderBytes];
    EncodeRecordHeader(length, header);
    EXPECT_THAT(DecodeRecordHeader(header), Optional(Eq(length)));
  }
}

TEST(RecordFormatTest, AHeaderWithAnyFlippedBitDoesNotDecode) {
  const std::string header = ShardBuilder().AddHeader(123'456).Build();
  for (uint64_t bit = 0; bit < 8 * header.size(); ++bit) {
    EXPECT_EQ(DecodeRecordHeader(WithFlippedBit(header, bit).data()), std::nullopt) << bit;
  }
}

TEST(RecordFormatTest, NumbersAreLittleEndianAtAnyAlignment) {
  char bytes[16] = {};
  StoreU64Le(0x0123456789abcdef, bytes + 1);
  StoreU32Le(0xfedcba98, bytes + 9);
  EXPECT_EQ(std::string(bytes + 1, 12), "\xef\xcd\xab\x89\x67\x45\x23\x01\x98\xba\xdc\xfe");
  EXPECT_EQ(LoadU64Le(bytes + 1), 0x0123456789abcdefu);
  EXPECT_EQ(LoadU32Le(bytes + 9), 0xfedcba98u);
}

TEST(RecordFormatTest, PayloadFootersMatchKnownChecksums) {
  EXPECT_EQ(PayloadFooter(""), 0xa282ead8u);
  EXPECT_EQ(PayloadFooter("abc"), 0x21f1576eu);
}

TEST(RecordFormatTest, DamageMessagesNameFoundAndExpectedValues) {
  EXPECT_EQ(PayloadCrcCause(0x12, 0xabcdef01),
            "CRC of the payload is 0x00000012, stored is 0xabcdef01");
  EXPECT_EQ(NoHeaderCause(5),
            "cut short: 5 bytes are left, a header has 12; 1 record or more is lost, at least 11 "
            "bytes");
  EXPECT_EQ(TooLongCause(100, 40),
            "cut short, or its length is wrong: the header announces 100 bytes of payload and 4 of "
            "CRC, 40 bytes are left; if it is cut, 1 record or more is lost, at least 64 bytes");
  EXPECT_THAT(TooLongCause(~uint64_t{0}, 3), HasSubstr("at least 18446744073709551612 bytes"))
      << "no sum may overflow";
  const std::string header = ShardBuilder().AddHeader(0).Build();
  EXPECT_EQ(HeaderCrcCause(WithFlippedBit(header, 64).data()),
            "CRC of the length field is 0x07980329, stored is 0x07980328");
}

}  // namespace
}  // namespace systole
