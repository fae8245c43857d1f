#include "client/cli/shards/fetch_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/dataset/dataset.h"
#include "core/plan/feed_plan.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {

absl::StatusOr<std::optional<FetchReport>> ReportFetches(const v1::FeedSpec& spec,
                                                         ShardsOfDatasets shards,
                                                         const ReadRoom& room) {
  std::map<std::string, std::shared_ptr<const Dataset>> datasets;
  for (auto& [name, own] : shards) {
    SYSTOLE_ASSIGN_OR_RETURN(datasets[name], Dataset::Create(name, std::move(own)));
  }
  const auto find = [&](const std::string& name) -> absl::StatusOr<std::shared_ptr<const Dataset>> {
    const auto found = datasets.find(name);
    if (found != datasets.end()) return found->second;
    return absl::NotFoundError(absl::StrCat("no shards of dataset '", ForeignName(name), "'"));
  };
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> dataset, DatasetOf(spec, find));
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const FeedPlan> plan,
                           FeedPlan::Create(spec, dataset));
  FetchReport report = {.epoch = EpochBytesOf(*plan, room), .window = ProposeWindow(*plan, room)};
  if (report.epoch.set_bytes == 0) return std::nullopt;
  report.text = absl::StrCat("a feed of this spec: ", EpochText(*plan, report.epoch), "\n");
  if (report.window.has_value()) {
    absl::StrAppend(&report.text, "with this line in the spec instead, an epoch ",
                    CostText(*report.window), ":\n  ", SpecText(*report.window), "\n");
  }
  return report;
}

}  // namespace systole
