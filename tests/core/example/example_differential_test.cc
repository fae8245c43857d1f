// Tests our parser with unusual and invalid records. Where protobuf reads a record, our parser must
// read the same. Where protobuf refuses a record, our parser must refuse it. A fuzzer compares the
// two in the same way, with any number of further records.
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/example/encode.h"
#include "tests/core/example/protobuf_oracle.h"

namespace systole {
namespace {

const std::string kOne("\0\0\x80\x3f", 4);  // 1.0f
const std::string kTwo("\0\0\0\x40", 4);    // 2.0f

bool Accepted(const std::string& record) { return ExampleView::Parse(record).ok(); }

std::string Nested(int groups) {
  std::string out;
  for (int i = 0; i < groups; ++i) out = Group(7, out);
  return out;
}

std::vector<std::string> GoodRecords() {
  const std::string typical =
      Entry("image", BytesList(Field(1, std::string(300, 'j')))) +
      Entry("label", Int64List(Field(1, Varint(7)))) +
      Entry("weights", FloatList(Field(1, kOne + kTwo))) +
      Entry("ids", Int64List(Field(1, Varint(1) + Varint(300) + Varint(~uint64_t{0}))));
  return {
      "",
      Example(""),
      Example(typical),
      Example(typical) + Example(typical),  // Features twice: merged.
      Example(Entry("a", BytesList("")) + Entry("b", FloatList("")) + Entry("c", Int64List(""))),
      Example(Entry("none", "")),  // No kind set.
      Example(Field(1, Field(1, "no value"))),
      Example(Field(1, Field(2, Int64List(VarintField(1, 5))))),  // Without a key the name is "".
      Example(Field(1, "")),
      // The value before the key, the key twice, and unknown fields in between.
      Example(Field(1, Field(2, BytesList(Field(1, "x"))) + Field(1, "late"))),
      Example(Field(1, Field(1, "old") + Field(1, "new") + Field(2, BytesList(Field(1, "x"))))),
      Example(Field(1, VarintField(9, 5) + Field(1, "k") + Group(3, VarintField(1, 1)) +
                           Field(2, BytesList(Field(1, "x"))) + Fixed32Field(5, kOne))),
      // Entries with two values: protobuf merges the two values of an entry.
      Example(Field(1, Field(1, "k") + Field(2, BytesList(Field(1, "x"))) +
                           Field(2, BytesList(Field(1, "y"))))),
      Example(Field(1, Field(1, "k") + Field(2, BytesList(Field(1, "x"))) +
                           Field(2, Int64List(VarintField(1, 5))))),
      Example(Field(1, Field(1, "k") + Field(2, Int64List(VarintField(1, 5))) + Field(2, ""))),
      // A key that comes twice: the second entry replaces the first, even if the second is empty.
      Example(Entry("k", BytesList(Field(1, "x"))) + Entry("k", Int64List(VarintField(1, 5)))),
      Example(Entry("k", BytesList(Field(1, "x"))) + Entry("k", "")),
      Example(Entry("k", BytesList(Field(1, "x"))) + Field(1, Field(1, "k"))),
      // Lists of different kinds: the kind of the last list wins. Of this kind, only the lists
      // after the last list of another kind count. These lists are joined.
      Example(Entry("k", BytesList(Field(1, "x")) + FloatList(Field(1, kOne)))),
      Example(Entry("k", Int64List(Field(1, Varint(1))) + Int64List(Field(1, Varint(2))))),
      Example(Entry("k", BytesList(Field(1, "a")) + Int64List(VarintField(1, 9)) +
                             BytesList(Field(1, "b")) + BytesList(Field(1, "c")))),
      // Packed and unpacked numbers mixed, then unknown fields and wrong wire types in the list.
      Example(Entry("k", Int64List(VarintField(1, 5) + Field(1, Varint(6) + Varint(7)) +
                                   VarintField(1, 8) + Field(1, "")))),
      Example(Entry(
          "k", FloatList(Fixed32Field(1, kOne) + Field(1, kTwo + kOne) + Fixed32Field(1, kTwo)))),
      Example(Entry("k", Int64List(Fixed32Field(1, kOne) + VarintField(2, 1) + Field(3, "x")))),
      Example(Entry("k", BytesList(VarintField(1, 5) + Field(1, "b") + Fixed32Field(1, kOne)))),
      Example(Entry("k", FloatList(VarintField(1, 5)))),
      Example(Entry("k", VarintField(1, 5) + Fixed32Field(2, kOne))),  // No lists at all.
      VarintField(1, 5) + Example(VarintField(1, 5) + typical) + Field(2, "unknown"),
      // Long forms of tags, lengths and numbers.
      std::string("\x8a\x80\x00", 3) + Varint(typical.size()) + typical,
      std::string("\x0a\x80\x80\x80\x80\x00", 6),
      std::string("\x8a\x80\x80\x80\x70\x00", 6),  // A tag's bits above the 32nd do not count.
      Example(Entry("k", Int64List(Field(1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f")))),
      Example(Entry("k", Int64List(Field(1, std::string(50, '\x01') + Varint(1 << 20))))),
      // Groups, as deep as protobuf allows at each level.
      Nested(100),
      Example(Entry("k", Int64List(Nested(96)))),
      Example(Entry("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\xbb", BytesList(Field(1, "\xff\xfe")))),
      // Names that are not UTF-8: an invalid byte, overlong, a surrogate, above 10ffff, cut short,
      // and replaced by a good name.
      Example(Entry("\xff", "")),
      Example(Entry("\xc0\x80", "")),
      Example(Entry("\xed\xa0\x80", "")),
      Example(Entry("\xf4\x90\x80\x80", "")),
      Example(Entry("\xe2\x82", "")),
      Example(Field(1, Field(1, "\xff") + Field(1, "good"))),
  };
}

std::vector<std::string> BadRecords() {
  return {
      std::string(1, '\0'),
      "\x02",      // Field number 0.
      "\x0f\x01",  // Wire type 7.
      "\x0a",      // No length.
      "\x0a\x05"
      "ab",                                                // Length beyond the end.
      std::string("\x0a\x81\x80\x80\x80\x80\x00", 7),      // Length of 6 bytes.
      "\x0a\xff\xff\xff\xff\x0f",                          // Length of 2^32 - 1.
      std::string("\x8a\x80\x80\x80\x80\x00\x00", 7),      // Tag of 6 bytes.
      "\x10\x80",                                          // Varint cut short.
      "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  // Varint of 11 bytes.
      "\x11"
      "1234567",  // Seven of eight bytes.
      "\x15"
      "123",       // Three of four bytes.
      "\x13",      // A group without an end.
      "\x14",      // A group's end without a group.
      "\x13\x1c",  // A group with the end of another group.
      Group(2, std::string(1, '\0')),
      Nested(101),
      Example(Entry("k", Int64List(Nested(97)))),
      Example("\x0a\x03"
              "ab"),                        // Entry reaches out of its Features.
      Example("\x0a\x02\x0a\x03") + "abc",  // Key reaches out of its entry.
      Example(Entry("k", FloatList(Field(1, "123")))),
      Example(Entry("k", FloatList(Fixed32Field(1, "12")))),
      Example(Entry("k", Int64List(Field(1, "\x80")))),
      Example(Entry("k", Int64List(Field(1, std::string(10, '\x80') + '\x01')))),
      Example(Entry("k", Int64List(Field(1, "\x80")) + BytesList(""))),  // A bad list, replaced.
  };
}

TEST(ExampleDifferentialTest, OddButGoodRecordsAreReadAsProtobufReadsThem) {
  const std::vector<std::string> records = GoodRecords();
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_TRUE(Accepted(records[i])) << "record " << i;
    EXPECT_EQ(DifferenceFromProtobuf(records[i]), "") << "record " << i;
  }
}

TEST(ExampleDifferentialTest, BadRecordsAreRefusedAsProtobufRefusesThem) {
  const std::vector<std::string> records = BadRecords();
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_FALSE(Accepted(records[i])) << "record " << i;
    EXPECT_EQ(DifferenceFromProtobuf(records[i]), "") << "record " << i;
  }
}

TEST(ExampleDifferentialTest, TruncatedRecordsAreReadAsProtobufReadsThem) {
  for (const std::string& record : GoodRecords()) {
    for (size_t size = 0; size < record.size(); ++size) {
      ASSERT_EQ(DifferenceFromProtobuf(record.substr(0, size)), "") << "size " << size;
    }
  }
}

TEST(ExampleDifferentialTest, RecordsWithAChangedByteAreReadAsProtobufReadsThem) {
  for (const std::string& record : GoodRecords()) {
    for (size_t at = 0; at < record.size(); ++at) {
      for (const int value : {0x00, 0x01, 0x08, 0x0a, 0x0b, 0x0c, 0x12, 0x1a, 0x7f, 0x80, 0xff}) {
        std::string changed = record;
        changed[at] = static_cast<char>(value);
        ASSERT_EQ(DifferenceFromProtobuf(changed), "") << "byte " << at << " set to " << value;
      }
    }
  }
}

// Bytes are cut out of one record and put into another one. This makes wrong lengths, and entries
// inside entries.
TEST(ExampleDifferentialTest, SplicedRecordsAreReadAsProtobufReadsThem) {
  const std::vector<std::string> records = GoodRecords();
  uint64_t state = 1;
  const auto below = [&state](size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % n;
  };
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string record = records[below(records.size())];
    const std::string& donor = records[below(records.size())];
    const size_t from = below(donor.size() + 1), size = below(12);
    const size_t at = below(record.size() + 1);
    record.replace(at, below(4), donor.substr(from, size));
    accepted += Accepted(record);
    ASSERT_EQ(DifferenceFromProtobuf(record), "") << "round " << round;
  }
  EXPECT_GT(accepted, 1000);  // Otherwise the test would compare refusals only.
}

}  // namespace
}  // namespace systole
