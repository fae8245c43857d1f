#include "core/plan/note_columns.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/column/condition.h"
#include "core/dataset/absent_feature.h"
#include "core/plan/where_plan.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using Names = std::set<std::string>;

}  // namespace

absl::StatusOr<NotedColumns> NoteColumnsOf(const Dataset& dataset,
                                           const std::vector<std::string>& features,
                                           const NoteColumnsOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(NotedColumns noted, dataset.NoteColumns(features, options));
  if (!noted.absent.empty()) return NoRecordHas(dataset, noted.absent.front());
  return noted;
}

absl::Status NoteColumnsFor(const v1::FeedSpec& spec, const Dataset& dataset) {
  std::map<int, Names> features_of;  // By member, as in WhereStep.
  SYSTOLE_RETURN_IF_ERROR(ForEachWhere(
      spec, [&](int member, const v1::Where& where, const std::string& field) -> absl::Status {
        SYSTOLE_ASSIGN_OR_RETURN(const Condition condition, ConditionOf(where, field));
        for (std::string& feature : FeaturesOf(condition)) {
          features_of[member].insert(std::move(feature));
        }
        return absl::OkStatus();
      }));
  const Names& shared = features_of[kOwnSelect];
  const auto& members = MembersOf(spec);
  // Datasets that FeedPlan will refuse need no columns.
  if (static_cast<size_t>(members.size()) != dataset.members().size()) return absl::OkStatus();
  if (members.empty()) {
    return NoteColumnsOf(dataset, {shared.begin(), shared.end()}).status();
  }
  std::vector<NotedColumns> noted_of;
  Names nowhere = shared;  // Shared features that no member's records have.
  for (int i = 0; i < members.size(); ++i) {
    const Dataset& member = *dataset.members()[static_cast<size_t>(i)];
    const Names& own = features_of[i];
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
