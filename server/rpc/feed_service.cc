#include "server/rpc/feed_service.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/dataset/dataset.h"
#include "core/image/jpeg/entropy_check.h"
#include "core/plan/content_version.h"
#include "core/spec/order_spec.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"
#include "proto/framing/guarded_message.h"
#include "proto/framing/status_bridge.h"
#include "proto/framing/trainer_report.h"
#include "proto/metrics/metric_messages.h"
#include "server/metrics/dataset_metrics.h"
#include "server/metrics/trainer_metrics.h"
#include "server/rpc/call_metadata.h"
#include "server/rpc/dataset_answers.h"
#include "server/rpc/dataset_numbers.h"
#include "server/rpc/feed_identity.h"
#include "server/rpc/stream_answers.h"
#include "server/rpc/waiting_answer.h"
#include "server/streams/end_cause.h"
#include "server/streams/step_writer.h"
#include "server/streams/stream_handle.h"
#include "server/traces/stream_trace.h"

namespace systole {
namespace {

// Smaller slices are copied into messages. A slot (shared memory) would cost more than the copy: a
// packet each way, a descriptor, two mappings, and one of the server's kMaxSlots slots.
constexpr int64_t kMinSlotBytes = int64_t{256} << 10;

// The most bytes of a stream that its client may hold in slots: a few slices of usual size. Without
// slots, HTTP/2's windows and the socket's buffers hold about as many bytes.
constexpr int64_t kSlotWindowBytes = int64_t{16} << 20;

// gRPC's metadata that says when a refused client may call again. Places become free in seconds.
constexpr const char* kPushbackKey = "grpc-retry-pushback-ms";
constexpr const char* kPushbackMs = "1000";

// A call that ends at once with a status.
class RefusedStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

absl::Status Draining() {
  return MarkedAs(EndCause::kDraining,
                  absl::UnavailableError("this server is draining; ask another"));
}

// The datasets that a feed reads, as one text.
std::string NamesOf(const v1::FeedSpec& spec) { return absl::StrJoin(DatasetsOf(spec), ","); }

}  // namespace

FeedService::FeedService(Catalogue catalogue, const FeedServiceOptions& options,
                         std::unique_ptr<SlotServer> slots)
    : options_(options),
      nobody_(nullptr),
      events_(options.events != nullptr ? *options.events : nobody_),
      refusals_(events_, counters_.refused),
      tracer_({.spans = options.spans}),
      not_shared_(events_),
      pictures_(options.clock),
      running_(options.max_streams),
      trainers_(options.clock),
      engine_(options.engine),
      slots_(std::move(slots)),
      feeds_(std::move(catalogue), options_.read_room, events_) {
  ObserveDamage(*feeds_.catalogue());
}

void FeedService::ObserveDamage(const Catalogue& catalogue) {
  for (const auto& [name, dataset] : catalogue.datasets()) {
    dataset->damage().Observe([this, name = name](const DamageLog::Entry& entry) {
      events_.Add(
          LogCause::kDamage, LogLevel::kWarn,
          absl::StrCat("dataset '", name, "': record ", entry.record, " is masked: ", entry.cause),
          {.dataset = name, .shard = entry.shard, .record = entry.record});
    });
  }
}

void FeedService::Change(absl::Span<const std::string> removed, const Catalogue& added) {
  const std::shared_ptr<const Catalogue> before = feeds_.catalogue();
  MaskedByCause masked = {};
  for (const std::string& name : removed) {
    const auto found = before->datasets().find(name);
    if (found != before->datasets().end()) AddMasked(*found->second, masked);
  }
  ObserveDamage(added);
  feeds_.Replace(std::make_shared<const Catalogue>(before->Changed(removed, added)), removed);
  for (size_t cause = 0; cause < kNumDamageCauses; ++cause) {
    masked_in_removed_[cause] += masked[cause];
  }
}

void FeedService::StartDraining() {
  counters_.draining = true;
  feeds_.Stop(Draining());
}

bool FeedService::StopWork(absl::Duration patience) {
  const MonotonicClock clock = SteadyClock();
  const absl::Duration deadline = clock() + patience;
  feeds_.Stop(Draining());  // Does not wait: feeds and engine end at the same time.
  const bool cancelled = engine_.CancelAll(patience);
  return feeds_.Stop(Draining(), deadline - clock()) && cancelled;
}

void FeedService::End(grpc::CallbackServerContext& context, grpc::ServerUnaryReactor& reactor,
                      const char* method, const absl::Status& status, LogFields about,
                      const CallTrace& trace) {
  tracer_.End(trace, method, status, {{"systole.dataset", ForeignName(about.dataset)}});
  about.trace = trace.id();
  if (!status.ok()) refusals_.Add(context, method, status, std::move(about));
  reactor.Finish(ToGrpcStatus(status));
}

grpc::ServerUnaryReactor* FeedService::Answer(
    grpc::CallbackServerContext* context, const char* method, LogFields about,
    absl::FunctionRef<absl::Status(const Permissions& permissions)> answer) {
  const absl::StatusOr<Permissions> permissions = PermissionsOf(options_.access.get(), *context);
  about.identity = IdentityOf(permissions);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  End(*context, *reactor, method, permissions.ok() ? answer(*permissions) : permissions.status(),
      std::move(about), {});
  return reactor;
}

absl::Status FeedService::CheckMayRead(const absl::StatusOr<Permissions>& permissions,
                                       const std::vector<std::string>& datasets) const {
  SYSTOLE_RETURN_IF_ERROR(permissions.status());
  for (const std::string& name : datasets) {
    if (permissions->MayRead(name)) continue;
    if (permissions->caller.anonymous()) return CredentialWanted();
    // Only the log says why. The client must not learn whether the dataset exists.
    events_.Add(LogCause::kRefused, LogLevel::kInfo,
                absl::StrCat("identity '", permissions->caller.identity, "' may not read '",
                             ForeignName(name), "'"),
                {.identity = permissions->caller.identity, .dataset = name});
    return MarkedAs(EndCause::kNotPermitted,
                    catalogue()->Find(name, permissions->Readable()).status());
  }
  return absl::OkStatus();
}

void FeedService::Tick() {
  if (options_.access != nullptr) {
    if (const absl::Status status = options_.access->Reload(); !status.ok()) {
      events_.Add(LogCause::kProgram, LogLevel::kError,
                  absl::StrCat(status.message(), "; the tokens read before stay valid"));
    }
  }
  running_.StopUnless([this, catalogue = catalogue()](const RunningStream& stream) {
    SYSTOLE_RETURN_IF_ERROR(catalogue->CheckServed(stream.datasets));
    return CheckMayRead(PermissionsOf(options_.access.get(), stream.credentials), stream.datasets);
  });
  // Comes first, so that StopStalled() also ends the streams of the clients hung up on here.
  if (slots_ != nullptr) slots_->HangUpOnStalled(options_.stalled_stream_timeout);
  running_.StopStalled(options_.stalled_stream_timeout);
  trainers_.Tick();
  feeds_.Tick();
}

grpc::ServerUnaryReactor* FeedService::ListDatasets(grpc::CallbackServerContext* context,
                                                    const v1::ListDatasetsRequest*,
                                                    v1::ListDatasetsResponse* response) {
  return Answer(context, "ListDatasets", {}, [&](const Permissions& permissions) {
    return systole::ListDatasets(*catalogue(), permissions, *response);
  });
}

grpc::ServerUnaryReactor* FeedService::DescribeDataset(grpc::CallbackServerContext* context,
                                                       const v1::DescribeDatasetRequest* request,
                                                       v1::DescribeDatasetResponse* response) {
  return Answer(context, "DescribeDataset", {.dataset = request->dataset()},
                [&](const Permissions& permissions) {
                  return systole::DescribeDataset(*catalogue(), permissions, *request, *response);
                });
}

grpc::ServerUnaryReactor* FeedService::ResolveFeed(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  auto* const reactor = new WaitingAnswer(feeds_);
  const CallTrace trace = tracer_.Begin(TraceContextOf(context->client_metadata()));
  LogFields about;
  v1::ResolveFeedRequest parsed;
  const auto prepare = [&]() -> absl::StatusOr<Permissions> {
    SYSTOLE_RETURN_IF_ERROR(ReadRequest(context->client_metadata(), *request, parsed));
    about.dataset = NamesOf(parsed.spec());
    SYSTOLE_ASSIGN_OR_RETURN(Permissions found, PermissionsOf(options_.access.get(), *context));
    about.identity = found.caller.identity;
    if (counters_.draining) return Draining();
    SYSTOLE_RETURN_IF_ERROR(CheckMayRead(found, DatasetsOf(parsed.spec())));
    return found;
  };
  const absl::StatusOr<Permissions> permissions = prepare();
  // `end` may run on another thread, after this function has returned.
  const auto end = [=, this, admitted = permissions.ok(), compact = parsed.compact(),
                    datasets = DatasetsOf(parsed.spec())](FeedMakers::Made feed) {
    // The permission may have been withdrawn during the wait. An error, too, would reveal data.
    if (admitted) {
      absl::Status status = CheckMayRead(PermissionsOf(options_.access.get(), *context), datasets);
      if (!status.ok()) feed = std::move(status);
    }
    if (feed.ok()) {
      v1::ResolveFeedResponse answer = DescribeFeed(**feed, compact);
      answer.mutable_load()->set_busy(engine_.busy());
      answer.mutable_load()->set_free_places(running_.free_places());
      GuardedMessage guarded = EncodeGuarded(answer);
      context->AddInitialMetadata(kMessageChecksumKey, guarded.checksum);
      response->Swap(&guarded.bytes);
    }
    End(*context, *reactor, "ResolveFeed", feed.status(), about, trace);
  };
  if (!permissions.ok()) {
    end(permissions.status());
    return reactor;
  }
  feeds_.Resolve(
      parsed.spec(), permissions->Readable(),
      {.id = reactor, .peer = PeerOf(permissions->caller, context->peer()), .done = end});
  return reactor;
}

grpc::ServerUnaryReactor* FeedService::ServerStatus(grpc::CallbackServerContext* context,
                                                    const v1::ServerStatusRequest*,
                                                    v1::ServerStatusResponse* response) {
  return Answer(context, "ServerStatus", {},
                [&](const Permissions& permissions) { return Tell(permissions, *response); });
}

absl::Status FeedService::Tell(const Permissions& permissions,
                               v1::ServerStatusResponse& response) const {
  if (!permissions.MaySeeStatus()) {
    return NotPermitted(permissions.caller, "ServerStatus", "status");
  }
  response.set_version(SYSTOLE_VERSION);
  response.set_content_version(ContentVersion());
  response.set_draining(counters_.draining);
  AddMetrics(ReadMetrics(), response);
  AddMetrics(ReadTrainerMetrics(trainers_.totals()), response);
  response.set_jpeg_fallback(std::string(OwnJpegEntropyDecoding().message()));
  AddDamage(*catalogue(), permissions, response);
  AddStreams(ReadStreams(permissions), response);
  return absl::OkStatus();
}

std::vector<MetricReading> FeedService::ReadMetrics() const { return ReadServerMetrics(Numbers()); }

ServerNumbers FeedService::Numbers() const {
  ServerNumbers numbers = {.service = counters_, .engine = engine_.GetStats()};
  if (const Listener* const listener = listener_; listener != nullptr) {
    numbers.listener = listener->counters();
  }
  if (options_.cache != nullptr) numbers.cache = options_.cache->stats();
  numbers.spans = tracer_.span_counts();
  numbers.wheres = feeds_.counts();
  numbers.max_streams = options_.max_streams;
  std::copy(masked_in_removed_.begin(), masked_in_removed_.end(), numbers.masked_examples.begin());
  const std::shared_ptr<const Catalogue> served = catalogue();
  numbers.datasets_served = static_cast<int64_t>(served->datasets().size());
  numbers.datasets_refused = static_cast<int64_t>(served->refused().size());
  for (const auto& [name, dataset] : served->datasets()) {
    AddMasked(*dataset, numbers.masked_examples);
  }
  return numbers;
}

std::vector<MetricFamily> FeedService::ReadFamilies() const {
  const ServerNumbers numbers = Numbers();
  std::vector<MetricFamily> families = FamiliesOf(kServerMetricPrefix, ReadServerMetrics(numbers));
  families.push_back(StepWaitFamily(numbers.engine.step_waits));
  for (MetricFamily& family :
       FamiliesOf(kTrainerMetricPrefix, ReadTrainerMetrics(trainers_.totals()))) {
    families.push_back(std::move(family));
  }
  families.push_back(BuildInfo(SYSTOLE_VERSION, ContentVersion()));
  for (MetricFamily& family : DatasetFamilies(ReadDatasetNumbers(*catalogue()))) {
    families.push_back(std::move(family));
  }
  return families;
}

SlowStepLists FeedService::ReadSlowSteps(const Permissions& permissions) const {
  return tracer_.slow_steps().Read(
      [&](const std::string& name) { return permissions.MayList(name); });
}

StreamSnapshots FeedService::ReadStreams(const Permissions& permissions) const {
  return running_.Snapshot(trainers_, [&permissions](const RunningStream& stream) {
    return std::all_of(stream.datasets.begin(), stream.datasets.end(),
                       [&](const std::string& name) { return permissions.MayList(name); });
  });
}

grpc::ServerUnaryReactor* FeedService::ReportTrainer(grpc::CallbackServerContext* context,
                                                     const v1::ReportTrainerRequest* request,
                                                     v1::ReportTrainerResponse*) {
  return Answer(context, "ReportTrainer", {}, [&](const Permissions& permissions) {
    if (!permissions.MayReadAny()) {
      if (permissions.caller.anonymous()) return CredentialWanted();
      return absl::PermissionDeniedError(
          absl::StrCat("identity '", permissions.caller.identity,
                       "' may read no dataset, so it has no trainer to report"));
    }
    const v1::TrainerReport& report = request->trainer();
    const std::string peer = PeerOf(permissions.caller, context->peer());
    // A report may come when its stream has just ended. This is no error.
    if (running_.Has(peer, report.client())) trainers_.Add(peer, report.client(), ReportOf(report));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::shared_ptr<const ServedFeed>> FeedService::PlanStream(
    const v1::StreamStepsRequest& request, const Permissions& permissions) {
  if (counters_.draining) return Draining();
  SYSTOLE_RETURN_IF_ERROR(CheckMayRead(permissions, DatasetsOf(request.spec())));
  // Slices in slots have finished tensors. A stream cannot mix finished and compact tensors.
  if (request.compact() && !request.slot_session().empty()) {
    return absl::InvalidArgumentError(
        "the request has compact and a slot_session; leave one out: in shared memory the server "
        "finishes tensors");
  }
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const ServedFeed> feed,
                           feeds_.Find(request.spec(), permissions.Readable()));
  if (request.has_expected()) {
    SYSTOLE_RETURN_IF_ERROR(
        CheckIdentity(request.expected(), IdentityOf(*feed->plan), request.spec()));
  }
  return feed;
}

absl::StatusOr<std::unique_ptr<StepStream>> FeedService::OpenStream(
    const v1::StreamStepsRequest& request, const ServedFeed& feed, std::string peer,
    StepRange& range, StreamSlots& slots) {
  std::shared_ptr<const FeedPlan> plan = feed.PlanFor(request.compact());
  const bool all_cores = request.core_begin() == 0 && request.core_end() == 0;
  range = {.first_step = request.first_step(),
           .count = request.count(),
           .stride = request.stride() == 0 ? 1 : request.stride(),
           .core_begin = request.core_begin(),
           .core_end = all_cores ? plan->num_cores() : request.core_end()};
  if (slots_ != nullptr && request.slot_session().empty()) slots_->LetIn();
  if (slots_ != nullptr && !request.slot_session().empty()) {
    slots = slots_->Claim(request.slot_session());
  }
  if (slots.session != nullptr && plan->layout().slice_bytes() < kMinSlotBytes) {
    slots = {.not_shared = v1::SLICES_TOO_SMALL};
  }
  StreamMemory memory;
  if (slots.session != nullptr) {
    memory = {.kind = BufferKind::kSealed, .window_bytes = kSlotWindowBytes};
  }
  return engine_.Open(std::move(plan), range, memory, std::move(peer), options_.cache);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* FeedService::Refuse(
    const grpc::CallbackServerContext& context, const absl::Status& status, LogFields about,
    const CallTrace& trace) {
  tracer_.End(trace, "StreamSteps", status, {{"systole.dataset", ForeignName(about.dataset)}});
  refusals_.Add(context, "StreamSteps", status, std::move(about));
  // The refused stream's client may have connected to the slot socket. LetIn() takes the connection
  // out of the socket's queue.
  if (slots_ != nullptr) slots_->LetIn();
  return new RefusedStream(status);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* FeedService::StreamSteps(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  CallTrace trace = tracer_.Begin(TraceContextOf(context->client_metadata()));
  v1::StreamStepsRequest parsed;
  if (absl::Status status = ReadRequest(context->client_metadata(), *request, parsed);
      !status.ok()) {
    return Refuse(*context, status, {.trace = trace.id()}, trace);
  }
  absl::StatusOr<Permissions> permissions = PermissionsOf(options_.access.get(), *context);
  LogFields about = {.client = context->peer(),
                     .identity = IdentityOf(permissions),
                     .dataset = NamesOf(parsed.spec()),
                     .step = parsed.first_step(),
                     .trace = trace.id()};
  if (!permissions.ok()) return Refuse(*context, permissions.status(), about, trace);
  // Checks the request first, because running_.Add() may end another stream to make a place.
  const absl::StatusOr<std::shared_ptr<const ServedFeed>> feed = PlanStream(parsed, *permissions);
  if (!feed.ok()) return Refuse(*context, feed.status(), about, trace);
  about.feed = (*feed)->plan->fingerprint();
  // Takes a place before the stream is opened, and gives it back if the stream cannot be opened.
  // Otherwise several requests at the same time could all find the last place free.
  const auto handle = std::make_shared<StreamHandle>(context->c_call(), options_.clock);
  const std::string peer = PeerOf(permissions->caller, context->peer());
  if (!running_.Add({.peer = peer,
                     .credentials = std::move(permissions->credentials),
                     .datasets = DatasetsOf(parsed.spec()),
                     .handle = handle,
                     .client = ShownClient(about),
                     .dataset = ForeignName(about.dataset),
                     .plan = (*feed)->plan,
                     .trainer = parsed.trainer().client()})) {
    context->AddTrailingMetadata(kPushbackKey, kPushbackMs);
    return Refuse(
        *context,
        MarkedAs(EndCause::kNoPlace, absl::ResourceExhaustedError(absl::StrCat(
                                         "this server serves ", options_.max_streams,
                                         " streams, which is its limit; ask another server, "
                                         "or ask later"))),
        about, trace);
  }
  ++counters_.active_streams;
  StepRange range;
  StreamSlots slots;
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      OpenStream(parsed, **feed, peer, range, slots);
  if (!stream.ok()) {
    running_.Remove(*handle);
    --counters_.active_streams;
    return Refuse(*context, stream.status(), about, trace);
  }
  handle->SharesThrough(slots.session);
  trainers_.Add(peer, parsed.trainer().client(), ReportOf(parsed.trainer()));
  const int64_t number = ++counters_.streams_opened;
  handle->Began(number);
  const FeedPlan& plan = *(*feed)->plan;
  TracedStream traced = {.dataset = about.dataset,
                         .datasets = DatasetsOf(parsed.spec()),
                         .feed = plan.fingerprint(),
                         .first_step = range.first_step,
                         .core_begin = range.core_begin,
                         .core_end = range.core_end};
  return StepWriter::Start(
      *std::move(stream), range, std::move(slots), handle, running_, counters_, not_shared_,
      StreamLog(events_, number, std::move(about), plan, range),
      StreamTrace(tracer_, std::move(trace), std::move(traced)),
      pictures_.TapOf((*feed)->PlanFor(parsed.compact()), DatasetsOf(parsed.spec())));
}

}  // namespace systole
