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

CommandRun Gemm(const std::string& array, const std::string& mkn, const std::string& dataflow,
                const std::vector<std::string>& more = {}) {
  std::vector<std::string> args = {"--array", array, "--mkn", mkn, "--dataflow", dataflow};
  args.insert(args.end(), more.begin(), more.end());
  return RunCommand(MakeGemmCommand(), args);
}

TEST(GemmCommandTest, PrintsCyclesFoldsAndUtilisation) {
  const CommandRun run = Gemm("32x32", "3025,363,96", "scalesim-ws");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "cycles       112283\nfolds        36\nutilisation  91.68 %\n");
  EXPECT_EQ(run.err, "");
}

TEST(GemmCommandTest, EveryDataflowIsKnown) {
  EXPECT_THAT(Gemm("32x32", "256,256,128", "ws-db").out, HasSubstr("cycles       8286\n"));
  EXPECT_THAT(Gemm("32x32", "256,256,128", "scalesim-os").out, HasSubstr("cycles       10175\n"));
  EXPECT_THAT(Gemm("32x32", "256,256,128", "scalesim-ws").out, HasSubstr("cycles       11199\n"));
  EXPECT_THAT(Gemm("32x32", "256,256,128", "scalesim-is").out, HasSubstr("cycles       14207\n"));
}

TEST(GemmCommandTest, SteppingSaysThatValuesAndCyclesAgree) {
  // By the formulas: 8 + 8 * 16 + 16 + 8 + 4 - 2; 9 * (2 * 8 + 4 + 16 - 2) - 1; and so on.
  const struct {
    std::string dataflow, cycles;
  } cases[] = {
      {"ws-db", "162"}, {"scalesim-ws", "305"}, {"scalesim-is", "323"}, {"scalesim-os", "179"}};
  for (const auto& c : cases) {
    const CommandRun run = Gemm("8x4", "16,20,9", c.dataflow, {"--step"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("stepped      cycles agree (" + c.cycles +
                                   "), values agree (0 of 144 differ from the exact loop)\n"));
  }
}

TEST(GemmCommandTest, SeveralUnitsShareTheProduct) {
  // 2 tiles of 40 rows. Split by rows: 4 + 20 + 20 + 4 + 4 - 2 cycles; by tiles: 4 + 40 + 4 + 4 -
  // 2.
  const CommandRun run = Gemm("4x4", "40,8,4", "ws-db", {"--units", "2", "--step"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("cycles       50\nfolds        2\n"),
                             HasSubstr("split        rows\n"),
                             HasSubstr("cycles agree (50), values agree")));
  EXPECT_THAT(Gemm("4x4", "40,8,4", "scalesim-ws", {"--units", "2"}).err,
              HasSubstr("scalesim-ws counts the cycles of one array, not of 2"));
  EXPECT_EQ(Gemm("4x4", "40,8,4", "ws-db", {"--units", "0"}).exit_code, 2);
}

TEST(GemmCommandTest, JsonIsOneObject) {
  EXPECT_EQ(Gemm("4x4", "4,4,4", "ws-db", {"--json", "--step"}).out,
            "{\"dataflow\":\"ws-db\",\"rows\":4,\"columns\":4,\"units\":1,\"m\":4,\"k\":4,\"n\":4,"
            "\"cycles\":14,\"folds\":1,\"split\":\"none\",\"utilisation\":0.2857142857142857,"
            "\"stepped\":{\"cycles\":14,\"cycles_agree\":true,\"values\":16,"
            "\"differing_values\":0,\"values_agree\":true}}\n");
  EXPECT_EQ(Gemm("4x4", "4,4,4", "scalesim-os", {"--json"}).out,
            "{\"dataflow\":\"scalesim-os\",\"rows\":4,\"columns\":4,\"units\":1,\"m\":4,\"k\":4,"
            "\"n\":4,\"cycles\":9,\"folds\":1,\"split\":\"none\","
            "\"utilisation\":0.4444444444444444}\n");
}

TEST(GemmCommandTest, WhatIsTooLargeToStepIsWrongUsage) {
  const CommandRun run = Gemm("128x128", "8192,8192,8192", "ws-db", {"--step"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("too many to compute cycle by cycle"));
}

TEST(GemmCommandTest, BadSizesAreWrongUsageAndNamed) {
  for (const std::string array : {"32", "32x", "x32", "32x32x32", "32X32", "", "ax4", "4,4"}) {
    const CommandRun run = Gemm(array, "4,4,4", "ws-db");
    EXPECT_EQ(run.exit_code, 2) << array;
    EXPECT_THAT(run.err, HasSubstr("--array")) << array;
  }
  for (const std::string mkn : {"4", "4,4", "4,4,4,4", "4,4,", "4x4x4", "4,4,four"}) {
    const CommandRun run = Gemm("4x4", mkn, "ws-db");
    EXPECT_EQ(run.exit_code, 2) << mkn;
    EXPECT_THAT(run.err, AllOf(HasSubstr("--mkn"), HasSubstr(mkn))) << mkn;
  }
  EXPECT_THAT(Gemm("4x0", "4,4,4", "ws-db").err, HasSubstr("columns is 0"));
  EXPECT_THAT(Gemm("4x4", "4,-4,4", "ws-db").err, HasSubstr("K is -4"));
}

TEST(GemmCommandTest, AnUnknownDataflowIsWrongUsage) {
  const CommandRun run = Gemm("4x4", "4,4,4", "os");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("'os'"), HasSubstr("scalesim-os")));
}

TEST(GemmCommandTest, AMissingDataflowIsWrongUsage) {
  EXPECT_EQ(RunCommand(MakeGemmCommand(), {"--array", "4x4", "--mkn", "4,4,4"}).exit_code, 2);
}

}  // namespace
}  // namespace systole
