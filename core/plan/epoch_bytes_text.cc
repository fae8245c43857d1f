// EpochBytes and WindowProposal as sentences.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/order/order.h"
#include "core/plan/epoch_bytes.h"
#include "core/spec/order_spec.h"
#include "core/text/size_text.h"

namespace systole {
namespace {

// "117.2 GB, all of the set", "11.7 GB of the 117.2 GB of the set", "156.0 GB, 1.33 times the set".
std::string ShareText(int64_t bytes, int64_t set) {
  const double times = static_cast<double>(bytes) / static_cast<double>(set);
  if (times > 1.005) return absl::StrFormat("%s, %.2f times the set", SizeText(bytes), times);
  if (times > 0.995) return absl::StrCat(SizeText(bytes), ", all of the set");
  return absl::StrCat(SizeText(bytes), " of the ", SizeText(set), " of the set");
}

std::string RequestsText(int64_t requests) {
  return absl::StrCat("about ", requests, requests == 1 ? " request" : " requests");
}

// Why the epoch fetches these bytes.
std::string WhyText(ShuffleMode mode, const EpochBytes& epoch) {
  if (epoch.keeps_all) return "the whole set is kept";
  if (!epoch.holds) {
    return absl::StrCat(
        mode == ShuffleMode::kWindow ? "a window's blocks take " : "the runs used at a time take ",
        SizeText(epoch.held_bytes),
        ", for which --read-budget has no room, so some are fetched again");
  }
  if (epoch.by_record && mode != ShuffleMode::kGlobal) {
    return "each record is a file, and is fetched by itself";
  }
  switch (mode) {
    case ShuffleMode::kGlobal:
      return "GLOBAL fetches record by record";
    case ShuffleMode::kWindow:
      return absl::StrCat("a window's blocks take ", SizeText(epoch.held_bytes),
                          " of memory, and each is fetched once");
    case ShuffleMode::kNone:
      break;
  }
  return "records come in the order of the shards";
}

}  // namespace

std::string EpochText(const FeedPlan& plan, const EpochBytes& epoch) {
  return absl::StrCat("the first epoch fetches ", epoch.exact ? "" : "about ",
                      ShareText(epoch.first_bytes, epoch.set_bytes), ", in ",
                      RequestsText(epoch.first_requests), ", and each later one ",
                      SizeText(epoch.later_bytes), ": ", WhyText(plan.order().spec().mode, epoch));
}

std::string SpecText(const WindowProposal& window) {
  return absl::StrCat("shuffle { mode: WINDOW block_records: ", window.block_records,
                      " window_records: ", window.window_records, " }");
}

std::string CostText(const WindowProposal& window) {
  return absl::StrCat(
      "fetches ", window.epoch.exact ? "" : "about ", SizeText(window.epoch.first_bytes), " in ",
      RequestsText(window.epoch.first_requests), ", and holds ", SizeText(window.epoch.held_bytes),
      " in memory (--read-budget ", window.memory_bytes >> 20, "MB)");
}

}  // namespace systole
