// Takes the steps of a feed and prints their labels: example ADDRESS SPEC
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "client/feed/feed_client.h"
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: example ADDRESS SPEC\n";
    return 2;
  }
  const absl::Status status = PrintSteps(argv[1], argv[2]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
