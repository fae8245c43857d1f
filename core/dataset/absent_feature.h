// The error for a feature that no record of a dataset has. Probably its name is misspelt, or the
// feed names the wrong dataset.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_
#define SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_

#include <string>

#include "absl/status/status.h"
#include "core/dataset/dataset.h"

namespace systole {

// InvalidArgument. Names the dataset and `feature`, and the feature of a similar name in the
// samples of the dataset and its members. If none is similar, lists some of their features.
absl::Status NoRecordHas(const Dataset& dataset, const std::string& feature);

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_
