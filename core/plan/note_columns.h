// Notes the columns from which conditions are answered, and refuses features that no record of the
// dataset has. Probably their names are misspelt, or the spec names the wrong dataset. A feature
// that only some records have is not refused.
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
//                    feature with the nearest name in the dataset's sample. No column of such a
//                    feature is kept in a file.
absl::StatusOr<NotedColumns> NoteColumnsOf(const Dataset& dataset,
                                           const std::vector<std::string>& features,
                                           const NoteColumnsOptions& options = {});

// NoteColumnsOf() for the `where` steps of `spec`. If all members test a feature, it is enough that
// the records of one member have it. Without a `where` it does nothing. Errors are those of
// ConditionOf() and NoteColumnsOf().
absl::Status NoteColumnsFor(const v1::FeedSpec& spec, const Dataset& dataset);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_NOTE_COLUMNS_H_
