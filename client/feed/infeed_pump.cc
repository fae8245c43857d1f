#include "client/feed/infeed_pump.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/step/feed_metrics.h"
#include "core/status/check.h"

namespace systole {

InfeedPump::InfeedPump(FeedClient& client, std::vector<InfeedQueue*> queues)
    : client_(client), queues_(std::move(queues)), thread_(1) {
  SYSTOLE_CHECK(static_cast<int>(queues_.size()) == client.core_end() - client.core_begin());
  thread_.Submit([this] { Run(); });
}

InfeedPump::~InfeedPump() {
  // A trainer that has popped the end of the feed does not notice that the client and the queues
  // are cancelled here.
  client_.Cancel();
  for (InfeedQueue* queue : queues_) queue->Cancel(absl::CancelledError("the infeed was stopped"));
}

std::vector<MetricFamily> InfeedPump::Metrics() const {
  int64_t fewest = queues_.front()->size();
  for (const InfeedQueue* queue : queues_) fewest = std::min(fewest, queue->size());
  std::vector<MetricFamily> families = client_.Metrics();
  families.push_back({.name = absl::StrCat(kFeedMetricPrefix, "infeed_ready_steps"),
                      .kind = MetricKind::kGauge,
                      .help = "Steps that are ready for the core that has the fewest ready steps.",
                      .samples = {{.value = static_cast<double>(fewest)}}});
  return families;
}

void InfeedPump::Run() {
  while (true) {
    absl::StatusOr<std::optional<Step>> next = client_.Next();
    if (!next.ok() || !next->has_value()) {
      for (InfeedQueue* queue : queues_) queue->Close(next.status());
      return;
    }
    const Step& step = **next;
    const std::shared_ptr<const StepShape> shape = step.shape();
    const std::shared_ptr<const SliceLayout> layout(shape, &shape->layout);
    const std::shared_ptr<const uint8_t> memory = step.memory();
    for (size_t i = 0; i < queues_.size(); ++i) {
      const int core = step.core_begin() + static_cast<int>(i);
      const absl::Status pushed =
          queues_[i]->Push({.step = step.number(),
                            .core = core,
                            .layout = layout,
                            .slice = std::shared_ptr<const uint8_t>(memory, step.slice(core))});
      if (!pushed.ok()) {
        for (InfeedQueue* queue : queues_) queue->Cancel(pushed);
        return;
      }
    }
  }
}

}  // namespace systole
