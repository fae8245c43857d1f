// Which member of a zip has a feature. In the zip, a feature's name is the prefix of its member,
// followed by the feature's name in the member's records.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DATASET_ZIP_FEATURES_H_
#define SYSTOLE_CORE_DATASET_ZIP_FEATURES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/column/condition.h"
#include "core/example/example_parser.h"

namespace systole {

// What the functions below need to know about a member.
struct FeaturesOfMember {
  std::string dataset;  // For messages.
  std::string prefix;
  absl::Span<const FeatureDescription> features;  // The features of the member's first record.
};

// InvalidArgument if features of two members have the same name in the zip. The message has the
// spec's field and the remedy. Checks only the features in FeaturesOfMember.
absl::Status CheckZipNames(absl::Span<const FeaturesOfMember> members);

// A feature of a member.
struct ZipFeature {
  size_t member = 0;
  absl::string_view name;  // In the member's records.
};
// The feature that is named `name` in the zip. If no member's first record has the feature, the
// feature counts as one of the member whose prefix `name` begins with. If `name` begins with the
// prefixes of several members, the longest prefix counts. Nullopt: `name` begins with no member's
// prefix.
std::optional<ZipFeature> FindZipFeature(absl::Span<const FeaturesOfMember> members,
                                         absl::string_view name);

// Which records of a zip meet the condition, as bits (RecordsThatMeet() in core/column). `ask`
// returns the records that meet a condition on features of one member. In this condition, features
// have the names that they have in the member. The function combines the results of several
// members. So a record that one member cannot read still meets a condition with `any` if a feature
// of another member meets a part of this condition.
//   FailedPrecondition  no member has such a feature.
// Also the errors of `ask`.
using AskMember = absl::FunctionRef<absl::StatusOr<std::vector<uint64_t>>(
    size_t member, const Condition& condition)>;
absl::StatusOr<std::vector<uint64_t>> RecordsOfZipThatMeet(
    const Condition& condition, absl::Span<const FeaturesOfMember> members, AskMember ask);

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_ZIP_FEATURES_H_
