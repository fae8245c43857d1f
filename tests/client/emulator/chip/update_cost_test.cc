#include "client/emulator/chip/update_cost.h"

#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

TEST(UpdateCostTest, EachOptimizerHasItsTabulatedBytesOpsAndNumbers) {
  v1::Optimizer sgd, momentum, adam, lars;
  momentum.set_momentum(0.9f);
  adam.mutable_adam();
  lars.mutable_lars();
  lars.set_momentum(0.9f);
  const struct {
    const char* name;
    v1::Optimizer optimizer;
    double bytes, ops;
    int64_t numbers;
  } cases[] = {{"sgd", sgd, 12, 2, 0},
               {"momentum", momentum, 20, 3, 1},
               {"lars", lars, 28, 7, 1},
               {"adam", adam, 28, 12, 2}};
  for (const auto& c : cases) {
    const UpdateCost cost = UpdateCostOf(c.optimizer);
    EXPECT_EQ(cost.bytes_per_parameter, c.bytes) << c.name;
    EXPECT_EQ(cost.ops_per_parameter, c.ops) << c.name;
    EXPECT_EQ(cost.numbers_per_parameter, c.numbers) << c.name;
  }
}

}  // namespace
}  // namespace systole::emulator
