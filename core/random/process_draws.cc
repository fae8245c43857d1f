#include "core/random/process_draws.h"

#include <unistd.h>

#include <memory>

#include "core/random/counter_rng.h"

namespace systole {

std::function<double()> DrawsOfProcess(uint64_t now, uint32_t purpose) {
  const auto draws = std::make_shared<CounterRng>(now, ::getpid(), 0, purpose);
  return [draws] { return double{draws->UniformFloat()}; };
}

}  // namespace systole
