// The error for a feature that no record of a dataset has. Its name is misspelt, or it is the wrong
// dataset.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_
#define SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_

#include <string>

#include "absl/status/status.h"
#include "core/dataset/dataset.h"

namespace systole {

// InvalidArgument. Names the dataset and `feature`, and the feature with the nearest name in the
// dataset's sample. If there is none, lists some features of the sample.
absl::Status NoRecordHas(const Dataset& dataset, const std::string& feature);

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_ABSENT_FEATURE_H_
