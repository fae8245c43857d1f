#include "core/operations/draws.h"

#include "core/checksum/xxh3.h"

namespace systole {

Draws::Draws(uint32_t purpose, int before, absl::string_view key)
    : purpose_(purpose | static_cast<uint32_t>(before) << 16), key_(key.empty() ? 0 : Xxh3(key)) {}

CounterRng Draws::Rng(const ExampleKey& example) const {
  return CounterRng(example.seed ^ key_, example.epoch, example.record, purpose_);
}

}  // namespace systole
