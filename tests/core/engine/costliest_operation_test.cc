// Tests which operation of a feed counts as the costliest. The test sets the clock that times the
// operations.
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/batch/slice_layout.h"
#include "core/cache/value_cache.h"
#include "core/engine/example_maker.h"
#include "core/plan/feed_plan.h"
#include "core/plan/output_costs.h"
#include "core/spec/transform_name.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;

// Makes the first example of a feed `times` times. The clock moves only once: just before it is
// read for the `moment`-th time. Returns the costliest output and the costliest operation of this
// output, as "output: operation". Sets `asked` to the number of times that the clock was read.
std::string CostliestIf(const std::string& outputs, bool caches, int times, int moment,
                        int& asked) {
  const auto dataset = OpenTestDataset(TestShards({16}));
  const v1::FeedSpec spec =
      SpecFromText(absl::StrCat("dataset: 'test' global_batch: 16 num_cores: 1 ", outputs));
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(spec, dataset);
  EXPECT_THAT(plan, IsOk());
  absl::StatusOr<std::unique_ptr<ValueCache>> cache =
      ValueCache::Create({.memory_bytes = int64_t{64} << 20});
  EXPECT_THAT(cache, IsOk());
  asked = 0;
  ExampleMaker maker(nullptr, [&asked, moment] {
    return ++asked < moment ? absl::ZeroDuration() : absl::Seconds(1);
  });
  if (caches) maker.KeepIn(cache->get());
  std::vector<uint8_t> slice(static_cast<size_t>((*plan)->layout().slice_bytes()));
  for (int i = 0; i < times; ++i) {
    EXPECT_THAT(maker.Make(*plan, /*step=*/0, /*core=*/0, 0, 1, slice.data()), IsOk());
  }
  const OutputCosts::Costliest most = (*plan)->output_costs().Find();
  if (most.output < 0) return "";
  const std::string output = spec.outputs(most.output).name();
  return absl::StrCat(output, ": ", TransformName(spec, output, most.transform));
}

// The results of CostliestIf() for every moment at which the clock can move.
std::set<std::string> Measured(const std::string& outputs, bool caches = false, int times = 1) {
  std::set<std::string> found;
  int asked = 0;
  int moment = 0;
  do {
    found.insert(CostliestIf(outputs, caches, times, ++moment, asked));
  } while (moment < asked);
  return found;
}

TEST(CostliestOperationTest, EachOperationIsFoundIfAllTimePassesInIt) {
  constexpr char kLabel[] = "outputs { name: 'label' feature: 'label' dtype: INT32 } ";
  // decode_jpeg is timed by itself. The other transforms are done in one pass, whose time counts
  // for the resize.
  constexpr char kImage[] =
      "outputs { name: 'image' feature: 'image' dtype: UINT8 transforms { decode_jpeg {} } "
      "  transforms { resize { height: 4 width: 4 } } transforms { random_flip {} } } ";
  // decode_raw and resize are done in one pass. Then contrast runs row by row, and rot90 runs
  // alone.
  constexpr char kRaw[] =
      "outputs { name: 'raw' feature: 'raw' shape: [2, 2, 3] dtype: FLOAT32 "
      "  transforms { decode_raw {} } transforms { resize { height: 60 width: 60 } } "
      "  transforms { contrast { factor_max: 2 } } transforms { rot90 { k: 1 } } } ";
  EXPECT_THAT(Measured(kImage), ElementsAre("image: ", "image: decode_jpeg", "image: resize"));
  EXPECT_THAT(Measured(absl::StrCat(kLabel, kImage, kRaw)),
              ElementsAre("", "image: ", "image: decode_jpeg", "image: resize",
                          "label: ", "raw: ", "raw: contrast", "raw: resize", "raw: rot90"));
  // Outputs whose values are not images.
  EXPECT_THAT(Measured("outputs { name: 'class' feature: 'label' dtype: FLOAT32 "
                       "  transforms { one_hot { depth: 5 } } } "),
              ElementsAre("class: ", "class: one_hot"));
  EXPECT_THAT(Measured(absl::StrCat(kLabel,
                                    "outputs { name: 'path' feature: 'path' shape: 3 "
                                    "dtype: FLOAT32 }")),
              ElementsAre("", "label: ", "path: "));
  EXPECT_THAT(Measured(kLabel), ElementsAre("label: "));
}

TEST(CostliestOperationTest, OperationsAroundACachedValueAreNamedAsInTheSpec) {
  const std::string outputs =
      "outputs { name: 'image' feature: 'image' dtype: FLOAT32 cache: MEMORY "
      "  transforms { decode_jpeg {} } transforms { resize { height: 60 width: 60 } } "
      "  transforms { round_to_uint8 {} } transforms { random_crop { height: 40 width: 40 } } "
      "  transforms { normalize { scale: 0.01 } } transforms { hue { delta_max: 0.5 } } }";
  EXPECT_THAT(Measured(outputs),
              ElementsAre("image: ", "image: decode_jpeg", "image: hue", "image: normalize",
                          "image: random_crop", "image: resize"));
  // The example is made twice. The first time, the value for the cache is made (up to
  // round_to_uint8). The second time, this value is found in the cache, and one pass crops and
  // normalises it.
  EXPECT_THAT(Measured(outputs, /*caches=*/true, /*times=*/2),
              ElementsAre("image: ", "image: decode_jpeg", "image: hue", "image: normalize",
                          "image: resize", "image: round_to_uint8"));
}

}  // namespace
}  // namespace systole
