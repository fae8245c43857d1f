// Makes an OrderSpec (core/order) from the part of a feed spec that decides which record comes at
// which place of the feed. The server serves the records in this order. If it cannot use a record,
// it marks the record's place in the step as invalid. The client makes the same order to find out
// which record belongs to an invalid place.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_SPEC_ORDER_SPEC_H_
#define SYSTOLE_CORE_SPEC_ORDER_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/order/order.h"
#include "core/order/record_list.h"
#include "core/order/selection.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// How many records a dataset has.
struct DatasetRecords {
  int64_t num_records = 0;
  // The number of records of each shard, in order. Used only if SelectsByShards().
  absl::Span<const int64_t> per_shard;
};

// The most members of a zip. Each record of a zip is read from all members.
inline constexpr int kMaxZipMembers = 8;
// The most bytes of a member's prefix.
inline constexpr size_t kMaxPrefixBytes = 64;

// The members of the spec's mixture or concatenation. In a mixture the members' records take turns.
// In a concatenation the records of one member follow those of the member before. Empty if the spec
// names one dataset or a zip, because for the order a zip is one dataset.
const google::protobuf::RepeatedPtrField<v1::Member>& MembersOf(const v1::FeedSpec& spec);

// Checks how the spec names its datasets: by one of `dataset`, `mixture`, `concatenation` and
// `zip`, with at most kMaxMembers members, and 2 to kMaxZipMembers in a zip.
//   InvalidArgument  the spec breaks one of these rules, or a member or `select` has a field that
//                    is not allowed there, such as a weight outside of a mixture. The message names
//                    the field.
absl::Status CheckMembers(const v1::FeedSpec& spec);

// The text that messages put before "select" to name one `select` of the spec: "" or "mixture[0].".
// `member` is the number of a member, or kOwnSelect.
std::string SelectPrefix(const v1::FeedSpec& spec, int member);

// The spec's datasets, for people: "flowers", "flowers + leaves", or for a zip "flowers & depths".
std::string DatasetNames(const v1::FeedSpec& spec);
// The names of the spec's datasets.
std::vector<std::string> DatasetsOf(const v1::FeedSpec& spec);

// The number of cores that share a step: 1 if the spec does not say.
int NumCoresOf(const v1::FeedSpec& spec);

// Whether a `select` of the spec depends on how many records each shard has. If the spec has
// members, looks only at the feed's own `select` and at the `select` of the member with the number
// `member`.
bool SelectsByShards(const v1::FeedSpec& spec, int member = 0);

// A `where` of the spec, and the records from which it chooses.
struct WhereStep {
  const v1::Where& where;
  std::string field;  // "select[1].where" or "mixture[0].select[1].where", for messages.
  // The number of the member whose `select` has this `where`. kOwnSelect: the feed's own `select`
  // has the `where`, which chooses from the records of all members.
  int member;
  int step;  // The index of the `where` among all steps of this `select`.
  // The records that the steps before this one leave.
  const Selection& before;
};
inline constexpr int kOwnSelect = -1;

// Returns the positions in `step.before` of the records that meet the condition. Called once for
// each `where`: first for the `where` steps of the members, in order, and then for those of the
// feed's own `select`.
using FindList =
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<const RecordList>>(const WhereStep& step)>;
// A FindList that returns an error for every step.
absl::StatusOr<std::shared_ptr<const RecordList>> NoLists(const WhereStep& step);

// The order that the spec asks for. `datasets` has one element for each of MembersOf(spec), or just
// one if MembersOf(spec) is empty, as for a zip. REQUIRES: the values of the spec's enumerations
// are known.
//   InvalidArgument  the errors of CheckMembers(); a `select`, of the feed or of a member, cannot
//                    be applied; a mixture cannot be made; `weights` cannot be applied; or
//                    `weights` is set without a mixture. The message names the field.
// Also the errors of `find`. The other numbers of the spec are checked by Order::Create(). If the
// spec has `weights`, this function calls Order::Create(), and returns its errors, too.
absl::StatusOr<OrderSpec> OrderSpecOf(const v1::FeedSpec& spec,
                                      absl::Span<const DatasetRecords> datasets,
                                      FindList find = NoLists);

// Replaces each `from_example` of spec.weights by the equivalent `from_step`, if a step begins at
// this example. `order` is the spec's order. Two specs that differ only in how they name the
// beginning of a change become equal.
void WriteChangesBySteps(const Order& order, v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CORE_SPEC_ORDER_SPEC_H_
