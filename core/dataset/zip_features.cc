#include "core/dataset/zip_features.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

std::string MemberName(absl::Span<const FeaturesOfMember> members, size_t i) {
  return absl::StrCat("zip[", i, "] ('", ForeignName(members[i].dataset), "')");
}

// `condition` with each feature's name as it is in the member.
Condition WithoutPrefix(Condition condition, size_t prefix_bytes) {
  if (!condition.feature.empty()) condition.feature.erase(0, prefix_bytes);
  for (Condition& part : condition.parts) part = WithoutPrefix(std::move(part), prefix_bytes);
  return condition;
}

}  // namespace

absl::Status CheckZipNames(absl::Span<const FeaturesOfMember> members) {
  std::map<std::string, size_t> member_of;
  for (size_t i = 0; i < members.size(); ++i) {
    for (const FeatureDescription& feature : members[i].features) {
      std::string name = absl::StrCat(members[i].prefix, feature.name);
      const auto [known, added] = member_of.emplace(std::move(name), i);
      if (added) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("zip[", i, "].prefix is '", ForeignName(members[i].prefix), "', so ",
                       MemberName(members, i), " and ", MemberName(members, known->second),
                       " both have a feature '", ForeignName(known->first),
                       "'; want prefixes that tell them apart, such as prefix: '", i, "/'"));
    }
  }
  return absl::OkStatus();
}

std::optional<ZipFeature> FindZipFeature(absl::Span<const FeaturesOfMember> members,
                                         absl::string_view name) {
  std::optional<ZipFeature> longest;
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string& prefix = members[i].prefix;
    if (!absl::StartsWith(name, prefix)) continue;
    const ZipFeature found = {.member = i, .name = name.substr(prefix.size())};
    if (std::any_of(members[i].features.begin(), members[i].features.end(),
                    [&](const FeatureDescription& each) { return each.name == found.name; })) {
      return found;
    }
    // If the name without its prefix is shorter, the prefix is longer.
    if (!longest.has_value() || found.name.size() < longest->name.size()) longest = found;
  }
  return longest;
}

absl::StatusOr<std::vector<uint64_t>> RecordsOfZipThatMeet(
    const Condition& condition, absl::Span<const FeaturesOfMember> members, AskMember ask) {
  std::optional<size_t> member;
  bool of_one = true;
  for (const std::string& feature : FeaturesOf(condition)) {
    const std::optional<ZipFeature> found = FindZipFeature(members, feature);
    if (!found.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat("no member of the zip has a feature '",
                                                        ForeignName(feature),
                                                        "': the name has no member's prefix"));
    }
    of_one = of_one && member.value_or(found->member) == found->member;
    member = found->member;
  }
  if (of_one && member.has_value()) {
    return ask(*member, WithoutPrefix(condition, members[*member].prefix.size()));
  }
  std::vector<uint64_t> bits;
  for (size_t i = 0; i < condition.parts.size(); ++i) {
    SYSTOLE_ASSIGN_OR_RETURN(std::vector<uint64_t> more,
                             RecordsOfZipThatMeet(condition.parts[i], members, ask));
    if (i == 0) {
      bits = std::move(more);
      continue;
    }
    for (size_t word = 0; word < bits.size(); ++word) {
      bits[word] = condition.all ? bits[word] & more[word] : bits[word] | more[word];
    }
  }
  return bits;
}

}  // namespace systole
