// A chip whose costs can be worked out by hand, and models for it.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CLIENT_EMULATOR_CHIP_TOY_CHIP_H_
#define SYSTOLE_TESTS_CLIENT_EMULATOR_CHIP_TOY_CHIP_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "client/emulator/chip/chip.h"
#include "client/emulator/model/model.h"
#include "client/emulator/shipped/shipped_files.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {

// A chip of two cores. Each core has one 4 x 4 array at 1 MHz, and 8 lanes that do 2 operations in
// a cycle. The memory moves 1 MB/s for each core, a link 1 MB/s, and the host 1 MB/s. Hops take no
// time. Slice "two" is a ring of two chips, slice "one" is one chip.
inline v1::Chip ToyChip() {
  const absl::StatusOr<v1::Chip> chip = ParseChip(R"(
    name: "toy" cores: 2 matrix_units_per_core: 1 array_rows: 4 array_columns: 4 clock_hz: 1e6
    vector_lanes: 8 vector_units_per_lane: 2 vector_memory_bytes_per_core: 1024
    memory_bytes: 2000000 memory_bytes_per_s: 2e6 link_bytes_per_s: 1e6 host_bytes_per_s: 1e6
    slices { name: "two" axes { chips: 2 ring: true } }
    slices { name: "one" axes { chips: 1 } })",
                                                  "toy");
  EXPECT_THAT(chip, IsOk());
  return chip.ok() ? *chip : v1::Chip();
}

// `layers` is the model's text between the input and the loss.
inline Model ToyModel(const std::string& input, const std::string& layers,
                      const std::string& optimizer = "learning_rate: 1") {
  const absl::StatusOr<Model> model =
      ParseModel(absl::StrCat("name: \"toy\" input: [", input, "] ", layers,
                              " loss { softmax_cross_entropy {} } optimizer { ", optimizer, " }"),
                 "toy");
  EXPECT_THAT(model, IsOk());
  return model.ok() ? *model : Model();
}

inline Model ShippedModel(const std::string& name) {
  v1::Model message;
  EXPECT_THAT(ReadModel(name, message), IsOk());
  const absl::StatusOr<Model> model = CompileModel(message);
  EXPECT_THAT(model, IsOk());
  return model.ok() ? *model : Model();
}

inline v1::Chip ShippedChip(const std::string& name) {
  const absl::StatusOr<v1::Chip> chip = LoadChip(name);
  EXPECT_THAT(chip, IsOk());
  return chip.ok() ? *chip : v1::Chip();
}

}  // namespace systole::emulator

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_CHIP_TOY_CHIP_H_
