#include "client/lanes/lane_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace systole {

void LandedChunk::Put(const ArrivedChunk& chunk) {
  if (step_ == nullptr) {
    absl::StatusOr<StepBuffer> acquired = shelf_->Acquire();
    memory_ = acquired.status();
    if (!acquired.ok()) return;
    fresh_ = *std::move(acquired);
    step_ = fresh_.get();
  }
  put_ = chunk.PutInto(step_, place_, *shape_, finisher_.get());
}

void LaneTable::Start(std::shared_ptr<const StepShape> shape,
                      std::shared_ptr<const StepFinisher> finisher, bool always_compact,
                      std::shared_ptr<StepShelf> shelf) {
  shape_ = std::move(shape);
  finisher_ = std::move(finisher);
  always_compact_ = always_compact;
  shelf_ = std::move(shelf);
}

ChunkStream* LaneTable::Open(const OpenStream& action, const ServerLink& link,
                             v1::StreamStepsRequest request) {
  FeedLane& lane = lanes_[action.lane];
  lane.server = action.server;
  lane.spans.Clear();  // What an earlier stream brought is lost.
  lane.compact = finisher_ != nullptr && (always_compact_ || !link.is_same_host());
  request.set_compact(lane.compact);
  request.set_first_step(action.first_step);
  request.set_count(action.count);
  request.set_stride(action.stride);
  request.set_core_begin(shape_->core_begin);
  request.set_core_end(shape_->core_end);
  lane.cursor.emplace(lane.compact ? finisher_->shape() : shape_, action.first_step,
                      action.first_step + action.count * action.stride, action.stride);
  lane.stream = std::make_unique<ChunkStream>(std::move(request), action.lane, listener_);
  return lane.stream.get();
}

void LaneTable::Stop(const StopStream& action, int reading, KeeperWork& work) {
  FeedLane& lane = lanes_.at(action.lane);
  lane.stopping = true;
  if (action.lane == reading) return;
  (action.paused ? work.cancel_paused : work.cancel_reading).push_back(lane.stream.get());
}

StepBuffer LaneTable::TakeStep(int lane) { return std::exchange(lanes_.at(lane).buffer, nullptr); }

StepSpans LaneTable::TakeSpans(int lane, int64_t step) {
  StepSpans& spans = lanes_.at(lane).spans;
  spans.Complete();
  StepSpans taken = spans;
  spans.Clear();
  for (const auto& [other, late] : lanes_) {
    if (other != lane && late.cursor.has_value() && late.cursor->step() == step) {
      taken.AddBefore(late.spans);
    }
  }
  return taken;
}

StepBuffer LaneTable::Close(int lane) {
  const auto found = lanes_.find(lane);
  if (found == lanes_.end()) return nullptr;  // The lane never had a stream.
  StepBuffer unused = std::move(found->second.buffer);
  lanes_.erase(found);
  return unused;
}

std::optional<LandedChunk> LaneTable::Accept(int index, const ArrivedChunk& chunk, bool shared,
                                             FeedClientStats& stats) {
  FeedLane& lane = lanes_.at(index);
  if (lane.stopping) return std::nullopt;
  if (!chunk.intact().ok()) {
    ++stats.damaged_chunks;
    lane.Stop(FailureKind::kDamaged, chunk.intact());
    return std::nullopt;
  }
  if (chunk.header().draining) {
    lane.Stop(FailureKind::kLeaving, absl::UnavailableError("the server is going away"));
    return std::nullopt;
  }
  // Into shared memory, the server puts finished tensors instead of compact ones.
  if (shared && std::exchange(lane.compact, false)) lane.cursor->Reshape(shape_);
  const absl::StatusOr<ChunkPlace> place = chunk.Accept(*lane.cursor);
  if (!place.ok()) {
    // The server has a bug, or an earlier chunk was lost with a damaged frame.
    lane.Stop(FailureKind::kSuspect, place.status());
    return std::nullopt;
  }
  LandedChunk landed;
  landed.place_ = *place;
  landed.shelf_ = shelf_;
  landed.shape_ = shape_;
  if (lane.compact) landed.finisher_ = finisher_;
  landed.step_ = lane.buffer.get();
  return landed;
}

LaneTable::Outcome LaneTable::Landed(int index, LandedChunk landed, const ArrivedChunk& chunk,
                                     ServerLink& link, absl::Duration arrived,
                                     absl::Duration handled, FeedClientStats& stats) {
  FeedLane& lane = lanes_.at(index);
  const auto stop = [&lane](FailureKind kind, const absl::Status& status) {
    lane.Stop(kind, status);
    return Outcome::kStop;
  };
  if (!landed.memory_.ok()) return stop(FailureKind::kFinal, landed.memory_);
  if (landed.fresh_ != nullptr) lane.buffer = std::move(landed.fresh_);
  const absl::Status& put = landed.put_;
  if (!put.ok() && chunk.in_slot()) {
    // Without shared memory, this server can still send the steps as bytes. After a lack of memory
    // in this process, which may pass, sharing ends only at the lane's second failure in a row. If
    // sharing never ended, the lane might fail again and again.
    if (absl::IsInternal(put) || (absl::IsResourceExhausted(put) && lane.retries)) {
      link.StopSharing(put.message());
    }
    return stop(FailureKind::kLost, put);
  }
  if (!put.ok()) {
    ++stats.damaged_chunks;
    return stop(FailureKind::kDamaged, put);
  }
  const int64_t payload_bytes = chunk.payload_bytes(*shape_);
  stats.payload_bytes += payload_bytes;
  if (chunk.in_slot()) {
    stats.shared_payload_bytes += payload_bytes;
  } else if (stats.not_shared.empty()) {
    stats.not_shared = chunk.WhyNotShared(link);
  }
  if (chunk.begins_slice()) {
    lane.spans.BeginSlice(chunk.header().stages, arrived, handled);
  } else {
    lane.spans.AddChunk(arrived, handled);
  }
  // If the schedule has stopped the stream meanwhile, the schedule does not get this chunk.
  if (lane.stopping) return Outcome::kStop;
  if (!landed.place_.ends_step) return Outcome::kReadOn;
  lane.retries = false;
  return Outcome::kStepComplete;
}

std::vector<int> LaneTable::Ended() const {
  std::vector<int> numbers;
  for (const auto& [number, lane] : lanes_) {
    if (lane.ended.has_value()) numbers.push_back(number);
  }
  return numbers;
}

std::optional<LaneEnding> LaneTable::EndingOf(int index) const {
  const FeedLane& lane = lanes_.at(index);
  // If Stop() has stopped the stream, its end says nothing about the server.
  if (lane.stopping) return std::nullopt;
  return lane.Ending();
}

std::unique_ptr<ChunkStream> LaneTable::TakeStream(int index, bool failed) {
  FeedLane& lane = lanes_.at(index);
  if (failed) lane.retries = true;
  return lane.TakeStream();
}

std::set<int> LaneTable::Streaming() const {
  std::set<int> servers;
  for (const auto& [number, lane] : lanes_) {
    if (lane.stream != nullptr && !lane.stopping && !lane.ended.has_value()) {
      servers.insert(lane.server);
    }
  }
  return servers;
}

bool LaneTable::idle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& entry) { return entry.second.stream == nullptr; });
}

}  // namespace systole
