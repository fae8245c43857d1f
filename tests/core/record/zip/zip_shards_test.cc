#include "core/record/zip/zip_shards.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_parser.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/arrays/array_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/arrays/columns.h"
#include "tests/core/record/zip/zipped.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The numbers of both members in all records.
std::vector<std::pair<int64_t, int64_t>> NumbersIn(const Sources& sources) {
  std::vector<std::pair<int64_t, int64_t>> numbers;
  AlignedBuffer scratch;
  for (const auto& source : sources) {
    for (int64_t i = 0; i < source->num_records(); ++i) {
      const auto record = source->ReadRecord(i, scratch);
      EXPECT_THAT(record, IsOk());
      const auto example = ExampleView::Parse(*record, source->examples());
      EXPECT_THAT(example, IsOk());
      std::vector<int64_t> a(1), b(1);
      EXPECT_THAT(example->Find("number").CopyInt64s(absl::MakeSpan(a)), IsOk());
      EXPECT_THAT(example->Find("b/number").CopyInt64s(absl::MakeSpan(b)), IsOk());
      numbers.emplace_back(a[0], b[0]);
    }
  }
  return numbers;
}

std::vector<int64_t> SizesOf(const Sources& sources) {
  std::vector<int64_t> sizes;
  for (const auto& source : sources) sizes.push_back(source->num_records());
  return sizes;
}

// All ways to cut `records` records into shards.
std::vector<std::vector<int64_t>> Shardings(int64_t records) {
  if (records == 0) return {{}};
  std::vector<std::vector<int64_t>> all;
  for (int64_t first = 1; first <= records; ++first) {
    for (std::vector<int64_t> rest : Shardings(records - first)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

TEST(ZippedShardsTest, AnyTwoShardingsGiveTheSameRecords) {
  constexpr int64_t kRecords = 6;
  std::vector<std::pair<int64_t, int64_t>> want;
  for (int64_t i = 0; i < kRecords; ++i) want.emplace_back(i, 100 + i);
  for (const std::vector<int64_t>& a : Shardings(kRecords)) {
    for (const std::vector<int64_t>& b : Shardings(kRecords)) {
      const Sources zipped =
          Zipped({NumberedShards(a, 0, "a"), NumberedShards(b, 100, "b")}, {"", "b/"});
      EXPECT_EQ(NumbersIn(zipped), want);
      EXPECT_THAT(zipped, SizeIs(1));
    }
  }
}

TEST(ZippedShardsTest, EmptyShardsAreLeftOut) {
  const Sources zipped =
      Zipped({NumberedShards({4, 0, 6}, 0, "a"), NumberedShards({0, 7, 1, 0, 2, 0}, 100, "b")},
             {"", "b/"});
  EXPECT_THAT(SizesOf(zipped), ElementsAre(10));
  EXPECT_EQ(NumbersIn(zipped).back(), std::pair(int64_t{9}, int64_t{109}));
  EXPECT_EQ(zipped[0]->PartOf(7, 1).record, 0);
  EXPECT_EQ(zipped[0]->PartOf(7, 1).source->num_records(), 1);
}

TEST(ZippedShardsTest, ASourceEndsWhereAMemberChangesItsFormat) {
  const TestArrays arrays(3);
  const auto rows = [&] { return std::make_shared<const ArraySource>(TableOf(arrays)); };
  Sources a = NumberedShards({2, 3}, 0, "a");
  a.push_back(rows());  // Records 5 to 7.
  for (const auto& more : NumberedShards({2, 2}, 8, "a")) a.push_back(more);
  Sources b = NumberedShards({1, 3}, 100, "b");
  b.push_back(rows());  // Records 4 to 6.
  for (const auto& more : NumberedShards({5}, 107, "b")) b.push_back(more);
  const std::vector<std::string> prefixes = {"", "b/"};
  const Sources zipped = Zipped({a, b}, prefixes);
  EXPECT_THAT(SizesOf(zipped), ElementsAre(4, 1, 2, 1, 4));
  AlignedBuffer scratch;
  int64_t number = 0;
  for (const auto& source : zipped) {
    for (int64_t i = 0; i < source->num_records(); ++i, ++number) {
      const auto record = source->ReadRecord(i, scratch);
      ASSERT_THAT(record, IsOk());
      const auto example = ExampleView::Parse(*record, source->examples());
      ASSERT_THAT(example, IsOk());
      std::vector<int64_t> got(1);
      const bool in_rows = number >= 5 && number < 8;
      EXPECT_THAT(example->Find(in_rows ? "label" : "number").CopyInt64s(absl::MakeSpan(got)),
                  IsOk());
      EXPECT_EQ(got[0], in_rows ? arrays.labels[static_cast<size_t>(number - 5)] : number);
      const bool b_in_rows = number >= 4 && number < 7;
      EXPECT_THAT(example->Find(b_in_rows ? "b/label" : "b/number").CopyInt64s(absl::MakeSpan(got)),
                  IsOk());
    }
  }
  const auto names = std::make_shared<const ZipNames>(std::vector<ZipNamesOfMember>(
      {{.dataset = "a", .prefix = ""}, {.dataset = "b", .prefix = "b/"}}));
  EXPECT_THAT(ZippedShards({ZipMemberOf(a), ZipMemberOf(b)}, names, /*max_sources=*/5),
              IsOkAndHolds(SizeIs(5)));
  EXPECT_THAT(ZippedShards({ZipMemberOf(a), ZipMemberOf(b)}, names, /*max_sources=*/4),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("more than 3 times"), HasSubstr("shards of one kind"))));
}

// A source of `source`'s records that counts the calls of content_hash().
class Asked final : public RecordSource {
 public:
  explicit Asked(std::shared_ptr<const RecordSource> source) : source_(std::move(source)) {}

  int64_t asked() const { return asked_; }

  absl::string_view path() const override { return source_->path(); }
  uint64_t file_bytes() const override { return source_->file_bytes(); }
  uint64_t size_bytes() const override { return source_->size_bytes(); }
  const std::string& note() const override { return source_->note(); }
  const ExampleFormat& examples() const override { return source_->examples(); }
  int64_t num_records() const override { return source_->num_records(); }
  RecordSpan span(int64_t record) const override { return source_->span(record); }
  PayloadRange payload_bytes() const override { return source_->payload_bytes(); }
  uint64_t content_hash() const override {
    ++asked_;
    return source_->content_hash();
  }
  int64_t num_damaged() const override { return source_->num_damaged(); }
  const std::vector<DamagedRecord>& damaged() const override { return source_->damaged(); }
  absl::StatusOr<absl::string_view> ReadRecord(int64_t record,
                                               AlignedBuffer& scratch) const override {
    return source_->ReadRecord(record, scratch);
  }
  absl::Status ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                           int64_t max_read_bytes, AlignedBuffer& scratch,
                           RecordCallback callback) const override {
    return source_->ReadRecords(records, bytes, max_read_bytes, scratch, callback);
  }
  bool IsTooLarge(int64_t record) const override { return source_->IsTooLarge(record); }
  void PrefetchSpan(int64_t /*record*/) const override {}
  void Prefetch(int64_t /*record*/) const override {}
  absl::Status CheckUnchanged() const override { return source_->CheckUnchanged(); }
  absl::Status CheckHoldsRecords() const override { return source_->CheckHoldsRecords(); }

 private:
  const std::shared_ptr<const RecordSource> source_;
  mutable int64_t asked_ = 0;
};

TEST(ZippedShardsTest, HoweverManySourcesThereAreEachShardIsHashedOnce) {
  const TestArrays arrays(3);
  std::vector<std::shared_ptr<const Asked>> shards;
  for (int i = 0; i < 10; ++i) {
    shards.push_back(std::make_shared<const Asked>(
        i % 2 == 0 ? NumberedShards({3}, 0, "a")[0]
                   : std::make_shared<const ArraySource>(TableOf(arrays))));
  }
  const Sources zipped =
      Zipped({{shards.begin(), shards.end()}, NumberedShards({30}, 100, "b")}, {"", "b/"});
  EXPECT_THAT(zipped, SizeIs(10));
  for (const auto& shard : shards) EXPECT_EQ(shard->asked(), 1);
}

TEST(ZippedShardsTest, TheHashChangesWithContentRangePrefixAndOrderAlone) {
  const auto hash = [](const Sources& a, const Sources& b, const std::string& prefix) {
    return Zipped({a, b}, {"", prefix}).front()->content_hash();
  };
  const Sources a = NumberedShards({5}, 0, "a");
  const Sources b = NumberedShards({5}, 100, "b");
  const uint64_t same = hash(a, b, "b/");
  EXPECT_EQ(hash(NumberedShards({5}, 0, "other"), b, "b/"), same);
  EXPECT_NE(hash(a, b, "c/"), same);
  EXPECT_NE(hash(b, a, "b/"), same);
  EXPECT_NE(hash(a, NumberedShards({5}, 101, "b"), "b/"), same);
  EXPECT_NE(hash(a, NumberedShards({2, 3}, 100, "b"), "b/"), same);
}

}  // namespace
}  // namespace systole
