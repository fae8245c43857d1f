#include <fstream>
#include <string>
#include <vector>

#include "client/cli/commands/commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/command_run.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

CommandRun Compile(const std::string& model, const std::string& chip,
                   const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"--model", model, "--chip", chip, "--batch-per-core", "128"};
  args.insert(args.end(), more.begin(), more.end());
  return RunCommand(MakeCompileCommand(), args);
}

TEST(CompileCommandTest, ResNet50IsComparedWithPublishedThroughputFigures) {
  const CommandRun run = Compile("resnet50", "v2", {"--slice", "v2-8"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, StartsWith("resnet50 for v2-8: 4 chips of 2 cores, 128 examples a core"));
  EXPECT_THAT(run.out, HasSubstr("\nconv1         1605632 147 64 "));
  EXPECT_THAT(run.out, HasSubstr("115656044 cycles"));
  EXPECT_THAT(run.out, HasSubstr("v2-8, 128 a core              4025        3760    -6.6%  "
                                 "DAWNBench, TensorFlow 1.11"));
  EXPECT_THAT(Compile("resnet50", "v3", {"--slice", "v3-8"}).out,
              HasSubstr("v3-512, 64 a core           480000 "));
}

TEST(CompileCommandTest, WithoutASliceTheCommandNamesTheDefaultSlice) {
  const CommandRun run = Compile("mlp-784", "v3");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "no --slice: taking v3-8, the first of v3\n");
}

TEST(CompileCommandTest, OptionsReachTheCompiler) {
  const CommandRun run =
      Compile("flowers-cnn", "v2",
              {"--slice", "v2-32", "--dataflow", "scalesim-os", "--overlap", "0.5", "--layout",
               "nhwc", "--dtype", "uint8", "--inference", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.out,
      AllOf(HasSubstr("\"slice\":\"v2-32\",\"chips\":16,\"cores\":32,"),
            HasSubstr("\"training\":false,\"dataflow\":\"scalesim-os\",\"overlap\":0.5,"),
            HasSubstr("\"layout\":\"nhwc\",\"dtype\":\"uint8\",\"core_useful_bytes\":1572864,"
                      "\"core_padded_bytes\":1572864,")));
}

TEST(CompileCommandTest, TheProgramOptionListsTheOperations) {
  const std::vector<std::string> slice = {"--slice", "v2-8"};
  EXPECT_THAT(Compile("mlp-784", "v2", slice).out, Not(HasSubstr("weight gradient")));
  EXPECT_THAT(Compile("mlp-784", "v2", {"--slice", "v2-8", "--program"}).out,
              AllOf(StartsWith("    0  infeed "), HasSubstr("hidden weight gradient"),
                    HasSubstr("mlp-784 for v2-8")));
  EXPECT_THAT(Compile("mlp-784", "v2", {"--slice", "v2-8", "--program", "--json"}).out,
              AllOf(StartsWith("{"), HasSubstr("\"operations\":[")));
}

TEST(CompileCommandTest, AChipCanBeAFile) {
  const std::string path = testing::TempDir() + "/compile_command_test_chip.textproto";
  std::ifstream shipped("deploy/chips/v5e.textproto");
  std::string text((std::istreambuf_iterator<char>(shipped)), std::istreambuf_iterator<char>());
  text.replace(text.find("name: \"v5e\""), 11, "name: \"mine\"");
  std::ofstream(path) << text;
  EXPECT_THAT(Compile("mlp-784", path, {"--slice", "v5e-8"}).out,
              HasSubstr("mlp-784 for v5e-8: 8 chips of 1 core,"));
  std::ofstream(path) << "name: \"mine\" cores: -1";
  const CommandRun refused = Compile("mlp-784", path);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr(path + ": cores is -1, want 1 to 1024"));
}

TEST(CompileCommandTest, AnUnknownNameFailsWithAListOfKnownNames) {
  const CommandRun chip = Compile("resnet50", "v1");
  EXPECT_EQ(chip.exit_code, 3);
  EXPECT_THAT(chip.err, HasSubstr("v2, v3, v4, v5e, v5p, v6e"));
  const CommandRun model = Compile("resnet18", "v2");
  EXPECT_EQ(model.exit_code, 3);
  EXPECT_THAT(model.err, HasSubstr("flowers-cnn, mlp-784, resnet50, transformer-block"));
  const CommandRun slice = Compile("resnet50", "v2", {"--slice", "v2-9"});
  EXPECT_EQ(slice.exit_code, 3);
  EXPECT_THAT(slice.err, HasSubstr("it has v2-8, v2-32"));
}

TEST(CompileCommandTest, BadOptionsAreWrongUsage) {
  const std::vector<std::vector<std::string>> bad = {
      {"--dataflow", "os"}, {"--layout", "chw"},       {"--dtype", "int64"}, {"--overlap", "2"},
      {"--overlap", "x"},   {"--batch-per-core", "0"}, {"--overlap", "nan"}, {"--dataflow", "ws"},
  };
  for (const std::vector<std::string>& options : bad) {
    const CommandRun run = Compile("mlp-784", "v2", options);
    EXPECT_EQ(run.exit_code, 2) << options[0] << " " << options[1];
    EXPECT_EQ(run.out, "");
  }
  EXPECT_EQ(RunCommand(MakeCompileCommand(), {"--model", "mlp-784", "--chip", "v2"}).exit_code, 2);
}

}  // namespace
}  // namespace systole
