#include "client/emulator/model/load_model.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(LoadModelTest, ANameAndItsFileAreTheSameModel) {
  const absl::StatusOr<Model> by_name = LoadModel("flowers-cnn");
  const absl::StatusOr<Model> by_path = LoadModel("deploy/models/flowers-cnn.textproto");
  ASSERT_THAT(by_name, IsOk());
  ASSERT_THAT(by_path, IsOk());
  EXPECT_EQ(by_name->name, "flowers-cnn");
  EXPECT_EQ(by_name->parameters, by_path->parameters);
  EXPECT_EQ(by_name->layers.size(), by_path->layers.size());
}

TEST(LoadModelTest, AnUnknownNameListsThoseThatExist) {
  EXPECT_THAT(LoadModel("vgg16"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no model 'vgg16'"), HasSubstr("resnet50"))));
}

TEST(LoadModelTest, ARefusedModelNamesItsFile) {
  const std::string path = testing::TempDir() + "/load_model_test.textproto";
  std::ofstream(path) << "name: \"x\" input: [4] layers { dense { units: -1 } }";
  EXPECT_THAT(LoadModel(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                        AllOf(HasSubstr(path + ": "), HasSubstr("units is -1"))));
}

}  // namespace
}  // namespace systole::emulator
