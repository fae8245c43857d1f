// Records whose bytes change while they are read, as in a mapped file that another program writes
// to. A read gives the value or an error. Sanitizers check that no read touches memory outside the
// record.
#include <cstdint>
#include <string>
#include <vector>

#include "core/example/example_builder.h"
#include "core/example/example_parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/example/encode.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

bool Inside(absl::string_view part, absl::string_view whole) {
  return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

// Parses `record`, then changes each byte to some values and reads after each change.
void ReadAfterEachChange(const std::string& record) {
  const absl::StatusOr<ExampleParser> parser = ExampleParser::Create({"b", "i", "f"});
  ASSERT_THAT(parser, IsOk());
  int refused = 0;
  for (size_t at = 0; at < record.size(); ++at) {
    for (const int value : {0x00, 0x01, 0x05, 0x0a, 0x0d, 0x12, 0x7f, 0x80, 0xff}) {
      // The bytes are on the heap and of the exact size, so that a sanitizer sees a read beyond
      // them.
      std::vector<char> changed(record.begin(), record.end());
      const absl::string_view bytes(changed.data(), changed.size());
      FeatureView views[3];
      MadeText made;
      ASSERT_THAT(parser->Parse(TensorFlowExample(), bytes, made, views), IsOk());
      changed[at] = static_cast<char>(value);
      for (int64_t i = 0; i < views[0].count(); ++i) {
        const absl::StatusOr<absl::string_view> read = views[0].BytesAt(i);
        if (read.ok()) {
          EXPECT_TRUE(Inside(*read, bytes));
        } else {
          EXPECT_THAT(read.status(), StatusIs(absl::StatusCode::kDataLoss,
                                              HasSubstr("changed while it was read")));
          ++refused;
        }
      }
      std::vector<int64_t> ints(static_cast<size_t>(views[1].count()));
      std::vector<float> floats(static_cast<size_t>(views[2].count()));
      for (const absl::Status& read : {views[1].CopyInt64s(absl::MakeSpan(ints)),
                                       views[2].CopyFloats(absl::MakeSpan(floats))}) {
        if (read.ok()) continue;
        EXPECT_THAT(read,
                    StatusIs(absl::StatusCode::kDataLoss, HasSubstr("changed while it was read")));
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(ChangingRecordTest, ChangedListsInOnePieceAreReadWithinTheRecordOrRefused) {
  ReadAfterEachChange(ExampleBuilder()
                          .AddBytes("b", "some bytes")
                          .AddInt64s("i", {1, -2, 300})
                          .AddFloats("f", {0.5f, -2.0f, 1.0f})
                          .Serialize());
}

TEST(ChangingRecordTest, ChangedListsInPiecesAreReadWithinTheRecordOrRefused) {
  const std::string two = "\x01\x02\x03\x04\x05\x06\x07\x08";
  ReadAfterEachChange(Example(
      Entry("b", Int64List(VarintField(1, 7)) + BytesList(Field(1, "x") + Field(1, "yz")) +
                     BytesList(Field(1, "end"))) +
      Entry("i", Int64List(Field(1, Varint(1) + Varint(300))) + Int64List(VarintField(1, 5))) +
      Entry("f", FloatList(Fixed32Field(1, "abcd")) + FloatList(Field(1, two)))));
}

}  // namespace
}  // namespace systole
