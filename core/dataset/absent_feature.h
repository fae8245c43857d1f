// The error for a feature that no record of a dataset has. Probably the feature's name is misspelt,
// or the feed names the wrong dataset.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_
#define SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_

#include <string>

#include "absl/status/status.h"
#include "core/dataset/dataset.h"

namespace systole {

// InvalidArgument. The message names the dataset, `feature`, and a feature with a similar name from
// the samples of the dataset and its members. If no name is similar, the message lists some
// features of these samples.
absl::Status NoRecordHas(const Dataset& dataset, const std::string& feature);

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_
