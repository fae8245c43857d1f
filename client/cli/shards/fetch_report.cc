#include "client/cli/shards/fetch_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/dataset/dataset.h"
#include "core/plan/feed_plan.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<std::optional<FetchReport>> ReportFetches(
    const v1::FeedSpec& spec, std::vector<std::unique_ptr<const RecordSource>> shards,
    const ReadRoom& room) {
  if (!MembersOf(spec).empty() || !spec.zip().empty()) {
    return absl::InvalidArgumentError(
        "--spec: the spec names several datasets, and the shards here are one; inspect them one by "
        "one, with a spec that names one `dataset`");
  }
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> dataset,
                           Dataset::Create(spec.dataset(), std::move(shards)));
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
