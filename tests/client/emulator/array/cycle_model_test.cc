#include "client/emulator/array/cycle_model.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/array/worked_examples.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

MATCHER_P(IsInvalid, message, "") {
  return testing::ExplainMatchResult(StatusIs(absl::StatusCode::kInvalidArgument, message), arg,
                                     result_listener);
}

int64_t Cycles(const GemmShape& gemm, const ArrayShape& array, Dataflow dataflow) {
  const absl::StatusOr<GemmCycles> cost = CountCycles(gemm, array, dataflow);
  return cost.ok() ? cost->cycles : -1;
}

// The numbers come from SCALE-Sim's own golden files: four of cycles, and one of utilisation.
TEST(CycleModelTest, CyclesAndUtilisationMatchScaleSimsGoldenFiles) {
  EXPECT_EQ(Cycles({256, 256, 128}, {32, 32}, Dataflow::kScaleSimOs), 10175);
  EXPECT_EQ(Cycles({256, 256, 128}, {32, 32}, Dataflow::kScaleSimWs), 11199);
  EXPECT_EQ(Cycles({256, 256, 128}, {32, 32}, Dataflow::kScaleSimIs), 14207);
  const absl::StatusOr<GemmCycles> alexnet =
      CountCycles({3025, 363, 96}, {32, 32}, Dataflow::kScaleSimWs);
  ASSERT_THAT(alexnet, IsOk());
  EXPECT_EQ(alexnet->cycles, 112283);
  EXPECT_DOUBLE_EQ(100 * alexnet->utilisation, 91.68309650614964);
}

TEST(CycleModelTest, AgreesWithTheTableOfWorkedExamples) {
  for (const WorkedExample& row : kWorkedExamples) {
    SCOPED_TRACE(testing::Message() << row.array.rows << "x" << row.array.columns << " "
                                    << row.gemm.m << "," << row.gemm.k << "," << row.gemm.n);
    const auto os = CountCycles(row.gemm, row.array, Dataflow::kScaleSimOs);
    const auto ws = CountCycles(row.gemm, row.array, Dataflow::kScaleSimWs);
    const auto ws_db = CountCycles(row.gemm, row.array, Dataflow::kWsDb);
    ASSERT_THAT(os, IsOk());
    ASSERT_THAT(ws, IsOk());
    ASSERT_THAT(ws_db, IsOk());
    EXPECT_EQ(os->cycles, row.os);
    EXPECT_EQ(os->cycles + 1 + os->folds * row.array.rows, row.os_paper);
    EXPECT_EQ(ws->cycles, row.ws);
    EXPECT_EQ(ws->folds, row.ws_folds);
    EXPECT_EQ(Cycles(row.gemm, row.array, Dataflow::kScaleSimIs), row.is);
    EXPECT_EQ(ws_db->cycles, row.ws_db);
    EXPECT_EQ(ws_db->folds, row.ws_folds);
    EXPECT_NEAR(100 * ws_db->utilisation, row.ws_db_percent, 0.05);
  }
}

// R = 128 rows and C = 8 columns make 2 * 2 = 4 tiles in ws. The test shows that M, K and N are in
// their right places in the formulas.
TEST(CycleModelTest, ArraysNeedNotBeSquare) {
  EXPECT_EQ(Cycles({10, 200, 16}, {128, 8}, Dataflow::kWsDb), 128 + 3 * 128 + 10 + 128 + 8 - 2);
  EXPECT_EQ(Cycles({10, 200, 16}, {128, 8}, Dataflow::kScaleSimWs), 4 * (256 + 8 + 10 - 2) - 1);
  EXPECT_EQ(Cycles({10, 200, 16}, {128, 8}, Dataflow::kScaleSimOs), 2 * (128 + 8 + 200 - 2) - 1);
  EXPECT_EQ(Cycles({10, 200, 16}, {128, 8}, Dataflow::kScaleSimIs), 4 * (256 + 8 + 16 - 2) - 1);
}

// 8 tiles of 4096 rows on 4 units. Split by rows, a unit has 1024 rows of 8 tiles; by tiles, 4096
// rows of 2 tiles.
TEST(CycleModelTest, SeveralUnitsTakeTheCheaperSplit) {
  const int64_t by_rows = 128 + 7 * 1024 + 1024 + 128 + 128 - 2;
  const auto tall = CountCycles({4096, 1024, 128}, {128, 128}, Dataflow::kWsDb, 4);
  ASSERT_THAT(tall, IsOk());
  EXPECT_EQ(tall->cycles, by_rows);  // By tiles: 128 + 1 * 4096 + 4096 + 254.
  EXPECT_EQ(tall->split, UnitSplit::kRows);
  EXPECT_EQ(tall->folds, 8);
  EXPECT_DOUBLE_EQ(tall->utilisation, 4096.0 * 1024 * 128 / (by_rows * 128.0 * 128 * 4));
  // With 64 rows a split by rows saves nothing, since the weights of each tile take 128 cycles to
  // load.
  const auto flat = CountCycles({64, 1024, 128}, {128, 128}, Dataflow::kWsDb, 4);
  ASSERT_THAT(flat, IsOk());
  EXPECT_EQ(flat->cycles, 128 + 1 * 128 + 64 + 128 + 128 - 2);
  EXPECT_EQ(flat->split, UnitSplit::kTiles);
  EXPECT_EQ(CountCycles({64, 64, 64}, {128, 128}, Dataflow::kWsDb)->split, UnitSplit::kNone);
}

TEST(CycleModelTest, MoreUnitsThanRowsAndTilesDoNoHarm) {
  const auto cost = CountCycles({2, 3, 3}, {4, 4}, Dataflow::kWsDb, 1000);
  ASSERT_THAT(cost, IsOk());
  EXPECT_EQ(cost->cycles, 4 + 1 + 4 + 4 - 2);
}

TEST(CycleModelTest, ScaleSimWsRefusesMoreThanOneUnit) {
  EXPECT_THAT(CountCycles({4, 4, 4}, {4, 4}, Dataflow::kScaleSimWs, 2),
              IsInvalid(HasSubstr("scalesim-ws counts the cycles of one array, not of 2")));
}

TEST(CycleModelTest, AProductOfZeroCyclesHasFullUtilisation) {
  const auto cost = CountCycles({1, 1, 1}, {1, 1}, Dataflow::kScaleSimOs);
  ASSERT_THAT(cost, IsOk());
  EXPECT_EQ(cost->cycles, 0);
  EXPECT_EQ(cost->utilisation, 1.0);
}

TEST(CycleModelTest, LargeSizesAreExactAndOverflowIsRefused) {
  const int64_t most = kLargestGemmSize;
  // 2^40 x 1 tiles of one row: 1 + (2^40 - 1) * 1 + 1 + 1 + 1 - 2.
  EXPECT_EQ(Cycles({1, most, 1}, {1, 1}, Dataflow::kWsDb), most + 1);
  // 2^20 tiles of 2^40 rows take about 2^60 cycles.
  EXPECT_EQ(Cycles({most, int64_t{1} << 20, 1}, {1, 1}, Dataflow::kWsDb), (int64_t{1} << 60) + 1);
  for (const Dataflow dataflow :
       {Dataflow::kWsDb, Dataflow::kScaleSimOs, Dataflow::kScaleSimWs, Dataflow::kScaleSimIs}) {
    EXPECT_THAT(CountCycles({most, most, most}, {1, 1}, dataflow),
                IsInvalid(HasSubstr("more than 2^63 - 1 cycles")));
    EXPECT_THAT(CountCycles({most, most, most}, {most, most}, dataflow), IsOk());
  }
}

TEST(CycleModelTest, BadSizesAreRefusedByName) {
  const Dataflow ws = Dataflow::kWsDb;
  EXPECT_THAT(CountCycles({0, 1, 1}, {1, 1}, ws), IsInvalid(HasSubstr("M is 0, want 1 to")));
  EXPECT_THAT(CountCycles({1, -3, 1}, {1, 1}, ws), IsInvalid(HasSubstr("K is -3")));
  EXPECT_THAT(CountCycles({1, 1, kLargestGemmSize + 1}, {1, 1}, ws), IsInvalid(HasSubstr("N is")));
  EXPECT_THAT(CountCycles({1, 1, 1}, {0, 1}, ws), IsInvalid(HasSubstr("rows is 0")));
  EXPECT_THAT(CountCycles({1, 1, 1}, {1, std::numeric_limits<int64_t>::max()}, ws),
              IsInvalid(HasSubstr("columns is 9223372036854775807")));
  EXPECT_THAT(CountCycles({1, 1, 1}, {1, 1}, ws, 0), IsInvalid(HasSubstr("matrix units is 0")));
}

TEST(CycleModelTest, DataflowNamesParseBackAndUnknownNamesAreRefused) {
  for (const Dataflow dataflow :
       {Dataflow::kWsDb, Dataflow::kScaleSimOs, Dataflow::kScaleSimWs, Dataflow::kScaleSimIs}) {
    EXPECT_THAT(ParseDataflow(DataflowName(dataflow)), IsOkAndHolds(dataflow));
  }
  EXPECT_THAT(ParseDataflow("ws"),
              IsInvalid(AllOf(HasSubstr("'ws'"), HasSubstr("want ws-db, scalesim-os"))));
  EXPECT_EQ(UnitSplitName(UnitSplit::kNone), "none");
  EXPECT_EQ(UnitSplitName(UnitSplit::kRows), "rows");
  EXPECT_EQ(UnitSplitName(UnitSplit::kTiles), "tiles");
}

}  // namespace
}  // namespace systole::emulator
