#include "core/plan/note_columns.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/column/condition.h"
#include "core/plan/where_plan.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"
#include "core/text/did_you_mean.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

using Names = std::set<std::string>;

// The most names that an error lists; a record may have any number of features.
constexpr size_t kMostListed = 20;

absl::Status NoRecordHas(const Dataset& dataset, const std::string& feature) {
  std::vector<std::string> known = dataset.sample().names();
  for (const std::shared_ptr<const Dataset>& member : dataset.members()) {
    for (std::string& name : member->sample().names()) known.push_back(std::move(name));
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const std::string meant = DidYouMean(feature, known);
  std::vector<std::string> listed;
  for (const std::string& name : known) {
    if (listed.size() < kMostListed) listed.push_back(ForeignName(name));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "dataset '", dataset.name(), "': no record has the feature '", ForeignName(feature), "'",
      !meant.empty()  ? meant
      : known.empty() ? "; its records may be no examples"
                      : absl::StrCat("; its records have ", absl::StrJoin(listed, ", "),
                                     known.size() > kMostListed ? ", .." : "")));
}

// Adds the features that the `where` steps of `selects` test.
template <typename Selects>
absl::Status AddFeatures(const Selects& selects, const std::string& prefix, Names& features) {
  for (int i = 0; i < selects.size(); ++i) {
    if (!selects[i].has_where()) continue;
    SYSTOLE_ASSIGN_OR_RETURN(
        const Condition condition,
        ConditionOf(selects[i].where(), absl::StrCat(prefix, "select[", i, "].where")));
    for (std::string& feature : FeaturesOf(condition)) features.insert(std::move(feature));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NotedColumns> NoteColumnsOf(const Dataset& dataset,
                                           const std::vector<std::string>& features,
                                           const NoteColumnsOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(NotedColumns noted, dataset.NoteColumns(features, options));
  if (!noted.absent.empty()) return NoRecordHas(dataset, noted.absent.front());
  return noted;
}

absl::Status NoteColumnsFor(const v1::FeedSpec& spec, const Dataset& dataset) {
  Names shared;
  SYSTOLE_RETURN_IF_ERROR(AddFeatures(spec.select(), "", shared));
  const auto& members = MembersOf(spec);
  // Datasets that FeedPlan will refuse need no columns.
  if (static_cast<size_t>(members.size()) != dataset.members().size()) return absl::OkStatus();
  if (members.empty()) {
    return NoteColumnsOf(dataset, {shared.begin(), shared.end()}).status();
  }
  std::vector<NotedColumns> noted_of;
  Names nowhere = shared;  // The shared features that no record of a member has.
  for (int i = 0; i < members.size(); ++i) {
    const Dataset& member = *dataset.members()[static_cast<size_t>(i)];
    Names own;
    SYSTOLE_RETURN_IF_ERROR(AddFeatures(members[i].select(), SelectPrefix(spec, i), own));
    Names both = own;
    both.insert(shared.begin(), shared.end());
    SYSTOLE_ASSIGN_OR_RETURN(NotedColumns noted, member.NoteColumns({both.begin(), both.end()}));
    for (const std::string& feature : noted.absent) {
      if (own.contains(feature)) return NoRecordHas(member, feature);
    }
    Names still;
    std::set_intersection(nowhere.begin(), nowhere.end(), noted.absent.begin(), noted.absent.end(),
                          std::inserter(still, still.end()));
    nowhere = std::move(still);
    noted_of.push_back(std::move(noted));
  }
  if (!nowhere.empty()) return NoRecordHas(dataset, *nowhere.begin());
  for (size_t i = 0; i < noted_of.size(); ++i) dataset.members()[i]->KeepColumns(noted_of[i]);
  return absl::OkStatus();
}

}  // namespace systole
