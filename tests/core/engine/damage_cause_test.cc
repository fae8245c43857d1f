// Each kind of damage counts under its cause, and under no other.
#include "core/dataset/damage_cause.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/cache/value_cache.h"
#include "core/engine/example_maker.h"
#include "core/example/example_builder.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr char kImageOutput[] =
    "outputs { name: 'x' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
    "  transforms { resize { height: 8 width: 8 } } } ";
constexpr char kKeptImageOutput[] =
    "outputs { name: 'x' feature: 'image' dtype: UINT8 cache: MEMORY transforms { decode_jpeg {} } "
    "  transforms { resize { height: 8 width: 8 } } } ";
constexpr char kLabelOutput[] = "outputs { name: 'y' feature: 'label' dtype: INT32 } ";
constexpr char kMappedOutput[] =
    "outputs { name: 'y' feature: 'label' dtype: INT64 "
    "  transforms { label_map { keys: [ 0, 1, 2, 3, 4 ] values: [ 0, 1, 2, 3, 4 ] } } } ";

std::string Record(absl::string_view image, int64_t label) {
  return ExampleBuilder().AddBytes("image", image).AddInt64s("label", {label}).Serialize();
}

// Good records on both sides of record 1.
std::string ShardWith(absl::string_view record) {
  return ShardBuilder().Add(TestRecord(0)).Add(record).Add(TestRecord(2)).Build();
}

std::string WithDamagedByte(size_t byte_in_record) {
  return WithFlippedBit(ShardWith(TestRecord(1)),
                        8 * (ShardBuilder().Add(TestRecord(0)).size() + byte_in_record));
}

struct Case {
  const char* name;
  std::string shard;
  std::string outputs;
  DamageCause cause;
  int64_t max_record_bytes = int64_t{1} << 20;
};
void PrintTo(const Case& damage, std::ostream* out) { *out << damage.name; }

class DamageCauseTest : public testing::TestWithParam<Case> {
 protected:
  std::shared_ptr<Dataset> Open() const {
    absl::StatusOr<TfRecordShard> shard =
        TfRecordShard::Create(std::make_unique<MemorySource>(GetParam().shard, "/data/a.tfrecord"),
                              {.max_record_bytes = GetParam().max_record_bytes});
    EXPECT_THAT(shard, IsOk());
    std::vector<std::unique_ptr<const RecordSource>> shards;
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
    return *Dataset::Create("test", std::move(shards));
  }
};

TEST_P(DamageCauseTest, DamageIsCountedUnderItsCauseAlone) {
  const std::shared_ptr<Dataset> dataset = Open();
  ASSERT_EQ(dataset->num_records(), 3);
  const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText("dataset: 'test' global_batch: 3 num_cores: 1 on_corrupt: MASK " +
                   GetParam().outputs),
      dataset);
  ASSERT_THAT(plan, IsOk());
  const absl::StatusOr<std::unique_ptr<ValueCache>> cache =
      ValueCache::Create({.memory_bytes = 1 << 20});
  ASSERT_THAT(cache, IsOk());
  std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
  ExampleMaker maker;
  maker.KeepIn(cache->get());
  for (int epoch = 0; epoch < 2; ++epoch) {  // Epoch 1 finds the good records in the cache.
    ASSERT_THAT(maker.Make(*plan, epoch, /*core=*/0, 0, 3, slice.data()), IsOk());
  }
  MaskedByCause want = {};
  want[static_cast<size_t>(GetParam().cause)] = 2;
  EXPECT_EQ(dataset->damage().masked_by_cause(), want);
  ASSERT_EQ(dataset->damage().entries().size(), 1u);
  EXPECT_EQ(dataset->damage().entries()[0].record, 1);
  EXPECT_EQ(dataset->damage().entries()[0].kind, GetParam().cause);
}

INSTANTIATE_TEST_SUITE_P(
    Each, DamageCauseTest,
    testing::Values(
        Case{"Payload", WithDamagedByte(12 + 40), kImageOutput, DamageCause::kChecksum},
        Case{"Header", WithDamagedByte(3), kImageOutput, DamageCause::kRecord},
        Case{"Cut",
             ShardBuilder()
                 .Add(TestRecord(0))
                 .AddHeader(1 << 19)
                 .AddRaw(ShardBuilder().Add(TestRecord(2)).Build())
                 .Build(),
             kImageOutput, DamageCause::kRecord},
        Case{"Size", ShardWith(Record(std::string(9000, 'x'), 1)), kImageOutput,
             DamageCause::kTooLarge, /*max_record_bytes=*/8000},
        Case{"NoExample", ShardWith("\xff\xff\xff\xff"), kImageOutput, DamageCause::kFormat},
        Case{"NoImage", ShardWith(ExampleBuilder().AddInt64s("label", {1}).Serialize()),
             kImageOutput, DamageCause::kFeature},
        Case{"NoImageForTheCache", ShardWith(ExampleBuilder().AddInt64s("label", {1}).Serialize()),
             kKeptImageOutput, DamageCause::kFeature},
        Case{"NoLabel", ShardWith(ExampleBuilder().AddBytes("image", TestJpeg(1)).Serialize()),
             kLabelOutput, DamageCause::kFeature},
        Case{"TwoLabels",
             ShardWith(ExampleBuilder()
                           .AddBytes("image", TestJpeg(1))
                           .AddInt64s("label", {1, 2})
                           .Serialize()),
             kLabelOutput, DamageCause::kFeature},
        Case{"NoJpeg", ShardWith(Record("no JPEG", 1)), kImageOutput, DamageCause::kImage},
        Case{"NoJpegForTheCache", ShardWith(Record("no JPEG", 1)), kKeptImageOutput,
             DamageCause::kImage},
        Case{"CutJpeg", ShardWith(Record(TestJpeg(1).substr(0, 200), 1)), kImageOutput,
             DamageCause::kImage},
        Case{"Unmapped", ShardWith(Record(TestJpeg(1), 99)), kMappedOutput, DamageCause::kValue}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace systole
