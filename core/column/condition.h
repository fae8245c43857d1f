// Conditions on records, tested on columns (column.h).
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

// A condition is one of two things: a list of tests of one feature, all of which must hold; or a
// join of conditions by `all` or `any`. A record that cannot be read meets no condition. A record
// without the feature meets only the test `present: false`.
struct Condition {
  std::string field;    // The condition's place in the spec: "select[0].where.any[1]".
  std::string feature;  // The feature that is tested. Empty: the condition joins `parts`.
  // Tests of the feature's value against a number of the spec. For an int64, neither is rounded.
  // For a float, the spec's number is rounded to float first, so 0.1 finds 0.1f. Of these tests, a
  // NaN meets only not_in.
  std::vector<double> in;
  std::vector<double> not_in;
  std::optional<double> less;
  std::optional<double> less_equal;
  std::optional<double> greater;
  std::optional<double> greater_equal;
  std::optional<bool> present;
  std::optional<int64_t> min_length;
  std::optional<int64_t> max_length;

  bool all = false;  // True: all of `parts` must hold. False: at least one of them must.
  std::vector<Condition> parts;

  bool tests_values() const;
};

// The names of the features that the condition tests, each once, sorted.
std::vector<std::string> FeaturesOf(const Condition& condition);

// Gets the column of a feature.
using GetColumn = absl::FunctionRef<absl::StatusOr<Column>(const std::string& feature)>;

// Which of the records meet the condition: bit i % 64 of word i / 64 is 1 if record i does. Calls
// `get` for each of FeaturesOf(condition), in order. Holds one column at a time, and in addition
// one bit of memory for each record and test. REQUIRES: all columns are of the same records. The
// result has no meaning if the condition tests values of a feature whose column has no values
// (ColumnFacts::has_values()).
//   Cancelled  InterruptRequested().
// Also the errors of `get`.
absl::StatusOr<std::vector<uint64_t>> RecordsThatMeet(const Condition& condition, GetColumn get);

// The facts of a feature's column in one of several shards.
struct ShardColumnFacts {
  std::string shard;  // "shard 'a.tfrecord'", for messages.
  ColumnFacts facts;
};

// OK if the condition tests no values of `feature`, or if all values in all shards are single
// numbers of one kind. Otherwise InvalidArgument. The message names the condition's field, the
// feature, and either the first record whose list is not a single number, or two records with
// numbers of different kinds. `facts` has an element for each shard.
absl::Status CheckComparable(const Condition& condition, absl::string_view feature,
                             absl::Span<const ShardColumnFacts> facts);

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_CONDITION_H_
