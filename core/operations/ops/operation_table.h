// The table of all operations; operation_rows.h has their list.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_TABLE_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_TABLE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/operations/ops/operation_row.h"
#include "systole/v1/feed.pb.h"

namespace systole {

absl::Span<const OperationRow> Operations();

// Describes mixup or cutmix, which mix the examples of a group. They are not transforms but fields
// of v1::Mix; mix_draws.h checks their parameters.
struct MixRow {
  absl::string_view name;  // The name of the field of v1::Mix.
  OperationGuide guide;    // The guide's example is a field of a spec.
};

absl::Span<const MixRow> MixOperations();

// `transform`, of this row's kind, with every default written out.
v1::Transform WithDefaults(const OperationRow& row, v1::Transform transform);

// Null if there is no operation of this kind.
const OperationRow* FindOperation(v1::Transform::KindCase kind);

// The ways in which a feed can run the operation, fastest first. The transforms before the
// operation decide which of these ways the feed uses.
std::vector<v1::TransformRun> PossibleRuns(const OperationRow& row);

// The name of the operation's field in v1::Transform.
std::string OperationName(v1::Transform::KindCase kind);

// "decode_jpeg, decode_raw, ..".
std::string OperationNames();

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_OPERATION_TABLE_H_
