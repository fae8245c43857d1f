// Products whose cycles are known for every dataflow. The tests compare the cycle model and the
// stepped array with them.
#ifndef SYSTOLE_TESTS_CLIENT_EMULATOR_ARRAY_WORKED_EXAMPLES_H_
#define SYSTOLE_TESTS_CLIENT_EMULATOR_ARRAY_WORKED_EXAMPLES_H_

#include <cstdint>

#include "client/emulator/array/cycle_model.h"

namespace systole::emulator {

struct WorkedExample {
  ArrayShape array;
  GemmShape gemm;
  // The cycles that SCALE-Sim prints. Its own golden files contain all three numbers for the
  // example {32, 32}, {256, 256, 128}, and `ws` for the example with {3025, 363, 96}.
  int64_t os, ws, is;
  int64_t ws_folds;
  // The cycles for os by the formula of the ISPASS 2020 paper. The formula counts from 1, and adds
  // R cycles a fold for shifting results out.
  int64_t os_paper;
  int64_t ws_db;
  double ws_db_percent;  // The utilisation, to one digit.
};

inline constexpr WorkedExample kWorkedExamples[] = {
    {{4, 4}, {4, 4, 4}, 9, 13, 13, 1, 14, 14, 28.6},
    {{8, 8}, {16, 8, 8}, 43, 37, 59, 1, 60, 38, 42.1},
    {{16, 16}, {64, 64, 64}, 1503, 1759, 1759, 16, 1760, 1070, 95.7},
    {{32, 32}, {256, 256, 128}, 10175, 11199, 14207, 32, 11200, 8286, 98.9},
    {{32, 32}, {3025, 363, 96}, 121124, 112283, 216599, 36, 130245, 108994, 94.4},
    {{32, 32}, {25, 1728, 384}, 21479, 77111, 25811, 648, 21864, 20823, 77.8},
    {{128, 128}, {12100, 147, 64}, 38094, 24963, 84739, 2, 50255, 24582, 28.3},
    {{128, 128}, {128, 128, 128}, 381, 509, 509, 1, 510, 510, 25.1},
    {{128, 128}, {8, 128, 128}, 381, 389, 509, 1, 510, 390, 2.1},
    {{128, 128}, {1024, 1024, 1024}, 81791, 89983, 89983, 64, 89984, 65918, 99.4},
    {{128, 128}, {401408, 576, 64}, 2602879, 2008949, 6993279, 5, 3004288, 2007422, 45.0},
};

}  // namespace systole::emulator

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_ARRAY_WORKED_EXAMPLES_H_
