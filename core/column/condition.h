// Conditions on records, answered from columns.
//
// Thread-safe: no state. A Condition is a value.
#ifndef SYSTOLE_CORE_COLUMN_CONDITION_H_
#define SYSTOLE_CORE_COLUMN_CONDITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/column/column.h"

namespace systole {

// A condition is either a list of tests of a feature, all of which must hold, or a join of
// conditions. A record that cannot be read meets no condition. A record without the feature meets
// no test but `present: false`.
struct Condition {
  std::string field;    // Its place in the spec, for messages: "select[0].where.any[1]".
  std::string feature;  // Empty: `parts` are joined.
  // Tests of the feature's value. An int64 is compared with the number as it is. A float is
  // compared with the number rounded to float, so that 0.1 finds 0.1f. NaN meets only not_in.
  std::vector<double> in;
  std::vector<double> not_in;
  std::optional<double> less;
  std::optional<double> less_equal;
  std::optional<double> greater;
  std::optional<double> greater_equal;
  std::optional<bool> present;
  std::optional<int64_t> min_length;
  std::optional<int64_t> max_length;

  bool all = false;  // All of `parts` must hold; otherwise at least one.
  std::vector<Condition> parts;

  bool tests_values() const;
};

// The names of the features that the condition tests, each once, sorted.
std::vector<std::string> FeaturesOf(const Condition& condition);

// The column of a feature.
using GetColumn = absl::FunctionRef<absl::StatusOr<Column>(const std::string& feature)>;

// Which of the records meet the condition: bit i % 64 of word i / 64 for record i. Calls `get` for
// each of FeaturesOf(condition), in order, and holds one column at a time. Besides this column,
// takes one bit of memory for each record and test. REQUIRES: all columns are of the same records.
// If the condition tests values of a feature for which facts.has_values() is false, the result has
// no meaning.
//   Cancelled  InterruptRequested().
// Also the errors of `get`.
absl::StatusOr<std::vector<uint64_t>> RecordsThatMeet(const Condition& condition, GetColumn get);

// The facts of a feature in one of several shards.
struct ShardColumnFacts {
  std::string shard;  // "shard 'a.tfrecord'", for messages.
  ColumnFacts facts;
};

// OK if the condition's tests of `feature` can be answered for all of these shards together.
// Otherwise InvalidArgument that names the field, the feature, and the first record whose list is
// not a single number, or two records with numbers of different kinds. `facts` has the facts of the
// feature, one for each shard.
absl::Status CheckComparable(const Condition& condition, absl::string_view feature,
                             absl::Span<const ShardColumnFacts> facts);

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_CONDITION_H_
