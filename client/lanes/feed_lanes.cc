// FeedLanes: what the keeper, the watcher and gRPC's threads do. feed_lanes_trainer.cc has what the
// trainer's thread calls.
#include "client/lanes/feed_lanes.h"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/lanes/arrived_chunk.h"
#include "core/concurrency/queue_meter.h"
#include "core/random/process_draws.h"
#include "core/status/check.h"

namespace systole {
namespace {

// A feed begins with this many servers: if one fails, another serves already.
constexpr int kFirstServers = 2;

ScheduleOptions ScheduleOptionsOf(const FeedClientOptions& options, absl::Duration now) {
  return {.connect_timeout = options.connect_timeout,
          .retry_for = options.retry_for,
          .silence_timeout = options.silence_timeout,
          .backoff = options.backoff,
          .max_backoff = options.max_backoff,
          .hedge_fraction = options.hedge_fraction,
          .first_servers = kFirstServers,
          .max_servers = static_cast<int>(options.max_servers),
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
      clock_(SteadyClock()),
      client_(NumberOfProcess(static_cast<uint64_t>(absl::ToInt64Nanoseconds(clock_())), 1)),
      schedule_(ScheduleOptionsOf(options, clock_())),
      log_(options.log != nullptr, spec),
      servers_(spec_, options_, std::move(security), client_, log_, stats_),
      lanes_(*this),
      reports_(client_, options.report_every, clock_()) {
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
    if (order_ != nullptr) {  // The feed has begun.
      log_.ListIsUnreadable(addresses.status());
      keeper_wakes_.SignalAll();
    }
  }
  list_error_ = addresses.status();
  if (addresses.ok()) {
    const bool running = order_ != nullptr;
    for (const ScheduleEvent& event : servers_.SetAddresses(*addresses, running)) Tell(event);
  }
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

FeedLanes::Told FeedLanes::Tell(const ScheduleEvent& event, const absl::Status& cause,
                                int reading) {
  Told told;
  schedule_.Handle(event, clock_(), actions_);
  for (const ScheduleAction& action : actions_) Carry(action, cause, reading, told);
  actions_.clear();
  // Streams resume only when a step is taken: nothing else makes room in the window.
  SYSTOLE_CHECK(told.resumed.empty() || std::holds_alternative<StepTaken>(event));
  if (!work_.empty() || !log_.empty()) keeper_wakes_.SignalAll();
  return told;
}

void FeedLanes::Carry(const ScheduleAction& action, const absl::Status& cause, int reading,
                      Told& told) {
  const auto carry = [&](const auto& what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    using Action = std::decay_t<decltype(what)>;
    if constexpr (std::is_same_v<Action, AskServer>) {
      Ask(what.server);
    } else if constexpr (std::is_same_v<Action, ForgetServer>) {
      DestroyLater(servers_.Forget(what.server));
      reports_.Forget(what.server);
    } else if constexpr (std::is_same_v<Action, ReleaseServer>) {
      DestroyLater(servers_.Release(what.server));
    } else if constexpr (std::is_same_v<Action, OpenStream>) {
      Open(what);
    } else if constexpr (std::is_same_v<Action, StopStream>) {
      Stop(what, reading);
      if (what.lane == reading) told.verdict = ReadVerdict::kStop;
    } else if constexpr (std::is_same_v<Action, PauseStream>) {
      SYSTOLE_CHECK(what.lane == reading);  // This lane has just completed a step.
      told.verdict = ReadVerdict::kPause;
    } else if constexpr (std::is_same_v<Action, ResumeStream>) {
      told.resumed.push_back(lanes_.StreamOf(what.lane));
    } else if constexpr (std::is_same_v<Action, DeliverStep>) {
      Deliver(what);
    } else if constexpr (std::is_same_v<Action, CloseLane>) {
      // The caller's function may free this memory, so the keeper frees it later, without the lock.
      StepBuffer unused = lanes_.Close(what.lane);
      if (unused != nullptr) work_.unused.push_back(std::move(unused));
    } else if constexpr (std::is_same_v<Action, GiveUp>) {
      EndEarly(what, cause);
    } else {
      static_assert(std::is_same_v<Action, StepLate>);
      log_.StepIsLate(what.step, servers_.AddressOf(what.server),
                      what.second.has_value() ? servers_.AddressOf(*what.second) : "");
    }
  };
  std::visit(carry, action);
}

void FeedLanes::DestroyLater(std::unique_ptr<ServerLink> link) {
  if (link != nullptr) work_.forgotten_links.push_back(std::move(link));
}

void FeedLanes::Ask(int server) {
  work_.start_calls.push_back(servers_.Ask(server, [this, server](absl::Status status) {
    MutexLock lock(mu_);
    servers_.QuestionEnded(server, std::move(status));
    keeper_wakes_.SignalAll();
  }));
}

void FeedLanes::Open(const OpenStream& action) {
  ServerLink& link = servers_.LinkOf(action.server);
  v1::StreamStepsRequest request;
  *request.mutable_spec() = spec_;
  *request.mutable_expected() = servers_.IdentityOf(action.server);
  *request.mutable_trainer() = reports_.MessageOf(trainer_.Report(clock_()));
  work_.start_streams.emplace_back(lanes_.Open(action, link, std::move(request)), &link);
}

void FeedLanes::Stop(const StopStream& action, int reading) {
  if (action.silent) {
    servers_.StreamLost(
        lanes_.ServerOf(action.lane), lanes_.StepOf(action.lane),
        {.failure = {.kind = FailureKind::kLost},
         .status = absl::UnavailableError(absl::StrCat(
             "the server has sent nothing for ", absl::FormatDuration(options_.silence_timeout)))});
  }
  lanes_.Stop(action, reading, work_);
}

void FeedLanes::Deliver(const DeliverStep& action) {
  ++stats_.steps_received;
  const StepShape& shape = *lanes_.shape();
  stats_.delivered_bytes += shape.layout.payload_bytes() * shape.num_cores();
  if (lanes_.IsCompact(action.lane)) ++stats_.compact_steps;
  if (trainer_.Put(action.step, lanes_.TakeStep(action.lane),
                   lanes_.TakeSpans(action.lane, action.step)))
    trainer_wakes_.SignalAll();
}

void FeedLanes::EndEarly(const GiveUp& action, const absl::Status& cause) {
  trainer_.EndEarly(action.step, action.failure.has_value()
                                     ? LastWord(*action.failure, cause)
                                     : servers_.Unreachable(absl::StrCat(
                                           "no server has sent step ", action.step, " for ",
                                           absl::FormatDuration(action.waited))));
  trainer_wakes_.SignalAll();
}

ReadVerdict FeedLanes::OnChunk(int lane, const absl::StatusOr<ReceivedChunk>& received,
                               SlotReader* slots) {
  const ArrivedChunk chunk(received, slots);
  // Measures how long this gRPC thread, which serves all feeds, waited for a processor.
  thread_local QueueMeter meter;
  const absl::Duration begin = clock_();
  const absl::Duration arrived = begin - meter.Begin(begin);
  std::optional<LandedChunk> landed;
  {
    MutexLock lock(mu_);
    schedule_.Handle(ChunkArrived{.lane = lane}, clock_(), actions_);  // This causes no action.
    landed = lanes_.Accept(lane, chunk, /*shared=*/slots != nullptr, stats_);
    if (!landed.has_value()) return ReadVerdict::kStop;
  }
  landed->Put(chunk);
  const absl::Duration handled = clock_();
  meter.End(handled);
  MutexLock lock(mu_);
  switch (lanes_.Landed(lane, *std::move(landed), chunk, servers_.LinkOf(lanes_.ServerOf(lane)),
                        arrived, handled, stats_)) {
    case LaneTable::Outcome::kReadOn:
      return ReadVerdict::kRead;
    case LaneTable::Outcome::kStop:
      return ReadVerdict::kStop;
    case LaneTable::Outcome::kStepComplete:
      break;
  }
  return Tell(StepArrived{.lane = lane}, absl::OkStatus(), lane).verdict;
}

void FeedLanes::OnStreamEnd(int lane, StreamEnd end) {
  MutexLock lock(mu_);
  lanes_.StreamEnded(lane, std::move(end));
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
        SendReports();
        std::swap(work, work_);
        lines = log_.Take();
        if (!work.empty() || !lines.empty()) break;
        if (stopping_ && lanes_.idle() && servers_.idle() && reports_.idle()) return;
        const absl::Duration wake_at = std::min(schedule_.wake_at(), reports_.due_at());
        keeper_wakes_.WaitFor(mu_, std::max(absl::ZeroDuration(), wake_at - clock_()));
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
  for (const int lane : lanes_.Ended()) EndStream(lane);
  const std::vector<int> answering = servers_.Answering();
  if (Stopped()) {
    for (ResolveCall* call : servers_.CancelQuestions()) work_.cancel_calls.push_back(call);
    for (ReportCall* call : reports_.CancelAll()) work_.cancel_reports.push_back(call);
  }
  for (std::unique_ptr<ReportCall>& call : reports_.TakeEnded()) {
    work_.ended_reports.push_back(std::move(call));
  }
  for (const int server : answering) {
    FeedServers::Judged judged = servers_.Judge(server, /*wanted=*/!Stopped());
    work_.ended_calls.push_back(std::move(judged.call));
    if (judged.cause.ok()) trainer_wakes_.SignalAll();
    Tell(judged.event, judged.cause);
  }
}

void FeedLanes::SendReports() {
  const absl::Duration now = clock_();
  if (Stopped() || now < reports_.due_at()) return;
  const TrainerReport report = trainer_.Report(now);
  for (const int server : reports_.Due(lanes_.Streaming(), now)) {
    const auto ended = [this, server](const absl::Status& status) {
      MutexLock lock(mu_);
      reports_.Ended(server, status);
      keeper_wakes_.SignalAll();
    };
    work_.start_reports.emplace_back(reports_.Tell(server, report, ended),
                                     &servers_.LinkOf(server));
  }
}

void FeedLanes::EndStream(int lane) {
  const std::optional<LaneEnding> ending = lanes_.EndingOf(lane);
  const int server = lanes_.ServerOf(lane);
  if (ending.has_value()) servers_.StreamLost(server, lanes_.StepOf(lane), *ending);
  work_.ended_streams.push_back(lanes_.TakeStream(lane, /*failed=*/ending.has_value()));
  if (!ending.has_value()) {
    Tell(StreamEnded{.lane = lane});
    return;
  }
  if (absl::IsAborted(ending->status)) ++stats_.damaged_requests;
  Tell(StreamEnded{.lane = lane, .failure = ending->failure},
       servers_.Named(server, ending->status));
}

}  // namespace systole
