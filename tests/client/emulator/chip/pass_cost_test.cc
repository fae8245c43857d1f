#include "client/emulator/chip/pass_cost.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

// The costs of the first pass of the model's first FusedRow for a batch of 2 examples. The default
// input has 2 * 64 values, which take 256 bytes and fill 16 rows of the vector unit's 8 lanes. A
// lane does 2 operations in a microsecond.
PassCosts FirstPass(const std::string& layers, bool training = true,
                    const std::string& input = "4, 4, 4") {
  const Model model =
      ToyModel(input, layers + " layers { flatten {} } layers { dense { units: 2 } }");
  const std::vector<FusedRow> rows = FuseLayers(model, training);
  return CostOf(model, rows.front(), /*pass=*/0, /*batch=*/2, training, ToyChip());
}

// A pool's output has 2 x 2 x 4 values an example, each from a window of 4 values. The outputs of 2
// examples take 64 bytes, and fill 4 rows of 8 lanes.
TEST(PassCostTest, APassHasTheTabulatedCostsOfItsFirstLayer) {
  const struct {
    const char* layer;
    double forward_bytes, backward_bytes;
    double forward_us, backward_us;
  } cases[] = {
      {"relu {}", 2 * 256, 3 * 256, 16 * 1 / 2., 16 * 1 / 2.},
      {"gelu {}", 2 * 256, 3 * 256, 16 * 10 / 2., 16 * 14 / 2.},
      {"dropout { rate: 0.5 }", 2 * 256, 3 * 256, 16 * 2 / 2., 16 * 1 / 2.},
      {"layer_norm {}", 2 * 256, 3 * 256, 16 * 4 / 2., 16 * 8 / 2.},
      {"batch_norm {}", 3 * 256, 5 * 256, 16 * 4 / 2., 16 * 8 / 2.},
      {"add {} inputs: 'input' inputs: 'input' inputs: 'input'", 4 * 256, 0, 16 * 2 / 2., 0},
      {"max_pool {}", 256 + 64, 64 + 2 * 256, 4 * 3 / 2., 4 * 4 / 2.},
      {"average_pool {}", 256 + 64, 64 + 256, 4 * 4 / 2., 4 * 4 / 2.},
  };
  for (const auto& c : cases) {
    const PassCosts costs = FirstPass(std::string("layers { ") + c.layer + " }");
    EXPECT_DOUBLE_EQ(costs.forward.bytes, c.forward_bytes) << c.layer;
    EXPECT_DOUBLE_EQ(costs.backward.bytes, c.backward_bytes) << c.layer;
    EXPECT_NEAR(costs.forward.vector_s * 1e6, c.forward_us, 1e-9) << c.layer;
    EXPECT_NEAR(costs.backward.vector_s * 1e6, c.backward_us, 1e-9) << c.layer;
  }
}

// The results of 2 examples, 4 x 4 x 8 values each, fill 32 rows of 8 lanes.
TEST(PassCostTest, AnEpilogueHasNoBytesOfItsOwn) {
  for (const auto& [layer, ops] : {std::pair<std::string, double>{"dense { units: 8 }", 2},
                                   {"dense { units: 8 no_bias: true }", 1},
                                   {"conv2d { filters: 8 }", 1},
                                   {"conv2d { filters: 8 bias: true }", 2}}) {
    const PassCosts costs = FirstPass("layers { " + layer + " }");
    EXPECT_EQ(costs.forward.bytes, 0) << layer;
    EXPECT_EQ(costs.backward.bytes, 0) << layer;
    EXPECT_NEAR(costs.forward.vector_s * 1e6, 32 * ops / 2, 1e-9) << layer;
    EXPECT_NEAR(costs.backward.vector_s * 1e6, 32 * ops / 2, 1e-9) << layer;
  }
}

// An example has 4 positions with 6 channels. So 2 examples have 48 results, which fill 6 rows of 8
// lanes. With 2 heads, an example has 4 * 4 * 2 scores, which are 8 / 6 scores for each of its 24
// results.
//   forward:  one cast for each result, and 6 operations for each score
//   backward: three casts for each result (of three gradients), and 4 operations for each score
TEST(PassCostTest, AnAttentionHasItsSoftmaxInTheEpilogue) {
  const PassCosts costs =
      FirstPass("layers { attention { heads: 2 } }", /*training=*/true, /*input=*/"4, 18");
  EXPECT_NEAR(costs.forward.vector_s * 1e6, 6 * (1 + 6 * 8 / 6.) / 2, 1e-9);
  EXPECT_NEAR(costs.backward.vector_s * 1e6, 6 * (3 + 4 * 8 / 6.) / 2, 1e-9);
}

TEST(PassCostTest, InferenceHasNoStatisticsAndNoDropout) {
  const PassCosts norm = FirstPass("layers { batch_norm {} }", /*training=*/false);
  EXPECT_DOUBLE_EQ(norm.forward.bytes, 2 * 256);
  EXPECT_NEAR(norm.forward.vector_s * 1e6, 16 * 2 / 2., 1e-9);
  EXPECT_EQ(FirstPass("layers { dropout { rate: 0.5 } }", /*training=*/false).forward.vector_s, 0);
}

}  // namespace
}  // namespace systole::emulator
