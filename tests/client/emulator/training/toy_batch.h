// Invented batches for tests of the trainer. Each core gets the tensors image, label and `valid`;
// ToyCore holds their memory.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TOY_BATCH_H_
#define SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TOY_BATCH_H_

#include <cstdint>
#include <random>
#include <vector>

#include "client/emulator/training/trainer.h"
#include "core/tensor/tensor.h"

namespace systole::emulator {

template <typename Pixel = float>
struct ToyCore {
  std::vector<int64_t> image_shape, vector_shape;
  std::vector<Pixel> image;
  std::vector<int64_t> label;
  std::vector<uint8_t> valid;
  DType dtype = DType::kFloat32;

  CoreInputs Inputs() const {
    return {.image = {.dtype = dtype,
                      .shape = image_shape,
                      .data = reinterpret_cast<const uint8_t*>(image.data())},
            .label = {.dtype = DType::kInt64,
                      .shape = vector_shape,
                      .data = reinterpret_cast<const uint8_t*>(label.data())},
            .valid = {.dtype = DType::kUint8, .shape = vector_shape, .data = valid.data()}};
  }
};

template <typename Pixel>
std::vector<CoreInputs> InputsOf(const std::vector<ToyCore<Pixel>>& cores) {
  std::vector<CoreInputs> inputs;
  for (const ToyCore<Pixel>& core : cores) inputs.push_back(core.Inputs());
  return inputs;
}

// A batch of noise, with 1 added to every element whose number modulo `classes` is the example's
// label. Example e of the global batch is on core e / per_core_batch. The values of example e
// depend only on (seed, e), so another split over cores has the same examples.
inline std::vector<ToyCore<float>> ToyBatch(int64_t cores, int64_t per_core_batch,
                                            const std::vector<int64_t>& shape, int64_t classes,
                                            uint32_t seed) {
  int64_t size = 1;
  for (const int64_t dimension : shape) size *= dimension;
  std::vector<ToyCore<float>> batch(static_cast<size_t>(cores));
  int64_t example = 0;
  for (ToyCore<float>& core : batch) {
    core.image_shape = {per_core_batch};
    core.image_shape.insert(core.image_shape.end(), shape.begin(), shape.end());
    core.vector_shape = {per_core_batch};
    for (int64_t i = 0; i < per_core_batch; ++i, ++example) {
      std::mt19937 random(seed * 1000003u + static_cast<uint32_t>(example));
      const auto label = static_cast<int64_t>(random() % static_cast<uint32_t>(classes));
      for (int64_t k = 0; k < size; ++k) {
        const float noise = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
        core.image.push_back(noise + (k % classes == label ? 1.0f : 0.0f));
      }
      core.label.push_back(label);
      core.valid.push_back(1);
    }
  }
  return batch;
}

}  // namespace systole::emulator

#endif  // SYSTOLE_TESTS_CLIENT_EMULATOR_TRAINING_TOY_BATCH_H_
