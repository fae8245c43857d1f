// Answers about the datasets of a catalogue, but only about those that the caller may know of.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_RPC_DATASET_ANSWERS_H_
#define SYSTOLE_SERVER_RPC_DATASET_ANSWERS_H_

#include "absl/status/status.h"
#include "server/access/permissions.h"
#include "server/rpc/catalogue.h"
#include "systole/v1/service.pb.h"

namespace systole {

// The answer of ListDatasets. Unauthenticated if the caller is anonymous and may list nothing.
absl::Status ListDatasets(const Catalogue& catalogue, const Permissions& permissions,
                          v1::ListDatasetsResponse& response);

// The answer of DescribeDataset.
//   Unauthenticated  the caller is anonymous and may neither read nor list the dataset, whether or
//                    not it exists.
//   NotFound         the dataset does not exist, or the caller may not know of it.
// Also the errors of Catalogue::Find.
absl::Status DescribeDataset(const Catalogue& catalogue, const Permissions& permissions,
                             const v1::DescribeDatasetRequest& request,
                             v1::DescribeDatasetResponse& response);

// Adds the damage that was met in datasets that the caller may list. For ServerStatus.
void AddDamage(const Catalogue& catalogue, const Permissions& permissions,
               v1::ServerStatusResponse& response);

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_DATASET_ANSWERS_H_
