#include "core/record/zip/zip_source.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_parser.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/scratch_scope.h"
#include "core/record/arrays/array_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/arrays/columns.h"
#include "tests/core/record/zip/zipped.h"
#include "tests/core/storage/gated_source.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The int64 features of a record: "number=3 b/number=103".
std::string FeaturesOf(const RecordSource& source, absl::string_view record) {
  const auto example = ExampleView::Parse(record, source.examples());
  if (!example.ok()) return example.status().ToString();
  std::vector<std::string> features;
  for (const FeatureView& feature : example->Features()) {
    if (feature.kind() != FeatureKind::kInt64) continue;
    std::vector<int64_t> values(static_cast<size_t>(feature.count()));
    EXPECT_THAT(feature.CopyInt64s(absl::MakeSpan(values)), IsOk());
    features.push_back(absl::StrCat(feature.name(), "=", values[0]));
  }
  std::string text;
  for (const std::string& feature : features)
    absl::StrAppend(&text, text.empty() ? "" : " ", feature);
  return text;
}

struct Seen {
  std::vector<std::string> records;  // Features or errors.
  std::vector<std::optional<size_t>> parts;
  absl::Status status;
};

// A callback that notes what it gets.
auto Into(Seen& seen, const RecordSource& source) {
  return [&](size_t place, const absl::StatusOr<absl::string_view>& payload) {
    EXPECT_EQ(place, seen.records.size());
    seen.records.push_back(payload.ok() ? FeaturesOf(source, *payload)
                                        : payload.status().ToString());
    seen.parts.push_back(PartAtFault(payload.status()));
    return absl::OkStatus();
  };
}

Seen ReadAll(const RecordSource& source, const std::vector<int64_t>& records) {
  Seen seen;
  AlignedBuffer scratch;
  seen.status =
      source.ReadRecords(records, RecordBytes::kCopied, 1 << 20, scratch, Into(seen, source));
  return seen;
}

std::string WithFlippedByte(std::string bytes, size_t at) {
  bytes[at] ^= 1;
  return bytes;
}

TEST(ZipSourceTest, RecordsAreJoinedInAnyOrderAndMayComeTwice) {
  const auto zip =
      Zipped({NumberedShards({9}, 0, "a"), NumberedShards({9}, 100, "b")}, {"", "b/"})[0];
  const Seen seen = ReadAll(*zip, {3, 0, 8, 3});
  EXPECT_THAT(seen.status, IsOk());
  EXPECT_THAT(seen.records, ElementsAre("b/number=103 number=3", "b/number=100 number=0",
                                        "b/number=108 number=8", "b/number=103 number=3"));
  AlignedBuffer scratch;
  for (const int64_t record : {-1, 9}) {
    EXPECT_THAT(zip->ReadRecord(record, scratch),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("9 records")));
  }
}

TEST(ZipSourceTest, ADamagedPartDamagesTheRecordWithThePartsErrorMessage) {
  const std::string good = NumberedBytes(100, 5);
  const auto b = ShardOfBytes(WithFlippedByte(good, good.size() - 6), "b.tfrecord");
  const auto zip = Zipped({NumberedShards({5}, 0, "a"), {b}}, {"", "b/"})[0];
  AlignedBuffer scratch;
  const absl::Status own = b->ReadRecord(4, scratch).status();
  ASSERT_THAT(own, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("b.tfrecord")));
  const Seen seen = ReadAll(*zip, {3, 4, 2});
  EXPECT_THAT(seen.status, IsOk());
  EXPECT_THAT(seen.records,
              ElementsAre("b/number=103 number=3", HasSubstr(std::string(own.message())),
                          "b/number=102 number=2"));
  EXPECT_THAT(seen.parts, ElementsAre(std::nullopt, std::optional<size_t>(1), std::nullopt));
  EXPECT_EQ(IsChecksumMismatch(zip->ReadRecord(4, scratch).status()), IsChecksumMismatch(own));
}

TEST(ZipSourceTest, RecordLimitsApplyToEachPartNotToTheJoinedRecord) {
  // Each record has up to 100 bytes, which is within the limit of 110. A joined record of two such
  // records has more than 110 bytes.
  const ShardOptions options = {.max_record_bytes = 110};
  const auto a = ShardOfBytes(NumberedBytes(0, 7), "a", options);
  const auto b = ShardOfBytes(NumberedBytes(0, 7), "b", {.max_record_bytes = 60});
  const auto fits = Zipped({{a}, {a}}, {"", "b/"})[0];
  EXPECT_FALSE(fits->IsTooLarge(6));
  EXPECT_THAT(ReadAll(*fits, {6}).records, ElementsAre("b/number=6 number=6"));
  const auto zip = Zipped({{a}, {b}}, {"", "b/"})[0];
  EXPECT_TRUE(zip->IsTooLarge(6));
  EXPECT_FALSE(zip->IsTooLarge(0));
  const Seen seen = ReadAll(*zip, {6, 0});
  EXPECT_THAT(seen.records[0], AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("\"b\"")));
  EXPECT_EQ(seen.records[1], "b/number=0 number=0");
}

TEST(ZipSourceTest, AJoinedRecordOverTheZipLimitIsResourceExhausted) {
  ShardBuilder builder;
  builder.Add(std::string(kMaxZipRecordBytes / 8, 'x')).Add("small");
  const auto a = ShardOfBytes(builder.Build(), "a");
  const std::vector<std::string> prefixes = {"", "b/", "c/", "d/", "e/", "f/", "g/", "h/"};
  AlignedBuffer scratch;
  const auto seven =
      Zipped(std::vector<Sources>(7, {a}), {prefixes.begin(), prefixes.begin() + 7})[0];
  EXPECT_THAT(seven->ReadRecord(0, scratch), IsOk());
  const auto eight = Zipped(std::vector<Sources>(8, {a}), prefixes)[0];
  const absl::Status error = eight->ReadRecord(0, scratch).status();
  EXPECT_THAT(error, StatusIs(absl::StatusCode::kResourceExhausted,
                              HasSubstr(absl::StrCat("the limit is ", kMaxZipRecordBytes))));
  EXPECT_EQ(PartAtFault(error), std::optional<size_t>(7));
  EXPECT_LT(scratch.size(), kMaxZipRecordBytes + kMaxZipRecordBytes / 2);
  EXPECT_THAT(eight->ReadRecord(1, scratch), IsOk());
}

TEST(ZipSourceTest, ArrayRowsCanBeZippedWithShards) {
  const TestArrays arrays(5);
  const auto rows = std::make_shared<const ArraySource>(TableOf(arrays));
  const auto zip = Zipped({NumberedShards({2, 3}, 0, "a"), {rows}}, {"", "rows/"});
  ASSERT_EQ(zip.size(), 1u);
  EXPECT_THAT(ReadAll(*zip[0], {3}).records,
              ElementsAre(absl::StrCat("number=3 rows/label=203 rows/pair=", arrays.pairs[6])));
}

// Keeps, for each use, the largest number of bytes that Need() was called with.
class Counted final : public ScratchSource {
 public:
  bool Need(ScratchUse use, int64_t bytes) override {
    most_[use] = std::max(most_[use], bytes);
    return true;
  }
  int64_t most(ScratchUse use) { return most_[use]; }

 private:
  std::map<ScratchUse, int64_t> most_;
};

TEST(ZipSourceTest, TheMemoryOfTheJoinedRecordAndOfItsLargestPartIsCounted) {
  constexpr int64_t kLarge = 3'000'000;
  ShardBuilder builder;
  builder.Add(ExampleBuilder().AddBytes("text", std::string(kLarge, 'x')).Serialize());
  // A source in memory cannot be mapped, so each part is read into a buffer.
  const auto a = ShardOfBytes(builder.Build(), "a");
  const auto zip = Zipped({{a}, {a}}, {"", "b/"})[0];
  Counted counted;
  const ScratchScope scope(counted);
  AlignedBuffer scratch;
  ASSERT_THAT(zip->ReadRecord(0, scratch), IsOk());
  EXPECT_GE(scratch.size(), 2 * kLarge);
  EXPECT_GE(counted.most(ScratchUse::kReads), 3 * kLarge);
  EXPECT_LT(counted.most(ScratchUse::kReads), 3 * kLarge + kLarge / 2 + 10'000);
}

TEST(ZipSourceTest, FetchedBytesServeOnlyTheFarMemberOfAZip) {
  const std::string bytes = NumberedBytes(100, 6);
  const auto gate = std::make_shared<Gate>();
  const auto far = std::make_shared<const TfRecordShard>(
      *TfRecordShard::Create(std::make_unique<GatedSource>(bytes, "far://b", gate, false)));
  const auto zip = Zipped({NumberedShards({6}, 0, "a"), {far}}, {"", "b/"})[0];
  EXPECT_TRUE(zip->is_far());
  EXPECT_EQ(zip->far_bytes(), nullptr);
  EXPECT_EQ(zip->num_parts(), 2u);
  EXPECT_EQ(zip->PartOf(4, 1).source, far.get());
  EXPECT_EQ(zip->PartOf(4, 1).record, 4);
  const int reads = gate->reads();
  Seen seen;
  AlignedBuffer scratch;
  const std::vector<int64_t> records = {5, 1};
  const absl::Status lost = absl::UnavailableError("no server");
  absl::Status error;
  const auto fetched = [&](const ByteSource& source,
                           const RecordSpan& span) -> absl::StatusOr<absl::string_view> {
    EXPECT_EQ(&source, far->far_bytes());
    if (!error.ok()) return error;
    return absl::string_view(bytes).substr(span.offset, span.size);
  };
  EXPECT_THAT(zip->ReadFetched(records, fetched, scratch, Into(seen, *zip)), IsOk());
  EXPECT_THAT(seen.records, ElementsAre("b/number=105 number=5", "b/number=101 number=1"));
  EXPECT_EQ(gate->reads(), reads);
  // The read ends after the first record that fails because of an outage.
  error = lost;
  seen = {};
  const absl::Status end = zip->ReadFetched(records, fetched, scratch, Into(seen, *zip));
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kUnavailable, "no server"));
  EXPECT_THAT(seen.records, ElementsAre(HasSubstr("no server")));
  EXPECT_EQ(PartAtFault(end), std::optional<size_t>(1));
}

}  // namespace
}  // namespace systole
