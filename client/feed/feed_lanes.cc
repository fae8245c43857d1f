#include "client/feed/feed_lanes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/feed/server_answer.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "proto/framing/layout_description.h"
#include "proto/slots/not_shared.h"

namespace systole {
namespace {

// A server that failed is not preferred again before this time has passed.
constexpr absl::Duration kAvoidFor = absl::Seconds(30);

// Steps that a trainer's loop holds besides the window's: the one in hand, and for a moment the one
// that takes its place. Their buffers are kept for reuse too.
constexpr int64_t kStepsInHand = 2;

absl::Status WithServer(const absl::Status& status, const std::string& address) {
  return absl::Status(status.code(), absl::StrCat(status.message(), " [server ", address, "]"));
}

v1::FeedSpec WithoutWire(v1::FeedSpec spec) {
  spec.clear_wire();
  return spec;
}

std::string Describe(const v1::FeedIdentity& identity) {
  return absl::StrFormat("dataset %016x, order %016x, content version '%s'",
                         identity.dataset_fingerprint(), identity.order_fingerprint(),
                         identity.content_version());
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

absl::StatusOr<v1::ResolveFeedResponse> FeedLanes::WaitForAnswer() {
  const absl::Duration deadline = clock_() + options_.connect_timeout;
  MutexLock lock(mu_);
  while (!answer_.has_value() && error_.ok()) {
    const absl::Duration left = deadline - clock_();
    if (left <= absl::ZeroDuration()) {
      return Unreachable(absl::StrCat("no server has answered within ",
                                      absl::FormatDuration(options_.connect_timeout)));
    }
    trainer_wakes_.WaitFor(mu_, left);
  }
  if (answer_.has_value()) return *answer_;
  return error_;
}

void FeedLanes::Start(std::shared_ptr<const StepShape> shape,
                      std::shared_ptr<const StepFinisher> finisher, std::optional<Order> order,
                      int64_t end_step, int64_t window_steps) {
  MutexLock lock(mu_);
  shape_ = std::move(shape);
  finisher_ = std::move(finisher);
  order_ = std::move(order);
  if (finisher_ != nullptr) {
    for (Lane& lane : lanes_) UseServer(lane, lane.server);
  }
  shelf_ = StepShelf::Create(shape_->bytes(), window_steps + kStepsInHand, options_.memory);
  window_.emplace(options_.first_step, window_steps);
  end_step_ = end_step;
  keeper_wakes_.SignalAll();
}

absl::StatusOr<std::optional<Step>> FeedLanes::Next() {
  std::vector<ChunkStream*> resumed;
  std::optional<Step> step;
  std::optional<Order> order;
  {
    MutexLock lock(mu_);
    while (true) {
      if (!cancelled_.ok()) return cancelled_;
      const int64_t number = window_->next_step();
      if (std::optional<StepBuffer> buffer = window_->TakeNext()) {
        step.emplace(number, shape_, *std::move(buffer));
        order = order_;
        break;
      }
      if (number >= end_step_) return std::optional<Step>();
      if (number >= error_step_) return error_;
      trainer_wakes_.Wait(mu_);
    }
    for (Lane& lane : lanes_) {
      if (!window_->Allows(lane.step)) continue;
      if (lane.paused) {
        lane.paused = false;
        lane.heard_at = clock_();
        resumed.push_back(lane.stream.get());
      } else if (lane.stream == nullptr) {
        keeper_wakes_.SignalAll();
      }
    }
  }
  // A stream with a chunk asked for does not end before that was answered, so these are still
  // there.
  for (ChunkStream* stream : resumed) stream->Read();
  const MissingExamples missing = FindMissing(*step, order);
  if (!missing.empty()) CountMissing(missing);
  return step;
}

void FeedLanes::CountMissing(const MissingExamples& missing) {
  MutexLock lock(mu_);
  stats_.masked_examples += missing.masked;
  stats_.padded_examples += missing.padded;
  std::vector<int64_t>& listed = stats_.masked_records;
  for (const int64_t record : missing.masked_records) {
    if (listed.size() >= kMaxMaskedRecords) return;
    if (std::find(listed.begin(), listed.end(), record) == listed.end()) listed.push_back(record);
  }
}

void FeedLanes::Cancel(absl::Status status) {
  SYSTOLE_CHECK(!status.ok());
  MutexLock lock(mu_);
  if (cancelled_.ok()) cancelled_ = std::move(status);
  trainer_wakes_.SignalAll();
  keeper_wakes_.SignalAll();
}

int64_t FeedLanes::next_step() const {
  MutexLock lock(mu_);
  return window_.has_value() ? window_->next_step() : options_.first_step;
}

FeedClientStats FeedLanes::stats() const {
  MutexLock lock(mu_);
  return stats_;
}

std::optional<FeedWaiting> FeedLanes::waiting() const {
  MutexLock lock(mu_);
  std::optional<FeedWaiting> longest;
  if (Stopped()) return longest;
  const absl::Duration now = clock_();
  for (const Lane& lane : lanes_) {
    std::optional<FeedWaiting> waiting = WaitOf(lane, now);
    if (!waiting.has_value()) continue;
    if (!longest.has_value() || waiting->waited > longest->waited) longest = std::move(waiting);
  }
  return longest;
}

std::optional<FeedWaiting> FeedLanes::WaitOf(const Lane& lane, absl::Duration now) const {
  if (lane.step >= limit()) return std::nullopt;
  FeedWaiting waiting = {.asking = servers_[static_cast<size_t>(lane.server)].link->address(),
                         .started = stats_.steps_received > 0};
  if (const std::optional<absl::Duration> since = lane.retry.failing_since()) {
    const Server& lost = servers_[static_cast<size_t>(lane.lost)];
    waiting.lost = lost.link->address();
    waiting.error = std::string(lost.last_error.message());
    waiting.waited = now - *since;
    waiting.limit = waiting.started ? options_.retry_for : options_.connect_timeout;
    return waiting;
  }
  const bool steps_wanted =
      lane.stream != nullptr && !lane.paused && lane.step == window_->next_step();
  if (lane.call == nullptr && !steps_wanted) return std::nullopt;
  waiting.waited = now - lane.heard_at;
  waiting.limit = lane.call != nullptr ? options_.connect_timeout : options_.silence_timeout;
  return waiting;
}

ReadVerdict FeedLanes::OnChunk(int index, const absl::StatusOr<ReceivedChunk>& chunk,
                               SlotReader* slots) {
  ChunkPlace place;
  StepBuffer buffer;
  std::shared_ptr<StepShelf> shelf;
  std::shared_ptr<const StepFinisher> finisher;  // Of a stream that travels compactly.
  std::shared_ptr<const StepShape> shape;
  // A whole slice in shared memory, instead of a piece of one with the message.
  const absl::Status intact = chunk.ok() ? chunk->CheckHeader() : chunk.status();
  const bool in_slot = slots != nullptr && intact.ok() && chunk->header().slot != 0;
  Lane* lane = nullptr;  // Only this stream's callbacks and the keeper, once it has ended, change
                         // the lane's cursor and the memory of its step.
  {
    MutexLock lock(mu_);
    lane = &lanes_[static_cast<size_t>(index)];
    lane->heard_at = clock_();
    if (Stopped() || lane->step >= limit()) return ReadVerdict::kStop;
    if (!intact.ok()) {
      ++stats_.damaged_chunks;
      lane->reason = {FailureKind::kDamaged, intact};
      return ReadVerdict::kStop;
    }
    if (chunk->header().draining) {
      lane->reason = {FailureKind::kLost, absl::UnavailableError("the server is going away")};
      return ReadVerdict::kStop;
    }
    const absl::StatusOr<ChunkPlace> accepted =
        in_slot ? lane->cursor->AcceptSlice(chunk->header())
                : lane->cursor->Accept(chunk->header(), chunk->data_bytes());
    if (!accepted.ok()) {
      // The server's bug, or a chunk before it was lost with a damaged frame.
      lane->reason = {FailureKind::kSuspect, accepted.status()};
      return ReadVerdict::kStop;
    }
    place = *accepted;
    lane->wire.SliceBegins(chunk->header().waited_us, chunk->header().sent_us);
    if (lane->compact) finisher = finisher_;
    buffer = window_->BufferOf(place.step);
    shelf = shelf_;
    shape = shape_;
  }
  if (buffer == nullptr) {
    absl::StatusOr<StepBuffer> acquired = shelf->Acquire();
    MutexLock lock(mu_);
    if (!acquired.ok()) {
      lane->reason = {FailureKind::kFinal, acquired.status()};
      return ReadVerdict::kStop;
    }
    buffer = *std::move(acquired);
    window_->BufferOf(place.step) = buffer;
  }
  const int64_t copied_bytes = in_slot ? shape->layout.slice_bytes() : chunk->data_bytes();
  const absl::Span<uint8_t> destination =
      absl::MakeSpan(buffer.get() + place.offset, static_cast<size_t>(copied_bytes));
  const absl::Status copied = in_slot ? slots->CopyOut(chunk->header().slot, destination)
                              : finisher != nullptr ? finisher->Place(*chunk, buffer.get())
                                                    : chunk->CopyTo(destination);
  if (finisher != nullptr && copied.ok() && place.ends_step) finisher->Complete(buffer.get());
  MutexLock lock(mu_);
  if (!copied.ok() && in_slot) {
    // Sent as bytes the steps may be had from this server all the same. A shortage of ours may
    // pass, but one that outlasts an attempt would keep the lane from going on.
    if (absl::IsInternal(copied) ||
        (absl::IsResourceExhausted(copied) && lane->retry.is_failing())) {
      servers_[static_cast<size_t>(lane->server)].link->StopSharing(copied.message());
    }
    lane->reason = {FailureKind::kLost, copied};
    return ReadVerdict::kStop;
  }
  if (!copied.ok()) {
    ++stats_.damaged_chunks;
    lane->reason = {FailureKind::kDamaged, copied};
    return ReadVerdict::kStop;
  }
  const int64_t payload_bytes = in_slot ? shape->layout.payload_bytes() : chunk->data_bytes();
  stats_.payload_bytes += payload_bytes;
  if (in_slot) {
    stats_.shared_payload_bytes += payload_bytes;
  } else {
    NoteNotShared(*lane, chunk->header(), slots);
  }
  return place.ends_step ? StepComplete(*lane, place.step) : ReadVerdict::kRead;
}

void FeedLanes::NoteNotShared(const Lane& lane, const ChunkHeader& header,
                              const SlotReader* slots) {
  const ServerLink& link = *servers_[static_cast<size_t>(lane.server)].link;
  if (!stats_.not_shared.empty() || !link.is_same_host()) return;
  // The server gives its reason with the first chunk of a slice, so with the first of all.
  stats_.not_shared =
      absl::StrCat(slots == nullptr ? link.not_shared() : NotSharedText(header.not_shared),
                   " [server ", link.address(), "]");
}

ReadVerdict FeedLanes::StepComplete(Lane& lane, int64_t step) {
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
    Work work;
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
    Do(std::move(work));
  }
}

void FeedLanes::Do(Work work) {
  for (ChunkStream* stream : work.cancel_reading) stream->Cancel(/*paused=*/false);
  for (ChunkStream* stream : work.cancel_paused) stream->Cancel(/*paused=*/true);
  for (ResolveCall* call : work.cancel_calls) call->Cancel();
  for (ResolveCall* call : work.start_calls) call->Start();
  for (const auto& [stream, link] : work.start_streams) stream->Start(*link);
  // What has ended is destroyed here, with `work`.
}

void FeedLanes::KeepLane(int index, absl::Duration now, Work& work, absl::Duration& wait) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
  if (lane.resolved.has_value()) EndCall(lane, now, work);
  if (lane.ended.has_value()) EndStream(lane, now, work);
  if (lane.call != nullptr && Stopped() && !lane.cancelled) {
    lane.cancelled = true;
    work.cancel_calls.push_back(lane.call.get());
  }
  if (lane.stream != nullptr) WatchStream(lane, now, work, wait);
  if (lane.call != nullptr || lane.stream != nullptr) return;
  if (Stopped() || lane.step >= limit()) return;
  if (now < lane.not_before) {
    wait = std::min(wait, lane.not_before - now);
    return;
  }
  Begin(index, now, work);
}

void FeedLanes::EndCall(Lane& lane, absl::Duration now, Work& work) {
  Server& server = servers_[static_cast<size_t>(lane.server)];
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
  work.ended_calls.push_back(std::move(lane.call));
  lane.resolved.reset();
  lane.cancelled = false;
}

absl::Status FeedLanes::CheckAnswer(const v1::ResolveFeedResponse& answer, bool compact) {
  SYSTOLE_RETURN_IF_ERROR(CheckFeedAnswer(answer, compact ? finisher_->spec() : spec_));
  if (!answer_.has_value()) {
    answer_ = answer;
    return absl::OkStatus();
  }
  v1::FeedIdentity expected = answer_->identity();
  if (options_.allow_mixed_content) {
    expected.set_content_version(answer.identity().content_version());
  }
  if (expected.dataset_fingerprint() != answer.identity().dataset_fingerprint() ||
      expected.order_fingerprint() != answer.identity().order_fingerprint() ||
      expected.content_version() != answer.identity().content_version()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server's data are not those of this feed: ", Describe(answer.identity()), "; want ",
        Describe(expected), ". Give every server the same shards and the same release"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const SliceLayout seen, LayoutOf(answer));
  SYSTOLE_ASSIGN_OR_RETURN(const SliceLayout first, LayoutOf(*answer_));
  if (seen != (compact ? finisher_->shape()->layout : first) ||
      answer.total_steps() != answer_->total_steps()) {
    return absl::FailedPreconditionError(
        "the server makes other tensors or another number of steps of the same spec than the one "
        "that answered first; run the same release on both");
  }
  return absl::OkStatus();
}

void FeedLanes::EndStream(Lane& lane, absl::Duration now, Work& work) {
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
    Server& home = servers_[static_cast<size_t>(lane.home)];
    if (!home.failed_at.has_value() || now - *home.failed_at >= kAvoidFor) {
      if (lane.server != lane.home) UseServer(lane, lane.home);
    }
  }
  work.ended_streams.push_back(std::move(lane.stream));
  lane.ended.reset();
  lane.reason.reset();
  lane.cursor.reset();
  lane.cancelled = false;
  lane.changing = false;
  lane.paused = false;
  lane.held = false;
}

void FeedLanes::WatchStream(Lane& lane, absl::Duration now, Work& work, absl::Duration& wait) {
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

void FeedLanes::Begin(int index, absl::Duration now, Work& work) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
  Server& server = servers_[static_cast<size_t>(lane.server)];
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
  v1::StreamStepsRequest request;
  *request.mutable_spec() = lane.compact ? finisher_->spec() : spec_;
  request.set_first_step(lane.step);
  request.set_count(count);
  request.set_stride(stride);
  request.set_core_begin(shape_->core_begin);
  request.set_core_end(shape_->core_end);
  *request.mutable_expected() = lane.compact ? *server.compact_identity : *server.identity;
  lane.cursor.emplace(lane.compact ? finisher_->shape() : shape_, lane.step,
                      lane.step + count * stride, stride);
  lane.stream = std::make_unique<ChunkStream>(request, index, *this);
  lane.heard_at = now;
  work.start_streams.emplace_back(lane.stream.get(), server.link.get());
}

void FeedLanes::Ask(int index, bool compact, Work& work) {
  Lane& lane = lanes_[static_cast<size_t>(index)];
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

void FeedLanes::UseServer(Lane& lane, int server) {
  lane.server = server;
  // Between processes of one machine nothing travels.
  const bool travels = !servers_[static_cast<size_t>(server)].link->is_same_host();
  lane.wire =
      finisher_ != nullptr && travels ? WireChooser(wire_, finisher_->ratio()) : WireChooser();
}

void FeedLanes::FailWith(Lane& lane, absl::Duration now, const absl::Status& status) {
  if (absl::IsAborted(status)) ++stats_.damaged_requests;
  Fail(lane, now, {KindOf(status.code()), status});
}

void FeedLanes::Fail(Lane& lane, absl::Duration now, const Ending& ending) {
  Server& server = servers_[static_cast<size_t>(lane.server)];
  const absl::Status status = WithServer(ending.status, server.link->address());
  ++stats_.streams_lost;
  server.identity.reset();
  server.compact_identity.reset();
  server.failed_at = now;
  server.last_error = ending.status;
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
  switch (ending.kind) {
    case FailureKind::kLost:
      EndFeed(lane.step, Unreachable(absl::StrCat("no server has sent step ", lane.step, " for ",
                                                  absl::FormatDuration(limit))));
      break;
    case FailureKind::kDamaged:
      EndFeed(lane.step,
              absl::DataLossError(absl::StrCat(status.message(), "; ", kMaxDamagedFailures,
                                               " attempts in a row were damaged: look for a bad "
                                               "network card or proxy on the way")));
      break;
    default:
      EndFeed(lane.step, status);
  }
}

absl::Status FeedLanes::Unreachable(absl::string_view what) const {
  std::string message(what);
  for (size_t i = 0; i < servers_.size(); ++i) {
    absl::StrAppend(&message, i == 0 ? ": " : "; ", servers_[i].link->address(), ": ",
                    servers_[i].last_error.ok() ? "no answer" : servers_[i].last_error.message());
  }
  absl::StrAppend(&message, ". Is systole-server running there, and is the address right?");
  return absl::UnavailableError(message);
}

void FeedLanes::EndFeed(int64_t step, absl::Status status) {
  if (step >= error_step_) return;
  error_step_ = step;
  error_ = std::move(status);
  trainer_wakes_.SignalAll();
}

bool FeedLanes::AllIdle() const {
  for (const Lane& lane : lanes_) {
    if (lane.call != nullptr || lane.stream != nullptr) return false;
  }
  return true;
}

}  // namespace systole
