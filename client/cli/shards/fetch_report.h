// For `systole inspect --spec`: what a feed fetches in each epoch from shards on other machines.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_FETCH_REPORT_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_FETCH_REPORT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/plan/epoch_bytes.h"
#include "core/record/source/record_source.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The bytes and requests of a spec's epochs.
struct FetchReport {
  EpochBytes epoch;
  std::optional<WindowProposal> window;
  std::string text;
};

// Open shards by the name of their dataset.
using ShardsOfDatasets = std::map<std::string, std::vector<std::unique_ptr<const RecordSource>>>;

// Says what a feed of `spec` fetches. `shards` holds the shards of each dataset that the spec
// names. `room` is the space that a process has for bytes of shards on other machines. Returns
// nullopt if all shards are on this machine.
//   InvalidArgument  the spec does not suit the shards.
//   NotFound         the spec names a dataset that is not in `shards`.
absl::StatusOr<std::optional<FetchReport>> ReportFetches(const v1::FeedSpec& spec,
                                                         ShardsOfDatasets shards,
                                                         const ReadRoom& room);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_FETCH_REPORT_H_
