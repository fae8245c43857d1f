// Takes the steps of a feed and prints their labels: example ADDRESS SPEC
// Or takes one step and writes the feed's metrics:   example ADDRESS SPEC METRICS_FILE
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "client/feed/feed_client.h"
#include "core/metrics/exposition.h"
#include "core/status/status_macros.h"
#include "core/textproto/message_text.h"
#include "systole/v1/feed.pb.h"

namespace {

// [README]
absl::Status PrintSteps(const std::string& server, const std::string& spec_file) {
  systole::v1::FeedSpec spec;
  SYSTOLE_RETURN_IF_ERROR(systole::LoadMessage(spec_file, spec));
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<systole::FeedClient> feed,
                           systole::FeedClient::Create(spec, {.servers = {server}}));
  while (true) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::optional<systole::Step> step, feed->Next());
    if (!step.has_value()) return absl::OkStatus();
    for (int core = step->core_begin(); core < step->core_end(); ++core) {
      const systole::TensorView labels = step->Tensor(core, "label");
      std::cout << "step " << step->number() << ", core " << core << ": "
                << absl::StrJoin(labels.As<int64_t>(), " ") << "\n";
    }
  }
}
// [/README]

// [README]
absl::Status WriteMetrics(const systole::FeedClient& feed, const std::string& path) {
  std::ofstream(path + ".new") << systole::ExpositionOf(feed.Metrics());
  if (std::rename((path + ".new").c_str(), path.c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write " + path);
}
// [/README]

// Takes one step and writes the metrics.
absl::Status MeasureAStep(const std::string& server, const std::string& spec_file,
                          const std::string& path) {
  systole::v1::FeedSpec spec;
  SYSTOLE_RETURN_IF_ERROR(systole::LoadMessage(spec_file, spec));
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<systole::FeedClient> feed,
                           systole::FeedClient::Create(spec, {.servers = {server}}));
  SYSTOLE_RETURN_IF_ERROR(feed->Next().status());
  return WriteMetrics(*feed, path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: example ADDRESS SPEC [METRICS_FILE]\n";
    return 2;
  }
  const absl::Status status =
      argc == 4 ? MeasureAStep(argv[1], argv[2], argv[3]) : PrintSteps(argv[1], argv[2]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
