#include "server/streams/running_streams.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"
#include "server/streams/end_cause.h"

namespace systole {
namespace {

// The name of the output that costs `trainer` most. A client may name an output that does not
// exist.
std::string OutputName(const TrainerReport& trainer, const FeedPlan& plan) {
  const auto& tensors = plan.layout().tensors();
  if (trainer.output < 0 || static_cast<size_t>(trainer.output) >= tensors.size()) return "";
  return ForeignName(tensors[static_cast<size_t>(trainer.output)].spec.name);
}

StreamSnapshot SnapshotOf(const RunningStream& stream, const TrainerWaits& waits) {
  StreamSnapshot snapshot = {.number = stream.handle->number(),
                             .client = stream.client,
                             .dataset = stream.dataset,
                             .feed = stream.plan->fingerprint(),
                             .open = stream.handle->open(),
                             .steps = stream.handle->steps(),
                             .payload_bytes = stream.handle->payload_bytes(),
                             .trainer = waits.Of(stream.peer, stream.trainer),
                             .output = ""};
  snapshot.output = OutputName(snapshot.trainer, *stream.plan);
  return snapshot;
}

}  // namespace

bool RunningStreams::Add(RunningStream stream) {
  std::shared_ptr<StreamHandle> ended;
  {
    MutexLock lock(mu_);
    if (static_cast<int>(streams_.size()) >= max_streams_) {
      std::map<std::string, int> places;
      for (const RunningStream& running : streams_) ++places[running.peer];
      const auto most =
          std::max_element(places.begin(), places.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const auto own = places.find(stream.peer);
      const int has = own == places.end() ? 0 : own->second;
      if (most == places.end() || most->second < has + 2) return false;
      const auto newest =
          std::find_if(streams_.rbegin(), streams_.rend(),
                       [&](const RunningStream& running) { return running.peer == most->first; });
      ended = std::move(newest->handle);
      streams_.erase(std::next(newest).base());
    }
    streams_.push_back(std::move(stream));
  }
  if (ended != nullptr) {
    ended->Stop(
        MarkedAs(EndCause::kGavePlace,
                 absl::UnavailableError("this server is full, and a peer with fewer streams needs "
                                        "this stream's place; ask another server, or ask later")));
  }
  return true;
}

void RunningStreams::Remove(const StreamHandle& handle) {
  MutexLock lock(mu_);
  streams_.remove_if([&](const RunningStream& stream) { return stream.handle.get() == &handle; });
}

int RunningStreams::free_places() const {
  MutexLock lock(mu_);
  return std::max(max_streams_ - static_cast<int>(streams_.size()), 0);
}

void RunningStreams::StopStalled(absl::Duration timeout) {
  StopUnless([timeout](const RunningStream& stream) {
    if (stream.handle->stalled() < timeout) return absl::OkStatus();
    return MarkedAs(EndCause::kStalled,
                    absl::UnavailableError(absl::StrCat(
                        "the client has taken nothing for ", absl::FormatDuration(timeout),
                        ", so the stream's place and memory go to other streams; ask again")));
  });
}

void RunningStreams::StopUnless(absl::FunctionRef<absl::Status(const RunningStream&)> check) {
  std::vector<std::pair<std::shared_ptr<StreamHandle>, absl::Status>> ended;
  {
    MutexLock lock(mu_);
    for (auto it = streams_.begin(); it != streams_.end();) {
      absl::Status status = check(*it);
      if (status.ok()) {
        ++it;
        continue;
      }
      ended.emplace_back(std::move(it->handle), std::move(status));
      it = streams_.erase(it);
    }
  }
  for (const auto& [handle, status] : ended) handle->Stop(status);
}

bool RunningStreams::Has(absl::string_view peer, uint64_t trainer) const {
  MutexLock lock(mu_);
  return std::any_of(streams_.begin(), streams_.end(), [&](const RunningStream& stream) {
    return stream.trainer == trainer && stream.peer == peer;
  });
}

StreamSnapshots RunningStreams::Snapshot(
    const TrainerWaits& waits, absl::FunctionRef<bool(const RunningStream&)> wanted) const {
  StreamSnapshots snapshots;
  std::vector<StreamSnapshot>& shown = snapshots.streams;
  {
    MutexLock lock(mu_);
    for (const RunningStream& stream : streams_) {
      if (stream.plan == nullptr || stream.handle->number() == 0 || !wanted(stream)) continue;
      shown.push_back(SnapshotOf(stream, waits));
    }
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const StreamSnapshot& a, const StreamSnapshot& b) {
                     return a.trainer.waits > b.trainer.waits;  // Nullopt is less than any number.
                   });
  if (shown.size() > kMaxStreamsShown) {
    snapshots.left_out = shown.size() - kMaxStreamsShown;
    shown.resize(kMaxStreamsShown);
  }
  return snapshots;
}

}  // namespace systole
