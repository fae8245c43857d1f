// Checks the conditions of a spec's `where` steps, and makes the lists of the records that meet
// these conditions.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_WHERE_PLAN_H_
#define SYSTOLE_CORE_PLAN_WHERE_PLAN_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/column/condition.h"
#include "core/dataset/dataset.h"
#include "core/dataset/record_lists.h"
#include "core/order/record_list.h"
#include "core/spec/order_spec.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// Bounds for conditions. They exist because a peer may have written the spec.
inline constexpr int kMaxWhereValues = 1024;    // In one `in` or `not_in`.
inline constexpr int kMaxWhereConditions = 64;  // In all `where` steps together, at all levels.
inline constexpr int kMaxWhereLevels = 8;       // Of conditions within conditions.
// The most `where` steps of a spec.
inline constexpr int kMaxWheres = 8;

// Checks and translates `where`. `field` is its path in the spec, such as "select[1].where".
//   InvalidArgument  `where` is not as feed.proto says. The message begins with the path of the
//                    wrong field.
absl::StatusOr<Condition> ConditionOf(const v1::Where& where, absl::string_view field);

// Calls `visit` for each `where` of the spec, with the path of the `where` as `field`: first for
// those of the feed's own `select`, then for those of the members in order. `member` is like
// WhereStep::member. Stops at the first error of `visit`, and returns it.
using VisitWhere =
    absl::FunctionRef<absl::Status(int member, const v1::Where& where, const std::string& field)>;
absl::Status ForEachWhere(const v1::FeedSpec& spec, VisitWhere visit);

// Checks all `where` steps of the spec and their number, before the list of any step is made.
//   InvalidArgument  the errors of ConditionOf(), or there are too many steps or conditions.
absl::Status CheckWheres(const v1::FeedSpec& spec);

// For OrderSpecOf(): the list of the records that meet the `where` of `step`. `step` is a step of
// `spec`, and `dataset` is the dataset of `spec`. Feeds of the same datasets and steps share a list
// in `lists`. A new list takes one of the places of `peer` (RecordLists). Searches for records that
// run at the same time divide the memory of lists.memory() among them (LookUpMemory::Share).
//   InvalidArgument     the errors of ConditionOf() and CheckComparable(), or no record has a
//                       feature that `step` tests. If `step` chooses from the records of all
//                       members, it is enough that a record of one member has the feature.
//   FailedPrecondition  a shard has no column of a feature that `step` tests. The message says how
//                       to note the column.
//   ResourceExhausted   too many lists are in use (RecordLists).
//   Cancelled           InterruptRequested().
// Also the errors of Dataset::RecordsThatMeet().
absl::StatusOr<std::shared_ptr<const RecordList>> ListOf(const v1::FeedSpec& spec,
                                                         const Dataset& dataset,
                                                         const WhereStep& step, RecordLists& lists,
                                                         const std::string& peer);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_WHERE_PLAN_H_
