#include "client/emulator/shipped/shipped_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> NamesOf(absl::Span<const ShippedFile> files) {
  std::vector<std::string> names;
  for (const ShippedFile& file : files) names.emplace_back(file.name);
  return names;
}

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The sorted names of the files in `folder`, without ".textproto". Tests run in the root of the
// sources.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".textproto") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(ShippedFilesTest, ListsEveryChipAndModelOfDeploySortedByName) {
  EXPECT_THAT(NamesOf(ShippedChips()), ElementsAre("v2", "v3", "v4", "v5e", "v5p", "v6e"));
  EXPECT_EQ(NamesOf(ShippedChips()), FilesIn("deploy/chips"));
  EXPECT_THAT(NamesOf(ShippedModels()),
              ElementsAre("flowers-cnn", "mlp-784", "resnet50", "transformer-block"));
  EXPECT_EQ(NamesOf(ShippedModels()), FilesIn("deploy/models"));
}

TEST(ShippedFilesTest, TextsAreTheFilesToTheByte) {
  for (const ShippedFile& file : ShippedChips()) {
    EXPECT_EQ(file.text, Contents("deploy/chips/" + std::string(file.name) + ".textproto"));
  }
  for (const ShippedFile& file : ShippedModels()) {
    EXPECT_EQ(file.text, Contents("deploy/models/" + std::string(file.name) + ".textproto"));
  }
}

TEST(ShippedFilesTest, EveryShippedChipAndModelCanBeReadByName) {
  for (const ShippedFile& file : ShippedChips()) {
    v1::Chip chip;
    ASSERT_THAT(ReadChip(std::string(file.name), chip), IsOk());
    EXPECT_EQ(chip.name(), file.name);
  }
  for (const ShippedFile& file : ShippedModels()) {
    v1::Model model;
    ASSERT_THAT(ReadModel(std::string(file.name), model), IsOk());
    EXPECT_EQ(model.name(), file.name);
  }
}

TEST(ShippedFilesTest, APathIsReadAsAFile) {
  v1::Chip chip;
  ASSERT_THAT(ReadChip("deploy/chips/v2.textproto", chip), IsOk());
  EXPECT_EQ(chip.name(), "v2");
  v1::Model model;
  ASSERT_THAT(ReadModel("./deploy/models/mlp-784.textproto", model), IsOk());
  EXPECT_EQ(model.name(), "mlp-784");
}

TEST(ShippedFilesTest, AnUnknownNameListsThoseThatExist) {
  v1::Chip chip;
  EXPECT_THAT(ReadChip("v1", chip),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no chip 'v1'"), HasSubstr("v2, v3, v4, v5e, v5p, v6e"))));
  v1::Model model;
  EXPECT_THAT(ReadModel("no/such.textproto", model),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("no model 'no/such.textproto'"), HasSubstr("mlp-784"))));
}

TEST(ShippedFilesTest, AnErrorInAFileIsReportedWithItsPathAndLine) {
  const std::string path = testing::TempDir() + "/shipped_files_test_bad.textproto";
  std::ofstream(path) << "name: \"x\"\nspeed: 3\n";
  v1::Chip chip;
  EXPECT_THAT(ReadChip(path, chip), StatusIs(absl::StatusCode::kInvalidArgument,
                                             AllOf(HasSubstr(path + ":2"), HasSubstr("speed"))));
}

}  // namespace
}  // namespace systole::emulator
