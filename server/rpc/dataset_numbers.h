// Reads a server's counts for its datasets. They become metrics (server/metrics).
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_RPC_DATASET_NUMBERS_H_
#define SYSTOLE_SERVER_RPC_DATASET_NUMBERS_H_

#include <vector>

#include "core/dataset/damage_cause.h"
#include "core/dataset/dataset.h"
#include "server/metrics/dataset_metrics.h"
#include "server/rpc/catalogue.h"

namespace systole {

// Adds the examples of `dataset` that were masked in feeds.
void AddMasked(const Dataset& dataset, MaskedByCause& masked);

// The numbers of each dataset that is served, by name.
std::vector<DatasetNumbers> ReadDatasetNumbers(const Catalogue& catalogue);

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_DATASET_NUMBERS_H_
