// The conditions of a spec's `where` steps: checks them, and makes the lists of records that meet
// them.
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

// The bounds of a condition, which a peer may have written.
inline constexpr int kMaxWhereValues = 1024;    // In `in` and in `not_in`.
inline constexpr int kMaxWhereConditions = 64;  // In all `where` of a spec, at any level.
inline constexpr int kMaxWhereLevels = 8;
// The most `where` steps of a spec.
inline constexpr int kMaxWheres = 8;

// The condition `where`, whose place in the spec is `field`.
//   InvalidArgument  `where` is not as feed.proto says. The message names the field within `field`.
absl::StatusOr<Condition> ConditionOf(const v1::Where& where, absl::string_view field);

// Calls `visit` for each `where` of the spec, with its place: first those of the feed's own
// `select`, then those of the members in order. `member` as in WhereStep. Returns the first error
// of `visit`.
using VisitWhere =
    absl::FunctionRef<absl::Status(int member, const v1::Where& where, const std::string& field)>;
absl::Status ForEachWhere(const v1::FeedSpec& spec, VisitWhere visit);

// Checks all `where` steps of the spec and their number, before the list of any step is made.
//   InvalidArgument  the errors of ConditionOf(), or there are too many steps or conditions.
absl::Status CheckWheres(const v1::FeedSpec& spec);

// For OrderSpecOf(): the list of `step`, a step of `spec` over `dataset`. Feeds of the same
// datasets and steps share a list of `lists`. A new list takes one of the places of `peer`
// (RecordLists). The look-up takes a share of lists.memory().
//   InvalidArgument     the errors of ConditionOf() and CheckComparable(), or no record has a
//                       feature that `step` tests. For a step of all members it is enough that a
//                       record of one member has the feature.
//   FailedPrecondition  a shard has no column of such a feature. The message says how to note the
//                       column.
//   ResourceExhausted   too many lists are in use (RecordLists).
//   Cancelled           InterruptRequested().
// Also the errors of Dataset::RecordsThatMeet().
absl::StatusOr<std::shared_ptr<const RecordList>> ListOf(const v1::FeedSpec& spec,
                                                         const Dataset& dataset,
                                                         const WhereStep& step, RecordLists& lists,
                                                         const std::string& peer);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_WHERE_PLAN_H_
