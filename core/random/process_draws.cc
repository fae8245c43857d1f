#include "core/random/process_draws.h"

#include <unistd.h>

#include <memory>

#include "core/random/counter_rng.h"

namespace systole {

std::function<double()> DrawsOfProcess(uint64_t now, uint32_t purpose) {
  const auto draws = std::make_shared<CounterRng>(now, ::getpid(), 0, purpose);
  return [draws] { return double{draws->UniformFloat()}; };
}

uint64_t NumberOfProcess(uint64_t now, uint32_t purpose) {
  const std::function<double()> draw = DrawsOfProcess(now, purpose);
  const auto word = [&draw] { return static_cast<uint64_t>(draw() * 0x1p32); };
  const uint64_t high = word() << 32;
  return high | word();
}

}  // namespace systole
