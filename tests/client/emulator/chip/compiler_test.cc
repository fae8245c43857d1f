#include "client/emulator/chip/compiler.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ChipProgram Compiled(const Model& model, const v1::Chip& chip, const CompileOptions& options) {
  absl::StatusOr<ChipProgram> program = CompileProgram(model, chip, options);
  EXPECT_THAT(program, IsOk());
  return program.ok() ? *std::move(program) : ChipProgram();
}

std::vector<std::string> OpNames(const ChipProgram& program) {
  std::vector<std::string> names;
  for (const Op& op : program.ops) names.push_back(op.name);
  return names;
}

const Op& Find(const ChipProgram& program, absl::string_view name) {
  for (const Op& op : program.ops) {
    if (op.name == name) return op;
  }
  ADD_FAILURE() << "no op " << name;
  return program.ops.front();
}

Model Mlp() {
  return ToyModel(
      "6",
      "layers { name: \"hidden\" dense { units: 8 } } layers { name: \"relu\" relu {} } "
      "layers { name: \"classes\" dense { units: 3 } }");
}

// The published sums for ResNet-50 at 128 images a core are 116.06 million cycles and 106.0 ms of
// memory on v2, and 58.06 million cycles and 82.4 ms of memory on v3. The compiler counts 0.4 %
// fewer cycles than these sums, because it counts a strided convolution's phases exactly.
TEST(CompilerTest, ResNet50TakesTheKnownCyclesAndBytes) {
  const Model model = ShippedModel("resnet50");
  const ChipProgram v2 =
      Compiled(model, ShippedChip("v2"), {.per_core_batch = 128, .slice = "v2-8"});
  EXPECT_NEAR(static_cast<double>(v2.step.cycles) / 116.06e6, 1, 0.005);
  EXPECT_NEAR(v2.step.utilisation, 0.82, 0.005);
  EXPECT_NEAR(v2.step.memory_s / 0.1060, 1, 0.002);
  EXPECT_NEAR(v2.step.memory_bytes / 128 / 290e6, 1, 0.001);
  const ChipProgram v3 =
      Compiled(model, ShippedChip("v3"), {.per_core_batch = 128, .slice = "v3-8"});
  EXPECT_NEAR(static_cast<double>(v3.step.cycles) / 58.06e6, 1, 0.005);
  EXPECT_NEAR(v3.step.memory_s / 0.0824, 1, 0.002);
}

// The known rates, in images/s, are 3768 on v2 and 7101 on v3 without overlap. With full overlap
// they are 6176 on v2 and 12422 on v3. These rates leave out the all-reduce, which is 0.4 % of a
// step on v3.
TEST(CompilerTest, ResNet50RunsAtTheKnownRates) {
  const struct {
    const char* chip;
    double sum, overlapped;
  } cases[] = {{"v2", 3768, 6176}, {"v3", 7101, 12422}};
  const Model model = ShippedModel("resnet50");
  for (const auto& c : cases) {
    const v1::Chip chip = ShippedChip(c.chip);
    const ChipProgram sum = Compiled(model, chip, {.per_core_batch = 128});
    EXPECT_EQ(sum.cores, 8);
    EXPECT_NEAR(sum.examples_per_s() / c.sum, 1, 0.01) << c.chip;
    const ChipProgram overlapped = Compiled(model, chip, {.per_core_batch = 128, .overlap = 1});
    EXPECT_NEAR(overlapped.examples_per_s() / c.overlapped, 1, 0.015) << c.chip;
  }
}

// An image is 224 * 224 * 3 bfloat16. The feed must bring as many images a second as the slice
// trains.
TEST(CompilerTest, RequiredFeedRateMatchesTheSlicesExampleRate) {
  const ChipProgram v2 =
      Compiled(ShippedModel("resnet50"), ShippedChip("v2"), {.per_core_batch = 128});
  EXPECT_DOUBLE_EQ(v2.infeed.useful_bytes, 128 * 224. * 224 * 3 * 2);
  EXPECT_DOUBLE_EQ(v2.infeed.padded_bytes, 128 * 224. * 224 * 8 * 2);  // 3 channels padded to 8.
  EXPECT_NEAR(v2.feed_bytes_per_s(), v2.examples_per_s() * 224 * 224 * 3 * 2, 1);
  EXPECT_NEAR(v2.feed_bytes_per_s() / 1.13e9, 1, 0.01);
  // The two cores of a chip share a link of 16 GB/s to the host.
  EXPECT_DOUBLE_EQ(v2.infeed.seconds, 2 * v2.infeed.padded_bytes / 16e9);
}

TEST(CompilerTest, OperationsStandInTheOrderOfAStep) {
  EXPECT_THAT(
      OpNames(Compiled(Mlp(), ToyChip(), {.per_core_batch = 5})),
      ElementsAre("infeed", "hidden forward", "classes forward", "loss", "classes weight gradient",
                  "classes input gradient", "hidden weight gradient",
                  "gradients of the chip's cores", "gradients", "update"));
}

// The costs are worked out by hand, in microseconds. A core has a 4 x 4 array at 1 MHz, memory at
// 1 byte/us, and a vector unit of 16 operations/us.
TEST(CompilerTest, AnMlpCostsWhatTheFormulasSay) {
  const ChipProgram program = Compiled(Mlp(), ToyChip(), {.per_core_batch = 5});
  const struct {
    const char* op;
    int64_t tiles, cycles;
    double bytes, vector_us;
  } cases[] = {
      // [5,6]*[6,8]: 4 + 3 * 5 + 5 + 6 cycles; 60 + 80 + 96 bytes; 3 vector operations (cast, bias,
      // relu) on each of 40 values.
      {"hidden forward", 4, 30, 236, 7.5},
      {"classes forward", 2, 20, 158, 2},
      {"loss", 0, 0, 120, 6},
      // [8,5]*[5,3] would take 26 cycles. The transposed product, [3,5]*[5,8], takes only
      // 4 + 3 * 4 + 3 + 6 cycles.
      {"classes weight gradient", 4, 25, 206, 2},
      {"classes input gradient", 2, 20, 158, 0},
      {"hidden weight gradient", 4, 34, 332, 7.5},
      {"update", 0, 0, 996, 11},  // 83 parameters, 12 bytes each
  };
  for (const auto& c : cases) {
    const Op& op = Find(program, c.op);
    EXPECT_EQ(op.tiles, c.tiles) << c.op;
    EXPECT_EQ(op.cycles, c.cycles) << c.op;
    EXPECT_NEAR(op.matrix_s * 1e6, static_cast<double>(c.cycles), 1e-9) << c.op;
    EXPECT_DOUBLE_EQ(op.bytes, c.bytes) << c.op;
    EXPECT_NEAR(op.memory_s * 1e6, c.bytes, 1e-9) << c.op;
    EXPECT_NEAR(op.vector_s * 1e6, c.vector_us, 1e-9) << c.op;
  }
  // There are 332 bytes of gradients. The sum over the chip's two cores moves these bytes three
  // times, at 2 bytes/us, the rate of the memory of both cores. After that, the gradients are
  // summed around a ring of two chips, at 2 bytes/us.
  EXPECT_NEAR(program.step.core_sum_s * 1e6, 498, 1e-9);
  EXPECT_NEAR(program.step.all_reduce_s * 1e6, 166, 1e-9);
  EXPECT_EQ(program.step.cycles, 129);
  EXPECT_NEAR(program.step.memory_s * 1e6, 2206, 1e-9);
  EXPECT_NEAR(program.step.seconds * 1e6, 129 + 2206 + 498 + 166, 1e-9);
  EXPECT_DOUBLE_EQ(program.step.utilisation, 840. / (129 * 16));
  EXPECT_EQ(program.global_batch(), 20);
  EXPECT_NEAR(program.examples_per_s(), 20 / 2999e-6, 1e-6);
}

TEST(CompilerTest, ARowAddsUpForwardAndBackwardOfFusedLayers) {
  const ChipProgram program = Compiled(Mlp(), ToyChip(), {.per_core_batch = 5});
  ASSERT_EQ(program.layers.size(), 2u);
  const LayerCost& hidden = program.layers[0];
  EXPECT_EQ(hidden.name, "hidden");
  EXPECT_EQ(hidden.kind, "dense");
  EXPECT_THAT(hidden.fused, ElementsAre("relu"));
  EXPECT_EQ(hidden.gemm.m, 5);
  EXPECT_EQ(hidden.gemm.k, 6);
  EXPECT_EQ(hidden.gemm.n, 8);
  EXPECT_EQ(hidden.cycles, 30 + 34);
  EXPECT_DOUBLE_EQ(hidden.flops, 2 * 480);
  EXPECT_DOUBLE_EQ(hidden.memory_bytes, 236 + 332);
  EXPECT_NEAR(hidden.seconds * 1e6, 64 + 568, 1e-9);
  EXPECT_DOUBLE_EQ(hidden.flops_per_byte(), 960. / 568);
  EXPECT_EQ(hidden.bound, Bound::kMemory);
}

TEST(CompilerTest, OverlapHidesTheShorterOfMatrixAndMemory) {
  const ChipProgram half = Compiled(Mlp(), ToyChip(), {.per_core_batch = 5, .overlap = 0.5});
  EXPECT_NEAR(half.step.compute_s * 1e6, 2206 + 129 / 2., 1e-9);
  v1::Chip chip = ToyChip();
  chip.set_overlap(1);
  const ChipProgram full = Compiled(Mlp(), chip, {.per_core_batch = 5});
  EXPECT_NEAR(full.step.compute_s * 1e6, 2206, 1e-9);
  EXPECT_EQ(full.overlap, 1);
}

TEST(CompilerTest, OneChipOfOneCoreHasNothingToSum) {
  v1::Chip chip = ToyChip();
  chip.set_cores(1);
  const ChipProgram program = Compiled(Mlp(), chip, {.per_core_batch = 5, .slice = "one"});
  EXPECT_EQ(program.cores, 1);
  EXPECT_EQ(program.step.core_sum_s, 0);
  EXPECT_EQ(program.step.all_reduce_s, 0);
}

TEST(CompilerTest, InferenceIsTheForwardPassAlone) {
  const ChipProgram program = Compiled(Mlp(), ToyChip(), {.per_core_batch = 5, .training = false});
  EXPECT_THAT(OpNames(program), ElementsAre("infeed", "hidden forward", "classes forward"));
  EXPECT_NEAR(program.step.seconds * 1e6, 30 + 236 + 20 + 158, 1e-9);
}

Model ConvNet() {
  return ToyModel("4, 4, 3",
                  "layers { name: \"conv\" conv2d { filters: 4 } } "
                  "layers { name: \"norm\" batch_norm {} } layers { flatten {} } "
                  "layers { name: \"classes\" dense { units: 2 } }");
}

// The statistics of a channel are two f32, so the statistics of 4 channels are 32 bytes. Their
// all-reduce around a ring of two chips takes 16 us, once forward and once backward.
TEST(CompilerTest, BatchNormAllReducesItsStatisticsUnlessTheyAreLocal) {
  const Model global = ConvNet();
  const ChipProgram summed = Compiled(global, ToyChip(), {.per_core_batch = 2});
  EXPECT_NEAR(Find(summed, "norm statistics forward").transfer_s * 1e6, 16, 1e-9);
  EXPECT_NEAR(summed.step.norm_all_reduce_s * 1e6, 32, 1e-9);
  Model local = global;
  local.layers[1].local_statistics = true;
  const ChipProgram alone = Compiled(local, ToyChip(), {.per_core_batch = 2});
  EXPECT_EQ(alone.step.norm_all_reduce_s, 0);
  EXPECT_NEAR((summed.step.seconds - alone.step.seconds) * 1e6, 32, 1e-9);
  EXPECT_EQ(
      Compiled(global, ToyChip(), {.per_core_batch = 2, .training = false}).step.norm_all_reduce_s,
      0);
}

// y, the layer's output, is 2 examples of 4 x 4 x 4 in bfloat16, which are 256 bytes. The layer
// moves 2y forward and 5y backward.
TEST(CompilerTest, BatchNormHasTheHandComputedBytesAndVectorTimes) {
  const ChipProgram program = Compiled(ConvNet(), ToyChip(), {.per_core_batch = 2});
  EXPECT_DOUBLE_EQ(Find(program, "norm forward").bytes, 2 * 256);
  EXPECT_DOUBLE_EQ(Find(program, "norm backward").bytes, 5 * 256);
  // The vector unit does 2 operations/us on each of its 8 lanes, and 128 elements are 16 rows of
  // lanes. The convolution casts each element (1 operation), and adds the element to the norm's
  // statistics (2 operations).
  EXPECT_NEAR(Find(program, "conv forward").vector_s * 1e6, 16 * (1 + 2) / 2., 1e-9);
  EXPECT_NEAR(Find(program, "norm forward").vector_s * 1e6, 16 * 2 / 2., 1e-9);
  EXPECT_NEAR(Find(program, "norm backward").vector_s * 1e6, 16 * 8 / 2., 1e-9);
}

// In training, the pass before a batch norm computes the norm's statistics. The first norm has no
// pass before it, so the first norm's own pass computes its statistics. This pass moves 3y, where y
// is the layer's output of 256 bytes. It also computes the statistics of the second norm. So for
// each element it has 2 operations for each norm's statistics, and 2 to normalize. 128 elements are
// 16 rows of lanes.
TEST(CompilerTest, ABatchNormThatBeginsARowTakesItsOwnStatistics) {
  const ChipProgram program =
      Compiled(ToyModel("4, 4, 4",
                        "layers { name: \"first\" batch_norm {} } layers { name: \"second\" "
                        "batch_norm {} } layers { flatten {} } layers { dense { units: 2 } }"),
               ToyChip(), {.per_core_batch = 2});
  EXPECT_DOUBLE_EQ(Find(program, "first forward").bytes, 3 * 256);
  EXPECT_DOUBLE_EQ(Find(program, "second forward").bytes, 2 * 256);
  EXPECT_NEAR(Find(program, "first forward").vector_s * 1e6, 16 * (2 + 2 + 2) / 2., 1e-9);
  EXPECT_NEAR(Find(program, "second forward").vector_s * 1e6, 16 * 2 / 2., 1e-9);
}

// A layer's output is 256 bytes. The norm has parameters to learn, so the norm runs backwards,
// although nothing needs the gradient of its input. The pool has no parameters, so it does not run
// backwards.
TEST(CompilerTest, AFirstRowWithoutProductsRunsBackwardsIfItHasParameters) {
  const ChipProgram norm = Compiled(ToyModel("4, 4, 4",
                                             "layers { name: \"norm\" layer_norm {} } layers { "
                                             "flatten {} } layers { dense { units: 2 } }"),
                                    ToyChip(), {.per_core_batch = 2});
  EXPECT_DOUBLE_EQ(Find(norm, "norm forward").bytes, 2 * 256);
  EXPECT_DOUBLE_EQ(Find(norm, "norm backward").bytes, 3 * 256);
  const ChipProgram pool = Compiled(ToyModel("4, 4, 4",
                                             "layers { name: \"pool\" max_pool {} } layers { "
                                             "flatten {} } layers { dense { units: 2 } }"),
                                    ToyChip(), {.per_core_batch = 2});
  EXPECT_THAT(OpNames(pool), Contains("pool forward"));
  EXPECT_THAT(OpNames(pool), Not(Contains("pool backward")));
}

// A row is a layer with the layers that are fused into it. Training holds 83 parameters in f32 (332
// bytes), as many gradients (332 bytes), two infeeds of 60 bytes, and the outputs of two rows (80
// and 30 bytes). Inference holds the parameters, the two infeeds, and the largest row's input and
// output (60 + 80 bytes).
TEST(CompilerTest, MemoryHoldsParametersActivationsAndTwoInfeeds) {
  CompileOptions options = {.per_core_batch = 5, .layout = InfeedLayout::kNhwc};
  EXPECT_DOUBLE_EQ(Compiled(Mlp(), ToyChip(), options).needed_memory_bytes,
                   332 + 332 + 2 * 60 + 80 + 30);
  EXPECT_DOUBLE_EQ(Compiled(Mlp(), ToyChip(), options).memory_bytes, 1e6);
  options.training = false;
  EXPECT_DOUBLE_EQ(Compiled(Mlp(), ToyChip(), options).needed_memory_bytes, 332 + 2 * 60 + 140);
}

// There are 5 examples, with 4 positions and 2 heads of 3 channels. The scores of a head are 4 x 4
// f32, which are 64 bytes. The scores fit into half of a vector memory of 1,024 bytes, but not into
// half of a vector memory of 100 bytes.
TEST(CompilerTest, AttentionKeepsItsScoresOnTheChipIfTheyFit) {
  const Model model = ToyModel("4, 18",
                               "layers { name: \"attention\" attention { heads: 2 } } "
                               "layers { average_pool { global: true } } layers { flatten {} } "
                               "layers { dense { units: 2 } }");
  const auto forward_bytes = [&](const v1::Chip& chip, bool training) {
    double bytes = 0;
    const ChipProgram program = Compiled(model, chip, {.per_core_batch = 5, .training = training});
    for (const Op& op : program.ops) {
      if (op.name == "attention forward") bytes += op.bytes;
    }
    return bytes;
  };
  constexpr double kInOut = 5 * 4 * (18 + 6) * 2, kScores = 5 * 2 * 16 * 2;
  v1::Chip chip = ToyChip();
  EXPECT_DOUBLE_EQ(forward_bytes(chip, /*training=*/false), kInOut);
  EXPECT_DOUBLE_EQ(forward_bytes(chip, /*training=*/true), kInOut + kScores);
  chip.set_vector_memory_bytes_per_core(100);
  EXPECT_DOUBLE_EQ(forward_bytes(chip, /*training=*/true), kInOut + 4 * kScores);
}

TEST(CompilerTest, ATransformerBlockHasTheExpectedAttentionFlops) {
  const ChipProgram program = Compiled(ShippedModel("transformer-block"), ShippedChip("v5e"),
                                       {.per_core_batch = 64, .slice = "v5e-8"});
  ASSERT_EQ(program.layers.size(), 8u);
  const LayerCost& attention = program.layers[2];
  EXPECT_EQ(attention.kind, "attention");
  EXPECT_EQ(attention.repeats, 64 * 12);
  // There are 2 matrix products forward and 4 backward. Each product has 196 * 64 * 196
  // multiply-accumulates, which are 2 flops each.
  EXPECT_DOUBLE_EQ(attention.flops, 6 * 2. * 196 * 64 * 196 * 64 * 12);
  EXPECT_GT(attention.utilisation, 0);
  EXPECT_LT(program.step.utilisation, 1);
}

TEST(CompilerTest, EveryShippedModelCompilesForEveryShippedChip) {
  for (const ShippedFile& model_file : ShippedModels()) {
    const Model model = ShippedModel(std::string(model_file.name));
    for (const ShippedFile& chip_file : ShippedChips()) {
      const v1::Chip chip = ShippedChip(std::string(chip_file.name));
      for (const v1::Slice& slice : chip.slices()) {
        const ChipProgram program =
            Compiled(model, chip, {.per_core_batch = 16, .slice = slice.name()});
        const StepCost& step = program.step;
        EXPECT_TRUE(std::isfinite(step.seconds) && step.seconds > 0);
        EXPECT_GT(step.utilisation, 0);
        EXPECT_LE(step.utilisation, 1);
        double row_seconds = 0;
        for (const LayerCost& layer : program.layers) row_seconds += layer.seconds;
        EXPECT_LE(row_seconds, step.compute_s * (1 + 1e-12));
        // No layer is above the roofline.
        for (const LayerCost& layer : program.layers) {
          EXPECT_LE(layer.flops_per_s(), program.peak_flops) << layer.name;
          EXPECT_LE(layer.flops_per_s(),
                    layer.flops_per_byte() * program.memory_bytes_per_s * (1 + 1e-12))
              << layer.name;
        }
      }
    }
  }
}

// Real chips trained with 128 images a core in 8 GB of memory. By the compiler's count, twice as
// many images do not fit.
TEST(CompilerTest, ResNet50FitsIntoAV2CoreAtBatch128ButNot256) {
  const Model model = ShippedModel("resnet50");
  const v1::Chip chip = ShippedChip("v2");
  const ChipProgram fits = Compiled(model, chip, {.per_core_batch = 128});
  EXPECT_LT(fits.needed_memory_bytes, fits.memory_bytes);
  const ChipProgram does_not = Compiled(model, chip, {.per_core_batch = 256});
  EXPECT_GT(does_not.needed_memory_bytes, does_not.memory_bytes);
}

TEST(CompilerTest, SeveralMacsInOnePlaceShortenTheMatrixTime) {
  v1::Chip chip = ToyChip();
  chip.set_macs_per_place(2);
  const ChipProgram program = Compiled(Mlp(), chip, {.per_core_batch = 5});
  EXPECT_EQ(program.step.cycles, 129);
  EXPECT_NEAR(program.step.matrix_s * 1e6, 129 / 2., 1e-9);
}

TEST(CompilerTest, ScaleSimWsCompilesOnlyForChipsOfOneUnit) {
  const ChipProgram program =
      Compiled(Mlp(), ToyChip(), {.per_core_batch = 5, .dataflow = Dataflow::kScaleSimWs});
  // Each of 4 folds takes 2 * 4 + 4 + 5 - 2 = 15 cycles. The product takes one cycle less than the
  // sum of the folds.
  EXPECT_EQ(Find(program, "hidden forward").cycles, 59);
  EXPECT_THAT(CompileProgram(Mlp(), ShippedChip("v3"), {.dataflow = Dataflow::kScaleSimWs}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hidden forward"),
                             HasSubstr("counts the cycles of one array, not of 2"))));
}

TEST(CompilerTest, BadOptionsAreRefusedByName) {
  const auto expect_refused = [](const CompileOptions& options, const char* message) {
    EXPECT_THAT(CompileProgram(Mlp(), ToyChip(), options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  expect_refused({.per_core_batch = 0}, "per_core_batch is 0, want 1 to 1048576");
  expect_refused({.per_core_batch = (1 << 20) + 1}, "per_core_batch is 1048577");
  expect_refused({.overlap = 1.01}, "overlap is 1.01, want 0 to 1");
  expect_refused({.overlap = std::numeric_limits<double>::quiet_NaN()}, "overlap is nan");
  EXPECT_THAT(CompileProgram(Mlp(), ToyChip(), {.slice = "three"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("it has two, one")));
  v1::Chip chip = ToyChip();
  chip.set_clock_hz(0);
  EXPECT_THAT(CompileProgram(Mlp(), chip, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("clock_hz is 0")));
}

TEST(CompilerTest, AProductTooLargeNamesItsLayer) {
  const Model model = ToyModel("16384, 16384, 1",
                               "layers { name: \"big\" conv2d { filters: 1 } } "
                               "layers { average_pool { global: true } } layers { flatten {} } "
                               "layers { dense { units: 2 } }");
  EXPECT_THAT(CompileProgram(model, ToyChip(), {.per_core_batch = 1 << 20}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("big forward"), HasSubstr("M is"))));
}

}  // namespace
}  // namespace systole::emulator
