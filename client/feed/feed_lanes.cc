#include "client/feed/feed_lanes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/feed/arrived_chunk.h"
#include "client/feed/missing_examples.h"
#include "client/feed/server_answer.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "proto/framing/layout_description.h"

namespace systole {
namespace {

v1::FeedSpec WithoutWire(v1::FeedSpec spec) {
  spec.clear_wire();
  return spec;
}

}  // namespace

FeedLanes::FeedLanes(const v1::FeedSpec& spec, const FeedClientOptions& options)
    : spec_(WithoutWire(spec)), wire_(spec.wire()), options_(options), clock_(SteadyClock()) {
  const int num_servers = static_cast<int>(options.servers.size());
  const LaneRetryOptions retry = {
      .servers = num_servers, .backoff = options.backoff, .max_backoff = options.max_backoff};
  {
    MutexLock lock(mu_);
    for (int i = 0; i < num_servers; ++i) {
      servers_.push_back(
          {.link = std::make_unique<ServerLink>(options.servers[static_cast<size_t>(i)],
                                                options.same_host == SameHost::kAuto)});
      lanes_.emplace_back(options.first_step + i, i, retry);
    }
  }
  keeper_ = std::make_unique<WorkerPool>(1);
  keeper_->Submit([this] { Keep(); });
  if (options_.watch != nullptr) options_.watch->Add(this);
}

FeedLanes::~FeedLanes() {
  if (options_.watch != nullptr) options_.watch->Remove(this);
  {
    MutexLock lock(mu_);
    stopping_ = true;
    keeper_wakes_.SignalAll();
  }
  keeper_.reset();
  MutexLock lock(mu_);
  if (shelf_ != nullptr) shelf_->StopKeeping();
}

ReadVerdict FeedLanes::OnChunk(int index, const absl::StatusOr<ReceivedChunk>& received,
                               SlotReader* slots) {
  const ArrivedChunk chunk(received, slots);
  ChunkPlace place;
  StepBuffer buffer;
  std::shared_ptr<StepShelf> shelf;
  std::shared_ptr<const StepFinisher> finisher;  // Of a stream that travels compactly.
  std::shared_ptr<const StepShape> shape;
  FeedLane* lane = nullptr;  // Only this stream's callbacks and the keeper, once it has ended,
                             // change the lane's cursor and the memory of its step.
  {
    MutexLock lock(mu_);
    lane = &lanes_[static_cast<size_t>(index)];
    lane->heard_at = clock_();
    if (Stopped() || lane->step >= limit()) return ReadVerdict::kStop;
    if (!chunk.intact().ok()) {
      ++stats_.damaged_chunks;
      return lane->Stop(FailureKind::kDamaged, chunk.intact());
    }
    if (chunk.header().draining) {
      return lane->Stop(FailureKind::kLost, absl::UnavailableError("the server is going away"));
    }
    const absl::StatusOr<ChunkPlace> accepted = chunk.Accept(*lane->cursor);
    // The server's bug, or a chunk before it was lost with a damaged frame.
    if (!accepted.ok()) return lane->Stop(FailureKind::kSuspect, accepted.status());
    place = *accepted;
    lane->wire.SliceBegins(chunk.header().waited_us, chunk.header().sent_us);
    if (lane->compact) finisher = finisher_;
    buffer = window_->BufferOf(place.step);
    shelf = shelf_;
    shape = shape_;
  }
  if (buffer == nullptr) {
    absl::StatusOr<StepBuffer> acquired = shelf->Acquire();
    MutexLock lock(mu_);
    if (!acquired.ok()) return lane->Stop(FailureKind::kFinal, acquired.status());
    buffer = *std::move(acquired);
    window_->BufferOf(place.step) = buffer;
  }
  const absl::Status put = chunk.PutInto(buffer.get(), place, *shape, finisher.get());
  MutexLock lock(mu_);
  if (!put.ok() && chunk.in_slot()) {
    // Sent as bytes the steps may be had from this server all the same. A shortage of ours may
    // pass, but one that outlasts an attempt would keep the lane from going on.
    if (absl::IsInternal(put) || (absl::IsResourceExhausted(put) && lane->retry.is_failing())) {
      servers_[static_cast<size_t>(lane->server)].link->StopSharing(put.message());
    }
    return lane->Stop(FailureKind::kLost, put);
  }
  if (!put.ok()) {
    ++stats_.damaged_chunks;
    return lane->Stop(FailureKind::kDamaged, put);
  }
  const int64_t payload_bytes = chunk.payload_bytes(*shape);
  stats_.payload_bytes += payload_bytes;
  if (chunk.in_slot()) {
    stats_.shared_payload_bytes += payload_bytes;
  } else if (stats_.not_shared.empty()) {
    stats_.not_shared = chunk.WhyNotShared(*servers_[static_cast<size_t>(lane->server)].link);
  }
  return place.ends_step ? StepComplete(*lane, place.step) : ReadVerdict::kRead;
}

ReadVerdict FeedLanes::StepComplete(FeedLane& lane, int64_t step) {
  window_->SetComplete(step);
  ++stats_.steps_received;
  stats_.delivered_bytes += shape_->layout.payload_bytes() * shape_->num_cores();
  if (lane.compact) ++stats_.compact_steps;
  lane.step += static_cast<int64_t>(lanes_.size());
  lane.retry.Progress();
  if (step == window_->next_step()) trainer_wakes_.SignalAll();
  const bool held = std::exchange(lane.held, false);
  if (lane.wire.StepEnds(held) && lane.step < limit()) {
    ++stats_.wire_changes;
    lane.changing = true;
    return ReadVerdict::kStop;
  }
  // After the last chunk there is still the stream's status to be read.
  if (lane.cursor->at_end() || window_->Allows(lane.step)) return ReadVerdict::kRead;
  lane.paused = true;
  lane.held = true;
  return ReadVerdict::kPause;
}

void FeedLanes::OnStreamEnd(int index, absl::Status status) {
  MutexLock lock(mu_);
  lanes_[static_cast<size_t>(index)].ended = std::move(status);
  keeper_wakes_.SignalAll();
}

void FeedLanes::Keep() {
  while (true) {
    KeeperWork work;
    {
      MutexLock lock(mu_);
      while (true) {
        absl::Duration wait = absl::InfiniteDuration();
        const absl::Duration now = clock_();
        for (int i = 0; i < static_cast<int>(lanes_.size()); ++i) KeepLane(i, now, work, wait);
        if (!work.empty()) break;
        if (stopping_ && AllIdle()) return;
        keeper_wakes_.WaitFor(mu_, wait);
      }
    }
    work.Do();
  }
}

void FeedLanes::KeepLane(int index, absl::Duration now, KeeperWork& work, absl::Duration& wait) {
  FeedLane& lane = lanes_[static_cast<size_t>(index)];
  if (lane.resolved.has_value()) EndCall(lane, now, work);
  if (lane.ended.has_value()) EndStream(lane, now, work);
  if (lane.call != nullptr && Stopped() && !lane.cancelled) {
    lane.cancelled = true;
    work.cancel_calls.push_back(lane.call.get());
  }
  if (lane.stream != nullptr) WatchStream(lane, now, work, wait);
  if (!lane.idle()) return;
  if (Stopped() || lane.step >= limit()) return;
  if (now < lane.not_before) {
    wait = std::min(wait, lane.not_before - now);
    return;
  }
  Begin(index, now, work);
}

void FeedLanes::EndCall(FeedLane& lane, absl::Duration now, KeeperWork& work) {
  KnownServer& server = servers_[static_cast<size_t>(lane.server)];
  const absl::Status status = *lane.resolved;
  const v1::ResolveFeedResponse& response = lane.call->response();
  if (Stopped()) {
    // Nobody asks any more.
  } else if (lane.call->answer_damaged()) {
    ++stats_.damaged_answers;
    Fail(lane, now, {FailureKind::kDamaged, status});
  } else if (!status.ok()) {
    // An error of the spec is an answer; one of these codes is none.
    FailWith(lane, now, status);
  } else if (absl::Status fits = CheckAnswer(response, lane.asks_for_compact); !fits.ok()) {
    Fail(lane, now, {FailureKind::kFinal, fits});
  } else {
    (lane.asks_for_compact ? server.compact_identity : server.identity) = response.identity();
    trainer_wakes_.SignalAll();
  }
  work.ended_calls.push_back(lane.TakeCall());
}

absl::Status FeedLanes::CheckAnswer(const v1::ResolveFeedResponse& answer, bool compact) {
  SYSTOLE_RETURN_IF_ERROR(CheckFeedAnswer(answer, compact ? finisher_->spec() : spec_));
  if (!answer_.has_value()) {
    answer_ = answer;
    return absl::OkStatus();
  }
  SYSTOLE_ASSIGN_OR_RETURN(const SliceLayout first, LayoutOf(*answer_));
  return CheckSameFeed(answer, *answer_, compact ? finisher_->shape()->layout : first,
                       options_.allow_mixed_content);
}

void FeedLanes::EndStream(FeedLane& lane, absl::Duration now, KeeperWork& work) {
  if (Stopped() || lane.step >= limit()) {
    // Ended by us, or for good.
  } else if (lane.changing) {
    // Goes on at its next step, with the same server.
  } else if (lane.reason.has_value()) {
    Fail(lane, now, *lane.reason);
  } else if (!lane.ended->ok()) {
    FailWith(lane, now, *lane.ended);
  } else if (!lane.cursor->at_end()) {
    Fail(lane, now,
         {FailureKind::kLost,
          absl::UnavailableError(absl::StrCat("the stream ended before step ", lane.step))});
  } else {
    const bool avoided = servers_[static_cast<size_t>(lane.home)].IsAvoided(now);
    if (!avoided && lane.server != lane.home) UseServer(lane, lane.home);
  }
  work.ended_streams.push_back(lane.TakeStream());
}

void FeedLanes::WatchStream(FeedLane& lane, absl::Duration now, KeeperWork& work,
                            absl::Duration& wait) {
  if (lane.cancelled) return;
  const bool wanted = !Stopped() && (lane.cursor->at_end() || lane.step < limit());
  if (wanted && lane.paused) return;
  if (wanted) {
    const absl::Duration due = lane.heard_at + options_.silence_timeout;
    if (now < due) {
      wait = std::min(wait, due - now);
      return;
    }
    lane.reason = {FailureKind::kLost, absl::UnavailableError(absl::StrCat(
                                           "the server has sent nothing for ",
                                           absl::FormatDuration(options_.silence_timeout)))};
  }
  lane.cancelled = true;
  (lane.paused ? work.cancel_paused : work.cancel_reading).push_back(lane.stream.get());
  lane.paused = false;
}

void FeedLanes::Begin(int index, absl::Duration now, KeeperWork& work) {
  FeedLane& lane = lanes_[static_cast<size_t>(index)];
  KnownServer& server = servers_[static_cast<size_t>(lane.server)];
  lane.heard_at = now;
  if (!server.identity.has_value()) return Ask(index, /*compact=*/false, work);
  if (!window_.has_value() || !window_->Allows(lane.step)) return;  // Start() and Next() wake us.
  // What is to be streamed is asked about first: the answer's identity proves to both ends that
  // they mean one spec.
  if (lane.wire.compact() && !server.compact_identity.has_value()) {
    return Ask(index, /*compact=*/true, work);
  }
  const int64_t stride = static_cast<int64_t>(lanes_.size());
  const int64_t count = std::min((limit() - lane.step + stride - 1) / stride, kStepsPerStream);
  lane.compact = lane.wire.compact();
  lane.wire.StreamBegins();
  const v1::StreamStepsRequest request = lane.Request(
      lane.compact ? finisher_->spec() : spec_,
      lane.compact ? *server.compact_identity : *server.identity, *shape_, count, stride);
  lane.cursor.emplace(lane.compact ? finisher_->shape() : shape_, lane.step,
                      lane.step + count * stride, stride);
  lane.stream = std::make_unique<ChunkStream>(request, index, *this);
  lane.heard_at = now;
  work.start_streams.emplace_back(lane.stream.get(), server.link.get());
}

void FeedLanes::Ask(int index, bool compact, KeeperWork& work) {
  FeedLane& lane = lanes_[static_cast<size_t>(index)];
  lane.asks_for_compact = compact;
  lane.call = std::make_unique<ResolveCall>(
      *servers_[static_cast<size_t>(lane.server)].link, compact ? finisher_->spec() : spec_,
      options_.connect_timeout, [this, index](absl::Status status) {
        MutexLock lock(mu_);
        lanes_[static_cast<size_t>(index)].resolved = std::move(status);
        keeper_wakes_.SignalAll();
      });
  work.start_calls.push_back(lane.call.get());
}

void FeedLanes::UseServer(FeedLane& lane, int server) {
  lane.server = server;
  // Between processes of one machine nothing travels.
  const bool travels = !servers_[static_cast<size_t>(server)].link->is_same_host();
  lane.wire =
      finisher_ != nullptr && travels ? WireChooser(wire_, finisher_->ratio()) : WireChooser();
}

void FeedLanes::FailWith(FeedLane& lane, absl::Duration now, const absl::Status& status) {
  if (absl::IsAborted(status)) ++stats_.damaged_requests;
  Fail(lane, now, {KindOf(status.code()), status});
}

void FeedLanes::Fail(FeedLane& lane, absl::Duration now, const LaneEnding& ending) {
  KnownServer& server = servers_[static_cast<size_t>(lane.server)];
  ++stats_.streams_lost;
  server.Failed(now, ending.status);
  const absl::Duration limit =
      stats_.steps_received > 0 ? options_.retry_for : options_.connect_timeout;
  if (!lane.retry.is_failing()) lane.lost = lane.server;
  const std::optional<absl::Duration> wait = lane.retry.Failed(ending.kind, now, limit);
  if (wait.has_value()) {
    lane.not_before = now + *wait;
    const int next = (lane.server + 1) % static_cast<int>(servers_.size());
    if (next != lane.server) UseServer(lane, next);
    return;
  }
  EndFeed(lane.step, lane.GaveUp(ending, servers_, limit));
}

void FeedLanes::EndFeed(int64_t step, absl::Status status) {
  if (step >= error_step_) return;
  error_step_ = step;
  error_ = std::move(status);
  trainer_wakes_.SignalAll();
}

bool FeedLanes::AllIdle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const FeedLane& lane) { return lane.idle(); });
}

}  // namespace systole
