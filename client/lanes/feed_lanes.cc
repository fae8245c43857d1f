#include "client/lanes/feed_lanes.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/lanes/arrived_chunk.h"
#include "client/servers/server_answer.h"
#include "client/step/missing_examples.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

ScheduleOptions ScheduleOptionsOf(const FeedClientOptions& options, absl::Duration now) {
  return {.connect_timeout = options.connect_timeout,
          .retry_for = options.retry_for,
          .silence_timeout = options.silence_timeout,
          .backoff = options.backoff,
          .max_backoff = options.max_backoff,
          .hedge_fraction = options.hedge_fraction,
          .seed = static_cast<uint64_t>(absl::ToInt64Nanoseconds(now))};
}

// The error that ends the feed after `cause`.
absl::Status LastWord(FailureKind kind, const absl::Status& cause) {
  if (kind != FailureKind::kDamaged) return cause;
  return absl::DataLossError(
      absl::StrCat(cause.message(), "; ", kMaxDamagedFailures,
                   " attempts in a row were damaged: look for a bad network card or proxy on the "
                   "way"));
}

}  // namespace

FeedLanes::FeedLanes(const v1::FeedSpec& spec, const FeedClientOptions& options, ServerList list,
                     std::shared_ptr<const ChannelSecurity> security)
    : spec_(spec),
      options_(options),
      list_(std::move(list)),
      security_(std::move(security)),
      clock_(SteadyClock()),
      schedule_(ScheduleOptionsOf(options, clock_())),
      log_(options.log != nullptr, spec) {
  keeper_ = std::make_unique<WorkerPool>(1);
  keeper_->Submit([this] { Keep(); });
  if (list_.period() == absl::InfiniteDuration()) {
    ReadServers();
  } else {
    watcher_ = std::make_unique<WorkerPool>(1);
    watcher_->Submit([this] { WatchServers(); });
  }
  if (options_.watch != nullptr) options_.watch->Add(this);
}

FeedLanes::~FeedLanes() {
  if (options_.watch != nullptr) options_.watch->Remove(this);
  {
    MutexLock lock(mu_);
    stopping_ = true;
    Tell(FeedStopped());
    keeper_wakes_.SignalAll();
    watcher_wakes_.SignalAll();
  }
  watcher_.reset();
  keeper_.reset();
  if (options_.log != nullptr) options_.log->Flush();
  MutexLock lock(mu_);
  if (shelf_ != nullptr) shelf_->StopKeeping();
}

void FeedLanes::ReadServers() {
  const absl::StatusOr<std::vector<std::string>> addresses = list_.Read();
  MutexLock lock(mu_);
  if (Stopped()) return;
  if (!addresses.ok() && addresses.status() != list_error_) {
    ++stats_.bad_server_lists;
    if (shape_ != nullptr) {
      log_.ListIsUnreadable(addresses.status());
      keeper_wakes_.SignalAll();
    }
  }
  list_error_ = addresses.status();
  if (addresses.ok()) SetServers(*addresses);
  trainer_wakes_.SignalAll();
}

void FeedLanes::WatchServers() {
  while (true) {
    ReadServers();
    MutexLock lock(mu_);
    if (stopping_) return;
    watcher_wakes_.WaitFor(mu_, list_.period());
    if (stopping_) return;
  }
}

void FeedLanes::SetServers(const std::vector<std::string>& addresses) {
  const std::set<std::string> wanted(addresses.begin(), addresses.end());
  std::set<std::string> known;
  std::vector<int> left;
  for (const auto& [number, server] : servers_) {
    if (server.left) continue;
    known.insert(server.link->address());
    if (wanted.count(server.link->address()) == 0) left.push_back(number);
  }
  // Newcomers first, so that there is somebody to take over.
  for (const std::string& address : addresses) {
    if (!known.insert(address).second) continue;
    const int number = next_server_++;
    KnownServer& server = servers_[number];
    server.link =
        std::make_unique<ServerLink>(address, security_, receive_watch_, options_.share_memory);
    if (shape_ != nullptr) log_.ServerJoined(address);
    Tell(ServerJoined{.server = number});
  }
  for (const int number : left) {
    servers_.at(number).left = true;
    log_.ServerLeft(AddressOf(number));
    Tell(ServerLeft{.server = number});
  }
}

ReadVerdict FeedLanes::Tell(const ScheduleEvent& event, const absl::Status& cause, int reading) {
  cause_ = cause;
  reading_ = reading;
  verdict_ = ReadVerdict::kRead;
  schedule_.Handle(event, clock_(), actions_);
  for (const ScheduleAction& action : actions_) {
    std::visit([this](const auto& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { Note(what); }, action);
  }
  actions_.clear();
  if (!work_.empty() || !log_.empty()) keeper_wakes_.SignalAll();
  return verdict_;
}

void FeedLanes::Note(const AskServer& action) {
  KnownServer& server = servers_.at(action.server);
  KnownServer::Question& question = server.question;
  question.call = std::make_unique<ResolveCall>(*server.link, spec_,
                                                /*compact=*/options_.finish != "server",
                                                options_.connect_timeout,
                                                [this, &question](absl::Status status) {
                                                  MutexLock lock(mu_);
                                                  question.ended = std::move(status);
                                                  keeper_wakes_.SignalAll();
                                                });
  work_.start_calls.push_back(question.call.get());
}

void FeedLanes::Note(const ForgetServer& action) {
  const auto server = servers_.find(action.server);
  work_.forgotten_links.push_back(std::move(server->second.link));
  servers_.erase(server);
}

void FeedLanes::Note(const OpenStream& action) {
  FeedLane& lane = lanes_[action.lane];
  const KnownServer& server = servers_.at(action.server);
  lane.server = action.server;
  lane.compact = TravelsCompactly(*server.link);
  v1::StreamStepsRequest request;
  *request.mutable_spec() = spec_;
  request.set_compact(lane.compact);
  request.set_first_step(action.first_step);
  request.set_count(action.count);
  request.set_stride(action.stride);
  request.set_core_begin(shape_->core_begin);
  request.set_core_end(shape_->core_end);
  SYSTOLE_CHECK(server.identity.has_value());  // Only a server that answered gets steps.
  *request.mutable_expected() = *server.identity;
  lane.cursor.emplace(lane.compact ? finisher_->shape() : shape_, action.first_step,
                      action.first_step + action.count * action.stride, action.stride);
  lane.stream = std::make_unique<ChunkStream>(std::move(request), action.lane, *this);
  work_.start_streams.emplace_back(lane.stream.get(), server.link.get());
}

void FeedLanes::Note(const StopStream& action) {
  FeedLane& lane = lanes_.at(action.lane);
  lane.stopping = true;
  if (action.silent) {
    StreamLost(
        lane,
        {.failure = {.kind = FailureKind::kLost},
         .status = absl::UnavailableError(absl::StrCat(
             "the server has sent nothing for ", absl::FormatDuration(options_.silence_timeout)))});
  }
  if (action.lane == reading_) {
    verdict_ = ReadVerdict::kStop;
    return;
  }
  (action.paused ? work_.cancel_paused : work_.cancel_reading).push_back(lane.stream.get());
}

void FeedLanes::Note(const PauseStream& action) {
  SYSTOLE_CHECK(action.lane == reading_);
  verdict_ = ReadVerdict::kPause;
}

void FeedLanes::Note(const ResumeStream& action) {
  resumed_.push_back(lanes_.at(action.lane).stream.get());
}

void FeedLanes::Note(const DeliverStep& action) {
  FeedLane& lane = lanes_.at(action.lane);
  window_->Put(action.step, std::exchange(lane.buffer, nullptr));
  ++stats_.steps_received;
  stats_.delivered_bytes += shape_->layout.payload_bytes() * shape_->num_cores();
  if (lane.compact) ++stats_.compact_steps;
  if (action.step == window_->next_step()) trainer_wakes_.SignalAll();
}

void FeedLanes::Note(const CloseLane& action) {
  const auto lane = lanes_.find(action.lane);
  if (lane == lanes_.end()) return;  // It never had a stream.
  // The memory may be the caller's, and goes back to it without the lock.
  if (lane->second.buffer != nullptr) work_.unused.push_back(std::move(lane->second.buffer));
  lanes_.erase(lane);
}

void FeedLanes::Note(const GiveUp& action) {
  error_step_ = action.step;
  error_ = action.failure.has_value()
               ? LastWord(*action.failure, cause_)
               : Unreachable(absl::StrCat("no server has sent step ", action.step, " for ",
                                          absl::FormatDuration(action.waited)),
                             servers_);
  trainer_wakes_.SignalAll();
}

void FeedLanes::Note(const StepLate& action) {
  log_.StepIsLate(action.step, AddressOf(action.server),
                  action.second.has_value() ? AddressOf(*action.second) : "");
}

std::string FeedLanes::AddressOf(int server) const {
  const auto found = servers_.find(server);
  return found == servers_.end() ? "that left" : found->second.link->address();
}

ReadVerdict FeedLanes::OnChunk(int index, const absl::StatusOr<ReceivedChunk>& received,
                               SlotReader* slots) {
  const ArrivedChunk chunk(received, slots);
  ChunkPlace place;
  std::shared_ptr<StepShelf> shelf;
  std::shared_ptr<const StepFinisher> finisher;  // Of a stream that travels compactly.
  std::shared_ptr<const StepShape> shape;
  FeedLane* lane = nullptr;  // Only this stream's callbacks and the keeper, once it has ended,
                             // change the lane's cursor and the memory of its step.
  uint8_t* buffer = nullptr;
  {
    MutexLock lock(mu_);
    lane = &lanes_.at(index);
    if (lane->stopping) return ReadVerdict::kStop;
    schedule_.Handle(ChunkArrived{.lane = index}, clock_(), actions_);  // No action comes of it.
    if (!chunk.intact().ok()) {
      ++stats_.damaged_chunks;
      return lane->Stop(FailureKind::kDamaged, chunk.intact());
    }
    if (chunk.header().draining) {
      return lane->Stop(FailureKind::kLeaving, absl::UnavailableError("the server is going away"));
    }
    // In shared memory the server finishes.
    if (slots != nullptr && std::exchange(lane->compact, false)) lane->cursor->Reshape(shape_);
    const absl::StatusOr<ChunkPlace> accepted = chunk.Accept(*lane->cursor);
    // The server's bug, or a chunk before it was lost with a damaged frame.
    if (!accepted.ok()) return lane->Stop(FailureKind::kSuspect, accepted.status());
    place = *accepted;
    if (lane->compact) finisher = finisher_;
    buffer = lane->buffer.get();
    shelf = shelf_;
    shape = shape_;
  }
  if (buffer == nullptr) {
    absl::StatusOr<StepBuffer> acquired = shelf->Acquire();
    MutexLock lock(mu_);
    if (!acquired.ok()) return lane->Stop(FailureKind::kFinal, acquired.status());
    lane->buffer = *std::move(acquired);
    buffer = lane->buffer.get();
  }
  const absl::Status put = chunk.PutInto(buffer, place, *shape, finisher.get());
  MutexLock lock(mu_);
  if (!put.ok() && chunk.in_slot()) {
    // Sent as bytes the steps may be had from this server all the same. A shortage of ours may
    // pass, but one that outlasts an attempt would keep the lane from going on.
    if (absl::IsInternal(put) || (absl::IsResourceExhausted(put) && lane->retries)) {
      servers_.at(lane->server).link->StopSharing(put.message());
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
    stats_.not_shared = chunk.WhyNotShared(*servers_.at(lane->server).link);
  }
  // The schedule may have stopped the stream meanwhile; what came is not told to it then.
  if (lane->stopping) return ReadVerdict::kStop;
  if (!place.ends_step) return ReadVerdict::kRead;
  lane->retries = false;
  return Tell(StepArrived{.lane = index}, absl::OkStatus(), index);
}

void FeedLanes::OnStreamEnd(int index, StreamEnd end) {
  MutexLock lock(mu_);
  lanes_.at(index).ended = std::move(end);
  keeper_wakes_.SignalAll();
}

void FeedLanes::Keep() {
  while (true) {
    KeeperWork work;
    std::vector<LogLine> lines;
    {
      MutexLock lock(mu_);
      while (true) {
        EndWhatHasEnded();
        Tell(Tick());
        std::swap(work, work_);
        lines = log_.Take();
        if (!work.empty() || !lines.empty()) break;
        if (stopping_ && AllIdle()) return;
        keeper_wakes_.WaitFor(mu_, std::max(absl::ZeroDuration(), schedule_.wake_at() - clock_()));
      }
    }
    work.Do();
    if (options_.log == nullptr) continue;
    for (const LogLine& line : lines) {
      options_.log->Add(line.cause, line.level, line.text, line.fields);
    }
    options_.log->Tick();
  }
}

void FeedLanes::EndWhatHasEnded() {
  // Lanes and servers go with what their ends lead to: their numbers are collected first.
  std::vector<int> lanes;
  for (const auto& [number, lane] : lanes_) {
    if (lane.ended.has_value()) lanes.push_back(number);
  }
  for (const int number : lanes) EndStream(number);
  std::vector<int> questions;
  for (auto& [number, server] : servers_) {
    KnownServer::Question& question = server.question;
    if (question.ended.has_value()) {
      questions.push_back(number);
    } else if (question.call != nullptr && Stopped() && !question.cancelled) {
      question.cancelled = true;
      work_.cancel_calls.push_back(question.call.get());
    }
  }
  for (const int number : questions) EndQuestion(number);
}

void FeedLanes::EndQuestion(int number) {
  KnownServer& server = servers_.at(number);
  KnownServer::Question question = std::exchange(server.question, {});
  absl::Status status = *question.ended;
  Failure failure =
      FailureOf(status.code(), question.call->pushback(), /*running=*/answer_.has_value());
  if (question.call->answer_damaged()) {
    ++stats_.damaged_answers;
    failure = {.kind = FailureKind::kDamaged};
  } else if (status.ok()) {
    status = CheckAnswer(question.call->response());
    failure = {.kind = FailureKind::kFinal};
    if (status.ok()) {
      server.identity = question.call->response().identity();
      if (!std::exchange(server.told, "").empty()) log_.AnswersAgain(AddressOf(number));
      trainer_wakes_.SignalAll();
    }
  } else if (absl::IsAborted(status)) {
    ++stats_.damaged_requests;
  }
  work_.ended_calls.push_back(std::move(question.call));
  if (status.ok()) {
    Tell(Answered{.server = number});
    return;
  }
  if (!Stopped()) {
    ++stats_.streams_lost;
    server.Failed(status);
    // Until there is an answer, and if this is final, it is in the error that the trainer gets. The
    // same error over and over is no news.
    if (answer_.has_value() && failure.kind != FailureKind::kFinal &&
        status.message() != server.told) {
      server.told = std::string(status.message());
      log_.NoAnswer(AddressOf(number), status);
    }
  }
  Tell(AskFailed{.server = number, .failure = failure}, server.Named(status));
}

absl::Status FeedLanes::CheckAnswer(const v1::ResolveFeedResponse& answer) {
  SYSTOLE_RETURN_IF_ERROR(CheckFeedAnswer(answer, spec_));
  if (answer_.has_value()) return CheckSameFeed(answer, *answer_, options_.allow_mixed_content);
  answer_ = answer;
  log_.SetFeed(answer.identity().spec_fingerprint());
  return absl::OkStatus();
}

void FeedLanes::EndStream(int number) {
  FeedLane& lane = lanes_.at(number);
  std::optional<LaneEnding> ending;
  // One that we have cancelled says nothing of its server.
  if (!lane.stopping) ending = lane.Ending();
  const int server = lane.server;
  if (ending.has_value()) StreamLost(lane, *ending);
  work_.ended_streams.push_back(lane.TakeStream());
  if (!ending.has_value()) {
    Tell(StreamEnded{.lane = number});
    return;
  }
  lane.retries = true;
  if (absl::IsAborted(ending->status)) ++stats_.damaged_requests;
  Tell(StreamEnded{.lane = number, .failure = ending->failure},
       servers_.at(server).Named(ending->status));
}

void FeedLanes::StreamLost(const FeedLane& lane, const LaneEnding& ending) {
  ++stats_.streams_lost;
  KnownServer& server = servers_.at(lane.server);
  server.Failed(ending.status);
  if (ending.failure.kind == FailureKind::kFinal) return;  // The feed's error tells it.
  server.told = std::string(ending.status.message());
  const std::string address = AddressOf(lane.server);
  if (ending.failure.kind == FailureKind::kLeaving) {
    log_.ServerDrains(address, lane.cursor->step());
  } else {
    log_.StreamLost(address, lane.cursor->step(), ending.status);
  }
}

bool FeedLanes::TravelsCompactly(const ServerLink& link) const {
  if (finisher_ == nullptr) return false;
  return options_.finish == "client" || !link.is_same_host();
}

bool FeedLanes::AllIdle() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& entry) { return entry.second.stream == nullptr; }) &&
         std::all_of(servers_.begin(), servers_.end(),
                     [](const auto& entry) { return entry.second.question.call == nullptr; });
}

}  // namespace systole
