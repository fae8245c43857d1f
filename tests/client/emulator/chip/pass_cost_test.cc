#include "client/emulator/chip/pass_cost.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

// The costs of the model's first row with 2 examples of 4 x 4 x 4 values. These values take 256
// bytes, and fill 16 rows of the vector unit's 8 lanes. A lane does 2 operations in a microsecond.
PassCosts FirstPass(const std::string& layers, bool training = true,
                    const std::string& input = "4, 4, 4") {
  const Model model =
      ToyModel(input, layers + " layers { flatten {} } layers { dense { units: 2 } }");
  const std::vector<FusedRow> rows = FuseLayers(model, training);
  return CostOf(model, rows.front(), /*pass=*/0, /*batch=*/2, training, ToyChip());
}

// A pool makes 2 x 2 x 4 values of an example, each from a window of 4 values. The values of 2
// examples take 64 bytes, and fill 4 rows.
TEST(PassCostTest, APassCostsWhatTheTableSaysOfTheLayerThatOpensIt) {
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

// 2 examples of 4 x 4 x 8 values are 32 rows.
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

// 2 examples of 4 positions with 6 channels are 48 results, which take 6 rows. For each result
// there are 4 * 2 / 6 scores (4 positions, 2 heads, 6 channels). The forward pass has a cast and 6
// operations a score. The backward pass has the casts of three gradients and 4 operations a score.
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
