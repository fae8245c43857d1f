#include "client/emulator/training/trainer_state.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/emulator/training/trainer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;

constexpr char kLayers[] = R"(
  name: "toy" input: [8, 8, 3]
  layers { conv2d { filters: 8 } } layers { name: "norm" batch_norm {} } layers { relu {} }
  layers { conv2d { filters: 2 kernel: 1 bias: true } } layers { flatten {} }
  layers { name: "head" dense { units: 4 } }
  loss { softmax_cross_entropy {} })";

Model ModelWith(const std::string& optimizer) {
  return *ParseModel(absl::StrCat(kLayers, optimizer), "test");
}

std::vector<std::string> NamesAndShapes(const Model& model) {
  std::vector<std::string> lines;
  for (const TensorPlace& place : TensorPlaces(model)) {
    lines.push_back(absl::StrCat(place.name, " ", absl::StrJoin(place.shape, ",")));
  }
  return lines;
}

// checkpoint.proto promises this order to programs in other languages.
TEST(TensorPlacesTest, AreInTheOrderOfTheProto) {
  EXPECT_THAT(NamesAndShapes(ModelWith("optimizer { learning_rate: 0.1 momentum: 0.9 }")),
              ElementsAre("conv2d_0/weights 3,3,3,8", "norm/scales 8", "norm/shifts 8",
                          "conv2d_3/weights 1,1,8,2", "conv2d_3/biases 2", "head/weights 128,4",
                          "head/biases 4", "norm/running_means 8", "norm/running_variances 8",
                          "conv2d_0/weights/velocity 3,3,3,8", "norm/scales/velocity 8",
                          "norm/shifts/velocity 8", "conv2d_3/weights/velocity 1,1,8,2",
                          "conv2d_3/biases/velocity 2", "head/weights/velocity 128,4",
                          "head/biases/velocity 4"));
}

TEST(TensorPlacesTest, AdamKeepsAllFirstMomentsThenAllSecondOnes) {
  const std::vector<std::string> names =
      NamesAndShapes(ModelWith("optimizer { learning_rate: 0.1 adam {} }"));
  ASSERT_EQ(names.size(), 23u);
  EXPECT_EQ(names[9], "conv2d_0/weights/first_moment 3,3,3,8");
  EXPECT_EQ(names[15], "head/biases/first_moment 4");
  EXPECT_EQ(names[16], "conv2d_0/weights/second_moment 3,3,3,8");
  EXPECT_EQ(names[22], "head/biases/second_moment 4");
}

TEST(TensorPlacesTest, CoverEveryNumberOfAReplicaOnce) {
  for (const char* optimizer :
       {"optimizer { learning_rate: 0.1 }", "optimizer { learning_rate: 0.1 adam {} }",
        "optimizer { learning_rate: 0.1 lars {} }"}) {
    const Model model = ModelWith(optimizer);
    const int states = static_cast<int>(WeightUpdate<float>::StatesPerParameter(model.optimizer));
    std::vector<int64_t> covered(static_cast<size_t>(2 + states));
    for (const TensorPlace& place : TensorPlaces(model)) {
      int64_t size = 1;
      for (const int64_t dimension : place.shape) size *= dimension;
      EXPECT_EQ(size, place.size) << place.name;
      EXPECT_EQ(place.begin, covered[place.array]) << place.name;
      covered[place.array] += place.size;
    }
    for (size_t array = 0; array < covered.size(); ++array) {
      EXPECT_EQ(covered[array], array == 1 ? model.statistics : model.parameters);
    }
  }
}

// Batch norm starts with scales and variances of 1, and with shifts and means of 0.
TEST(TensorPlacesTest, BatchNormNamesReferToTheirTensorsInTheTrainer) {
  Trainer trainer = *Trainer::Create(ModelWith("optimizer { learning_rate: 0.1 }"),
                                     {.num_cores = 1, .per_core_batch = 1});
  const std::vector<StateTensor> tensors = trainer.State().tensors;
  EXPECT_EQ(tensors[1].name, "norm/scales");
  EXPECT_EQ(tensors[1].values, std::vector<float>(8, 1.0f));
  EXPECT_EQ(tensors[2].values, std::vector<float>(8, 0.0f));
  EXPECT_EQ(tensors[7].name, "norm/running_means");
  EXPECT_EQ(tensors[7].values, std::vector<float>(8, 0.0f));
  EXPECT_EQ(tensors[8].values, std::vector<float>(8, 1.0f));
}

}  // namespace
}  // namespace systole::emulator
