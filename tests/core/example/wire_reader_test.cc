#include "core/example/wire_reader.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tests/core/example/encode.h"

namespace systole {
namespace {

TEST(WireReaderTest, ReadsVarintsOfEveryLength) {
  for (int bits = 0; bits <= 64; ++bits) {
    const uint64_t value = bits == 0 ? 0 : ~uint64_t{0} >> (64 - bits);
    const std::string bytes = Varint(value);
    WireReader reader(bytes);
    uint64_t read = 1;
    EXPECT_TRUE(reader.ReadVarint(&read));
    EXPECT_EQ(read, value);
    EXPECT_TRUE(reader.done());
    for (size_t size = 0; size < bytes.size(); ++size) {
      WireReader cut(absl::string_view(bytes).substr(0, size));
      EXPECT_FALSE(cut.ReadVarint(&read));
      EXPECT_STREQ(cut.error(), "a varint is cut short");
    }
  }
}

TEST(WireReaderTest, ReadsFixed32LeastSignificantFirst) {
  WireReader reader("\x01\x02\x03\x84");
  uint32_t value = 0;
  EXPECT_TRUE(reader.ReadFixed32(&value));
  EXPECT_EQ(value, 0x84030201u);
  EXPECT_FALSE(reader.ReadFixed32(&value));
}

TEST(WireReaderTest, BytesAreAViewOfTheInput) {
  const std::string bytes = Varint(3) + "abcd";
  WireReader reader(bytes);
  absl::string_view view;
  ASSERT_TRUE(reader.ReadBytes(&view));
  EXPECT_EQ(view.data(), bytes.data() + 1);
  EXPECT_EQ(view, "abc");
  EXPECT_EQ(reader.position(), bytes.data() + 4);
}

TEST(WireReaderTest, ReadsLengthsOfOneTwoAndMoreBytes) {
  for (const size_t size : {0, 1, 127, 128, 784, 16'383, 16'384, 3'000'000}) {
    const std::string bytes = Varint(size) + std::string(size, 'x') + "behind";
    WireReader reader(bytes);
    absl::string_view view;
    ASSERT_TRUE(reader.ReadBytes(&view)) << size;
    EXPECT_EQ(view, std::string(size, 'x'));
    EXPECT_EQ(bytes.substr(static_cast<size_t>(reader.position() - bytes.data())), "behind");
    // The bytes end one byte before the end that the length claims.
    const size_t short_by_one = bytes.size() - 7;
    WireReader cut(absl::string_view(bytes).substr(0, short_by_one));
    EXPECT_FALSE(cut.ReadBytes(&view)) << size;
    EXPECT_STREQ(cut.error(),
                 size == 0 ? "a length is cut short" : "a length exceeds the bytes around it");
    EXPECT_EQ(cut.position(), bytes.data());
  }
  absl::string_view view;
  EXPECT_FALSE(WireReader("\x80").ReadBytes(&view));
  EXPECT_TRUE(
      WireReader(absl::string_view("\x80\0", 2)).ReadBytes(&view));  // A longer form than needed.
  EXPECT_EQ(view, "");
}

TEST(WireReaderTest, ReadsTagsOfOneAndMoreBytes) {
  for (const uint32_t field : {1u, 15u, 16u, 2047u, 2048u, (1u << 29) - 1}) {
    const std::string bytes = Varint(WireTag(field, kWireBytes));
    WireReader reader(bytes);
    uint32_t tag = 0;
    ASSERT_TRUE(reader.ReadTag(&tag)) << field;
    EXPECT_EQ(tag, WireTag(field, kWireBytes));
    EXPECT_TRUE(reader.done());
    EXPECT_FALSE(reader.ReadTag(&tag));
    EXPECT_STREQ(reader.error(), "a field's tag is cut short");
  }
  for (const char zero : {'\0', '\x07'}) {  // Field 0 with the first and the last wire type.
    WireReader reader(absl::string_view(&zero, 1));
    uint32_t tag = 0;
    EXPECT_FALSE(reader.ReadTag(&tag));
    EXPECT_STREQ(reader.error(), "a field has number 0");
  }
}

TEST(WireReaderTest, AfterAFailureThePositionIsAtTheBadItem) {
  const std::string bytes = Field(1, "ab") + "\x0a\x09z";
  WireReader reader(bytes);
  uint32_t tag = 0;
  absl::string_view view;
  ASSERT_TRUE(reader.ReadTag(&tag) && reader.ReadBytes(&view) && reader.ReadTag(&tag));
  EXPECT_FALSE(reader.ReadBytes(&view));
  EXPECT_STREQ(reader.error(), "a length exceeds the bytes around it");
  EXPECT_EQ(reader.position() - bytes.data(), 5);
}

TEST(WireReaderTest, SkipsEveryWireType) {
  for (const std::string& field :
       {VarintField(7, 300), Field(7, "abc"), Fixed32Field(7, "1234"), Group(7, VarintField(1, 2)),
        Group(7, Group(7, "") + Field(8, "x")), Varint(7 << 3 | 1) + "12345678"}) {
    const std::string bytes = field + VarintField(1, 5);
    WireReader reader(bytes);
    uint32_t tag = 0;
    ASSERT_TRUE(reader.ReadTag(&tag));
    EXPECT_EQ(tag >> 3, 7);
    EXPECT_TRUE(reader.SkipValue(tag));
    EXPECT_EQ(reader.position() - bytes.data(), field.size());
  }
}

TEST(CountVarintsTest, CountsVarintsAcrossEightByteBoundaries) {
  for (int small = 0; small < 20; ++small) {
    for (int shift = 0; shift < 64; shift += 7) {
      std::string bytes(small, '\x05');
      bytes += Varint(uint64_t{1} << shift);
      bytes += std::string(small, '\x06');
      EXPECT_EQ(CountVarints(bytes), 2 * small + 1) << "shift " << shift;
    }
  }
  EXPECT_EQ(CountVarints(""), 0);
}

TEST(CountVarintsTest, RefusesOverlongAndTruncatedVarints) {
  EXPECT_EQ(CountVarints(std::string(9, '\x80') + '\x01'), 1);
  EXPECT_EQ(CountVarints(std::string(10, '\x80') + '\x01'), -1);
  EXPECT_EQ(CountVarints(std::string(8, '\x01') + '\x80'), -1);
  EXPECT_EQ(CountVarints("\x80"), -1);
}

}  // namespace
}  // namespace systole
