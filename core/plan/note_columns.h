// Makes the columns of the features that conditions test (core/column), and refuses a feature that
// no record of the dataset has: its name is probably misspelt, or the spec names the wrong dataset.
// A feature that only some records have is not refused.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_NOTE_COLUMNS_H_
#define SYSTOLE_CORE_PLAN_NOTE_COLUMNS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/dataset/dataset.h"
#include "core/dataset/dataset_columns.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// Dataset::NoteColumns() of a dataset that is not joined.
//   InvalidArgument  no record has one of the features. The message names the feature, and the
//                    feature with the nearest name in the dataset's sample. The column of the
//                    refused feature is not kept in a file.
absl::StatusOr<NotedColumns> NoteColumnsOf(const Dataset& dataset,
                                           const std::vector<std::string>& features,
                                           const NoteColumnsOptions& options = {});

// NoteColumnsOf() for the `where` steps of `spec`. Does nothing if there are none. A `where` in the
// spec's own `select` tests the records of all members, so its feature is refused only if no
// member's records have it. Errors are those of ConditionOf() and NoteColumnsOf().
absl::Status NoteColumnsFor(const v1::FeedSpec& spec, const Dataset& dataset);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_NOTE_COLUMNS_H_
