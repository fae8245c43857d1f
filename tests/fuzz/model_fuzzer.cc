// Reads any text as a model. If the model is accepted and small, the test takes two training steps
// and one evaluation on pixels that are all 0. Nothing may overflow, and no allocation may exceed
// the limit.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/trainer.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

using systole::DType;
using systole::emulator::CoreInputs;
using systole::emulator::Model;
using systole::emulator::Trainer;

SYSTOLE_FUZZER(model, const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Model> model = systole::emulator::ParseModel(text, "fuzz");
  if (!model.ok() || model->training_macs() > 1000000) return 0;
  absl::StatusOr<Trainer> trainer =
      Trainer::Create(*model, {.num_cores = 2, .memory_limit_bytes = 1 << 22});
  if (!trainer.ok()) return 0;
  const std::vector<uint8_t> pixels(static_cast<size_t>(model->input.size()));
  const std::vector<int64_t> shape = {1, model->input.size()}, one = {1};
  const int64_t label = 1;
  const uint8_t valid = 1;
  const CoreInputs inputs = {
      .image = {.dtype = DType::kUint8, .shape = shape, .data = pixels.data()},
      .label = {.dtype = DType::kInt64,
                .shape = one,
                .data = reinterpret_cast<const uint8_t*>(&label)},
      .valid = {.dtype = DType::kUint8, .shape = one, .data = &valid}};
  const std::vector<CoreInputs> cores = {inputs, inputs};
  for (int step = 0; step < 2; ++step) SYSTOLE_CHECK(trainer->Step(cores).ok());
  SYSTOLE_CHECK(trainer->Evaluate(cores).ok());
  return 0;
}
