#include "client/emulator/chip/program_text.h"

#include <string>

#include "client/emulator/chip/compiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// compiler_test.cc works out this program's costs by hand.
ChipProgram Mlp(const CompileOptions& options = {.per_core_batch = 5}) {
  const absl::StatusOr<ChipProgram> program = CompileProgram(
      ToyModel("6",
               "layers { name: \"hidden\" dense { units: 8 } } layers { name: \"relu\" relu {} } "
               "layers { name: \"classes\" dense { units: 3 } }"),
      ToyChip(), options);
  EXPECT_THAT(program, IsOk());
  return program.ok() ? *program : ChipProgram();
}

const Comparison kComparison = {.slice = "two",
                                .per_core_batch = 5,
                                .source = "a stopwatch",
                                .published_examples_per_s = 8000,
                                .emulated_examples_per_s = 6000};

TEST(ProgramTextTest, TheTableHasALineForEveryRowAndTheTotals) {
  const std::string table = ProgramTable(Mlp(), {});
  EXPECT_THAT(table,
              HasSubstr("toy for two: 2 chips of 2 cores, 5 examples a core, training, ws-db, "
                        "overlap 0\n"));
  EXPECT_THAT(table,
              HasSubstr("layer    M K N     tiles      cycles  util %  memory MB         ms  "
                        "bound   with\n"));
  EXPECT_THAT(table,
              HasSubstr("hidden   5 6 8         8          64    46.9        0.0      0.632  "
                        "memory  relu\n"));
  EXPECT_THAT(table,
              HasSubstr("classes  5 8 3         8          65    34.6        0.0      0.587  "
                        "memory\n"));
  EXPECT_THAT(table,
              AllOf(HasSubstr("matrix         0.129 ms: 129 cycles, 40.7 % of"),
                    HasSubstr("memory         2.206 ms: 2.2 kB at 0.001 GB/s"),
                    HasSubstr("gradients      0.498 ms over the chip's cores, 0.166 ms over"),
                    HasSubstr("step           2.999 ms\n"),
                    HasSubstr("examples/s     6668.9 on 4 cores, 1667.2 a core\n"),
                    HasSubstr("infeed         4.096 ms: 0.1 kB a core, 2.0 kB as hwcn-tiled: "
                              "LONGER THAN THE STEP, no feed gives the chip more than 4882.8 "
                              "examples/s\n")));
  EXPECT_THAT(table, AllOf(Not(HasSubstr("published")), Not(HasSubstr("TOO MUCH")),
                           Not(HasSubstr("batch norm"))));
}

TEST(ProgramTextTest, TheTableComparesPublishedAndEmulatedRates) {
  EXPECT_THAT(ProgramTable(Mlp(), {kComparison}),
              HasSubstr("two, 5 a core                 8000        6000   -25.0%  a stopwatch\n"));
}

TEST(ProgramTextTest, TheTableWarnsOfABatchTooLargeForMemory) {
  EXPECT_THAT(ProgramTable(Mlp({.per_core_batch = 100000}), {}),
              HasSubstr("TOO MUCH, take a smaller batch"));
}

TEST(ProgramTextTest, AnInfeedShorterThanTheStepHasNoWarning) {
  EXPECT_THAT(ProgramTable(Mlp({.per_core_batch = 5, .layout = InfeedLayout::kNhwc}), {}),
              HasSubstr("infeed         0.120 ms: 0.1 kB a core, 0.1 kB as nhwc\n"));
}

TEST(ProgramTextTest, TheListingHasALineForEveryOperation) {
  EXPECT_EQ(ProgramListing(Mlp()),
            "    0  infeed      infeed                             2.0 kB  4.096 ms\n"
            "    1  gemm        hidden forward                     0.2 kB  0.266 ms  "
            "[5 6 8] in 4 tiles, 30 cycles\n"
            "    2  gemm        classes forward                    0.2 kB  0.178 ms  "
            "[5 8 3] in 2 tiles, 20 cycles\n"
            "    3  vector      loss                               0.1 kB  0.120 ms\n"
            "    4  gemm        classes weight gradient            0.2 kB  0.231 ms  "
            "[3 5 8] in 4 tiles, 25 cycles\n"
            "    5  gemm        classes input gradient             0.2 kB  0.178 ms  "
            "[5 3 8] in 2 tiles, 20 cycles\n"
            "    6  gemm        hidden weight gradient             0.3 kB  0.366 ms  "
            "[6 5 8] in 4 tiles, 34 cycles\n"
            "    7  core-sum    gradients of the chip's cores      1.0 kB  0.498 ms\n"
            "    8  all-reduce  gradients                          0.3 kB  0.166 ms\n"
            "    9  update      update                             1.0 kB  0.996 ms\n");
}

TEST(ProgramTextTest, JsonHoldsUnscaledNumbers) {
  JsonWriter json;
  WriteProgram(Mlp(), {kComparison}, /*with_operations=*/false, json);
  EXPECT_THAT(
      json.text(),
      AllOf(
          HasSubstr("{\"model\":\"toy\",\"chip\":\"toy\",\"slice\":\"two\",\"chips\":2,\"cores\":4,"
                    "\"per_core_batch\":5,\"training\":true,\"dataflow\":\"ws-db\","),
          HasSubstr("{\"name\":\"hidden\",\"kind\":\"dense\",\"fused\":[\"relu\"],\"m\":5,\"k\":6,"
                    "\"n\":8,\"repeats\":1,\"tiles\":8,\"cycles\":64,"),
          HasSubstr("\"step\":{\"tiles\":16,\"cycles\":129,"),
          HasSubstr("\"layout\":\"hwcn-tiled\",\"dtype\":\"bfloat16\",\"core_useful_bytes\":60,"
                    "\"core_padded_bytes\":2048,"),
          HasSubstr("\"published_examples_per_s\":8000,\"emulated_examples_per_s\":6000,"
                    "\"misfit\":-0.25}"),
          Not(HasSubstr("operations"))));
}

TEST(ProgramTextTest, JsonHasTheOperationsIfAskedFor) {
  JsonWriter json;
  WriteProgram(Mlp(), {}, /*with_operations=*/true, json);
  EXPECT_THAT(json.text(),
              AllOf(HasSubstr("\"operations\":[{\"kind\":\"infeed\",\"name\":\"infeed\","),
                    HasSubstr("{\"kind\":\"gemm\",\"name\":\"hidden forward\",\"row\":\"hidden\","
                              "\"m\":5,\"k\":6,\"n\":8,\"repeats\":1,\"tiles\":4,\"cycles\":30,"
                              "\"macs\":240,\"bytes\":236,")));
}

}  // namespace
}  // namespace systole::emulator
