#include "core/operations/ops/draws.h"

#include "core/checksum/xxh3.h"
#include "core/status/check.h"

namespace systole {

Draws::Draws(uint32_t purpose, int before, absl::string_view key)
    : purpose_(purpose | static_cast<uint32_t>(before) << 16), key_(key.empty() ? 0 : Xxh3(key)) {}

Draws::Draws(const TensorFlowSeed& seed) : tensorflow_(seed) {}

CounterRng Draws::Rng(const ExampleKey& example) const {
  SYSTOLE_CHECK(!is_tensorflow());
  return CounterRng(example.seed ^ key_, example.epoch, example.record, purpose_);
}

TensorFlowRng Draws::TensorFlow(const ExampleKey& example) const {
  SYSTOLE_CHECK(is_tensorflow());
  return TensorFlowRng(FoldIn(FoldIn(*tensorflow_, example.epoch), example.record));
}

float Draws::UniformFloat(const ExampleKey& example) const {
  return is_tensorflow() ? TensorFlow(example).UniformFloat() : Rng(example).UniformFloat();
}

}  // namespace systole
