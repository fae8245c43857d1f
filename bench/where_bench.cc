// Measures a spec's `where` over 10 million records: how fast the pass over their columns is, and
// how fast a chosen record is found.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/column/shard_columns.h"
#include "core/dataset/dataset_columns.h"
#include "core/example/tensorflow_example.h"
#include "core/order/order.h"
#include "core/order/record_list.h"
#include "core/record/source/deferred_shard.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"

namespace systole {
namespace {

constexpr int kShards = 64;
constexpr int64_t kRecordsPerShard = 156'288;  // A multiple of 64; 10,002,432 in all shards.

// Shards for which only the columns are made, not the records: `label`, with values from 0 to 999,
// and `width`, which a third of the records lack.
class Shards {
 public:
  Shards() {
    std::string pattern = (std::filesystem::temp_directory_path() / "systole-XXXXXX").string();
    SYSTOLE_CHECK(mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    for (int i = 0; i < kShards; ++i) {
      const auto hash = static_cast<uint64_t>(i);
      shards_.push_back(std::make_shared<DeferredShard>(
          std::make_unique<MemorySource>("", absl::StrCat("/", i)),
          ShardFacts{.identity = "x", .records = kRecordsPerShard, .content_hash = hash},
          TensorFlowExample(), nullptr));
      for (const Column& column : Columns(i * kRecordsPerShard)) {
        SYSTOLE_CHECK(KeepColumn(*shards_.back(), column, folder_, /*write_index=*/false).ok());
      }
    }
  }
  ~Shards() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  RecordList Where(const Condition& condition) const {
    std::set<std::string> found;
    const auto bits =
        DatasetColumns(folder_, false).RecordsThatMeet(shards_, condition, kLookUpBytes, found);
    SYSTOLE_CHECK(bits.ok());
    std::vector<uint64_t> all;
    for (const std::vector<uint64_t>& shard : *bits)
      all.insert(all.end(), shard.begin(), shard.end());
    return RecordList(std::move(all), kShards * kRecordsPerShard);
  }

 private:
  static std::vector<Column> Columns(int64_t first) {
    Column label = {
        .feature = "label", .num_records = kRecordsPerShard, .facts = {.first_int64 = 0}};
    label.length = 1;
    Column width = {
        .feature = "width", .num_records = kRecordsPerShard, .facts = {.first_float = 0}};
    for (int64_t i = first; i < first + kRecordsPerShard; ++i) {
      label.int64s.push_back(i * 7919 % 1000);
      width.lengths.push_back(i % 3 == 0 ? kAbsentFeature : 1);
      width.floats.push_back(static_cast<float>(i % 4096));
    }
    return {std::move(label), std::move(width)};
  }

  std::string folder_;
  std::vector<std::shared_ptr<const RecordSource>> shards_;
};

const Condition& OneLabelLess() {
  static const Condition condition = {.field = "where", .feature = "label", .not_in = {3}};
  return condition;
}

// A record fulfils this condition if its label is one of 500 of the 1,000 labels, and its width is
// in a range.
const Condition& Joined() {
  static const Condition* const condition = [] {
    Condition labels = {.field = "where.all[0]", .feature = "label"};
    for (int i = 0; i < 1000; i += 2) labels.in.push_back(i);
    return new Condition{
        .field = "where",
        .all = true,
        .parts = {
            std::move(labels),
            {.field = "where.all[1]", .feature = "width", .less = 3000, .greater_equal = 17}}};
  }();
  return *condition;
}

void BM_Where(benchmark::State& state) {
  const Shards shards;
  const bool joined = state.range(0) != 0;
  const Condition& condition = joined ? Joined() : OneLabelLess();
  for (auto _ : state) {
    const auto samples =
        bench::TakeTurns({[&] {
                            bench::Sample sample = bench::Measure(0, [&] {
                              const RecordList list = shards.Where(condition);
                              benchmark::DoNotOptimize(list);
                            });
                            return bench::Sample{.amount = sample.seconds, .seconds = 1};
                          },
                          [] { return bench::Sample{.amount = 1, .seconds = 1}; }});
    bench::ReportRow(
        state, "seconds",
        {.figure = absl::StrCat("`where` over 10,002,432 records, ",
                                joined ? "500 labels and a range" : "not_in one label"),
         .ceiling = "one second",
         .unit = "s",
         .wanted = 1,
         .bound = bench::Bound::kAtMost},
        samples[0], samples[1]);
  }
}
BENCHMARK(BM_Where)->ArgName("joined")->Arg(0)->Arg(1)->Iterations(1);

// Returns the seconds that it takes to find the places of `steps` steps.
double Places(const Order& order, int64_t steps) {
  std::vector<Place> places(static_cast<size_t>(order.spec().global_batch));
  return bench::Measure(0,
                        [&] {
                          for (int64_t step = 0; step < steps; ++step) {
                            order.PlacesOf(step * 997, 0, absl::MakeSpan(places));
                            benchmark::DoNotOptimize(places.data());
                          }
                        })
      .seconds;
}

void BM_PlacesWhere(benchmark::State& state) {
  const Shards shards;
  const auto list = std::make_shared<const RecordList>(shards.Where(Joined()));
  absl::StatusOr<Selection> selection =
      Selection::Create({kShards * kRecordsPerShard}, {ListedRecords{list}});
  SYSTOLE_CHECK(selection.ok());
  const auto order = [&](std::shared_ptr<const Selection> selected) {
    return *Order::Create({.seed = 1,
                           .num_records = list->size(),
                           .selection = std::move(selected),
                           .global_batch = 1024,
                           .epochs = 0});
  };
  const Order all = order(nullptr);
  const Order chosen = order(std::make_shared<const Selection>(*std::move(selection)));
  const int64_t steps = bench::ScaledWork(2000);
  for (auto _ : state) {
    const auto samples = bench::TakeTurns(
        {[&] { return bench::Sample{.amount = Places(chosen, steps), .seconds = 1}; },
         [&] { return bench::Sample{.amount = Places(all, steps), .seconds = 1}; }});
    bench::ReportRow(state, "ratio",
                     {.figure = "records of a step, shuffled, of a `where` over 10 million",
                      .ceiling = "the same without a `where`",
                      .unit = "s",
                      .wanted = 4,
                      .bound = bench::Bound::kAtMost},
                     samples[0], samples[1]);
  }
}
BENCHMARK(BM_PlacesWhere)->Iterations(1);

}  // namespace
}  // namespace systole
