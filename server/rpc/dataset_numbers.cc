#include "server/rpc/dataset_numbers.h"

#include <cstddef>

namespace systole {

void AddMasked(const Dataset& dataset, MaskedByCause& masked) {
  const MaskedByCause more = dataset.damage().masked_by_cause();
  for (size_t cause = 0; cause < kNumDamageCauses; ++cause) masked[cause] += more[cause];
}

std::vector<DatasetNumbers> ReadDatasetNumbers(const Catalogue& catalogue) {
  std::vector<DatasetNumbers> numbers;
  for (const auto& [name, dataset] : catalogue.datasets()) {
    numbers.push_back({.name = name,
                       .records = dataset->num_records(),
                       .damaged_stretches = dataset->num_damaged_records(),
                       .masked_examples = dataset->damage().masked_examples()});
  }
  return numbers;
}

}  // namespace systole
