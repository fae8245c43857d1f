#include "server/rpc/feed_service.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/example/feature_view.h"
#include "core/image/jpeg/entropy_check.h"
#include "core/plan/content_version.h"
#include "core/spec/order_spec.h"
#include "core/status/foreign_text.h"
#include "core/status/status_macros.h"
#include "proto/framing/guarded_message.h"
#include "proto/framing/status_bridge.h"
#include "proto/metrics/metric_messages.h"
#include "server/access/call_credentials.h"
#include "server/metrics/server_metrics.h"
#include "server/streams/step_writer.h"
#include "server/streams/stream_handle.h"
#include "server/streams/trouble.h"

namespace systole {
namespace {

// Smaller slices travel as bytes. For each slot there are a descriptor and two mappings, of which a
// process has some thousands, and a packet each way; that outweighs the copying of so few bytes.
constexpr int64_t kMinSlotBytes = int64_t{256} << 10;

// What a client may hold in slots before it has given one back: about what HTTP/2's windows and the
// socket's buffers let a stream of bytes run ahead, and a few slices of the usual size.
constexpr int64_t kSlotWindowBytes = int64_t{16} << 20;

// gRPC's own name for when to ask again, and what a client without a place is told. Streams come
// and go within seconds.
constexpr const char* kPushbackKey = "grpc-retry-pushback-ms";
constexpr const char* kPushbackMs = "1000";

// Features that DescribeDataset lists; a record may have any number.
constexpr int kMaxFeaturesListed = 1000;

// A call that ends at once with a status.
class RefusedStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

absl::Status Draining() {
  return MarkedAs(Trouble::kDraining,
                  absl::UnavailableError("this server is draining; ask another"));
}

void Summarize(const Dataset& dataset, v1::DatasetSummary& summary) {
  summary.set_name(dataset.name());
  summary.set_num_shards(static_cast<int64_t>(dataset.shards().size()));
  summary.set_num_records(dataset.num_records());
  summary.set_fingerprint(dataset.fingerprint());
  summary.set_num_damaged_records(dataset.num_damaged_records());
}

void DescribeDamage(const DamageLog::Entry& entry, v1::DamagedRecord& record) {
  record.set_shard(ForeignName(entry.shard));
  record.set_record(entry.record);
  record.set_offset(entry.offset);
  record.set_cause(ForeignText(entry.cause));
}

// The datasets that a feed reads, as one text.
std::string NamesOf(const v1::FeedSpec& spec) { return absl::StrJoin(DatasetsOf(spec), ","); }

// Reads what a client asks.
//   Aborted          it was damaged on the way.
//   InvalidArgument  it is no such message.
absl::Status ReadRequest(const grpc::CallbackServerContext& context, const grpc::ByteBuffer& bytes,
                         google::protobuf::MessageLite& request) {
  const absl::Status status = DecodeGuarded(bytes, context.client_metadata(), request);
  if (!absl::IsDataLoss(status)) return status;
  // DATA_LOSS is for records; this is worth another attempt.
  return absl::AbortedError(
      absl::StrCat("the request is no good: ", status.message(), "; send it again"));
}

// FailedPrecondition unless a client that began with `expected` can go on with `own`.
absl::Status CheckIdentity(const v1::FeedIdentity& expected, const v1::FeedIdentity& own) {
  if (expected.spec_fingerprint() != 0 && expected.spec_fingerprint() != own.spec_fingerprint()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the spec is not the one expected: its fingerprint is %016x here, %016x was expected; "
        "either it was damaged on the way, or `expected` is ResolveFeed's answer to another spec",
        own.spec_fingerprint(), expected.spec_fingerprint()));
  }
  if (expected.dataset_fingerprint() != own.dataset_fingerprint()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the dataset is not the one this feed began with: its fingerprint is %016x here, %016x was "
        "expected; serve the same shards, or start the feed anew",
        own.dataset_fingerprint(), expected.dataset_fingerprint()));
  }
  if (expected.order_fingerprint() != own.order_fingerprint()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the order is not the one this feed began with (%016x here, %016x "
                        "expected): seed, shuffle, "
                        "global_batch and tail must stay the same",
                        own.order_fingerprint(), expected.order_fingerprint()));
  }
  // Empty: the client was told to accept any.
  if (!expected.content_version().empty() && expected.content_version() != own.content_version()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the content version is ", own.content_version(), " here, ",
                     ForeignName(expected.content_version()),
                     " was expected: the bytes may differ; run one version on all servers"));
  }
  return absl::OkStatus();
}

}  // namespace

FeedService::FeedService(Catalogue catalogue, const FeedServiceOptions& options,
                         std::unique_ptr<SlotServer> slots)
    : catalogue_(std::move(catalogue)),
      options_(options),
      nobody_(nullptr),
      events_(options.events != nullptr ? *options.events : nobody_),
      refusals_(events_, counters_.refused),
      not_shared_(events_),
      running_(options.max_streams),
      engine_(options.engine),
      slots_(std::move(slots)),
      feeds_(catalogue_) {
  for (const auto& [name, dataset] : catalogue_.datasets()) {
    dataset->damage().Observe([this, name = name](const DamageLog::Entry& entry) {
      events_.Add(
          LogCause::kDamage, LogLevel::kWarn,
          absl::StrCat("dataset '", name, "': record ", entry.record, " is masked: ", entry.cause),
          {.dataset = name, .shard = entry.shard, .record = entry.record});
    });
  }
}

grpc::ServerUnaryReactor* FeedService::Answer(grpc::CallbackServerContext* context,
                                              const char* method, const absl::Status& status,
                                              LogFields about) {
  if (!status.ok()) refusals_.Add(*context, method, status, std::move(about));
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

absl::Status FeedService::CheckMayRead(const Asker& asker,
                                       const std::vector<std::string>& datasets) const {
  const auto may_read = [&asker](absl::string_view name) { return asker.MayRead(name); };
  for (const std::string& name : datasets) {
    if (may_read(name)) continue;
    if (asker.caller.anonymous()) return CredentialWanted();
    // The log alone says why.
    events_.Add(LogCause::kRefused, LogLevel::kInfo,
                absl::StrCat("identity '", asker.caller.identity, "' may not read '",
                             ForeignName(name), "'"),
                {.identity = asker.caller.identity, .dataset = name});
    return MarkedAs(Trouble::kNotPermitted, catalogue_.Find(name, may_read).status());
  }
  return absl::OkStatus();
}

void FeedService::Tick() {
  if (options_.access != nullptr) {
    if (const absl::Status status = options_.access->Reload(); !status.ok()) {
      events_.Add(LogCause::kProgram, LogLevel::kError,
                  absl::StrCat(status.message(), "; the tokens read before stay good"));
    }
    running_.StopUnless([this](const RunningStream& stream) {
      const absl::StatusOr<Asker> asker = WhoAsks(options_.access.get(), stream.credentials);
      return asker.ok() ? CheckMayRead(*asker, stream.datasets) : asker.status();
    });
  }
  // In this order: a stream whose client was hung up on must not go on as bytes.
  if (slots_ != nullptr) slots_->HangUpOnStalled(options_.stalled_stream_timeout);
  running_.StopStalled(options_.stalled_stream_timeout);
}

grpc::ServerUnaryReactor* FeedService::ListDatasets(grpc::CallbackServerContext* context,
                                                    const v1::ListDatasetsRequest*,
                                                    v1::ListDatasetsResponse* response) {
  const absl::StatusOr<Asker> asker = WhoAsks(options_.access.get(), *context);
  return Answer(context, "ListDatasets", asker.ok() ? List(*asker, *response) : asker.status(),
                {.identity = IdentityOf(asker)});
}

absl::Status FeedService::List(const Asker& asker, v1::ListDatasetsResponse& response) const {
  if (asker.policy != nullptr && asker.caller.anonymous() &&
      !asker.policy->MayListAny(asker.caller)) {
    return CredentialWanted();
  }
  for (const auto& [name, dataset] : catalogue_.datasets()) {
    if (asker.MayList(name)) Summarize(*dataset, *response.add_datasets());
  }
  for (const auto& [name, refusal] : catalogue_.refused()) {
    if (!asker.MayList(name)) continue;
    v1::RefusedDataset& refused = *response.add_refused();
    refused.set_name(name);
    refused.set_reason(ForeignText(refusal.reason));
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FeedService::DescribeDataset(grpc::CallbackServerContext* context,
                                                       const v1::DescribeDatasetRequest* request,
                                                       v1::DescribeDatasetResponse* response) {
  const absl::StatusOr<Asker> asker = WhoAsks(options_.access.get(), *context);
  return Answer(context, "DescribeDataset",
                asker.ok() ? Describe(*asker, *request, *response) : asker.status(),
                {.identity = IdentityOf(asker), .dataset = request->dataset()});
}

absl::Status FeedService::Describe(const Asker& asker, const v1::DescribeDatasetRequest& request,
                                   v1::DescribeDatasetResponse& response) const {
  const auto may_list = [&asker](absl::string_view name) { return asker.MayList(name); };
  if (asker.caller.anonymous() && !may_list(request.dataset())) return CredentialWanted();
  absl::StatusOr<std::shared_ptr<const Dataset>> found =
      catalogue_.Find(request.dataset(), may_list);
  if (!may_list(request.dataset())) return MarkedAs(Trouble::kNotPermitted, found.status());
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> dataset, std::move(found));
  Summarize(*dataset, *response.mutable_summary());
  for (const std::shared_ptr<const RecordSource>& shard : dataset->shards()) {
    v1::ShardSummary& summary = *response.add_shards();
    summary.set_name(ForeignName(shard->base_name()));
    summary.set_bytes(static_cast<int64_t>(shard->size_bytes()));
    summary.set_num_records(shard->num_records());
    summary.set_num_damaged_records(shard->num_damaged());
  }
  for (const DamageLog::Entry& entry : dataset->DamagedRecords(DamageLog::kMaxEntries)) {
    DescribeDamage(entry, *response.add_damaged_records());
  }
  for (const FeatureDescription& feature : dataset->features()) {
    if (response.features_size() >= kMaxFeaturesListed) break;
    v1::FeatureSummary& summary = *response.add_features();
    summary.set_name(ForeignName(feature.name));
    summary.set_kind(std::string(FeatureKindName(feature.kind)));
    summary.set_num_values(feature.count);
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FeedService::ResolveFeed(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  v1::ResolveFeedRequest parsed;
  if (absl::Status status = ReadRequest(*context, *request, parsed); !status.ok()) {
    return Answer(context, "ResolveFeed", status, {});
  }
  v1::ResolveFeedResponse answer;
  const absl::StatusOr<Asker> asker = WhoAsks(options_.access.get(), *context);
  const absl::Status status = asker.ok() ? Resolve(*asker, parsed, answer) : asker.status();
  if (status.ok()) {
    GuardedMessage guarded = EncodeGuarded(answer);
    context->AddInitialMetadata(kMessageChecksumKey, guarded.checksum);
    response->Swap(&guarded.bytes);
  }
  return Answer(context, "ResolveFeed", status,
                {.identity = IdentityOf(asker), .dataset = NamesOf(parsed.spec())});
}

absl::Status FeedService::Resolve(const Asker& asker, const v1::ResolveFeedRequest& request,
                                  v1::ResolveFeedResponse& response) {
  if (counters_.draining) return Draining();
  SYSTOLE_RETURN_IF_ERROR(CheckMayRead(asker, DatasetsOf(request.spec())));
  SYSTOLE_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedFeed> feed,
                           feeds_.Find(request.spec()));
  DescribeFeed(*feed, request.compact(), response);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* FeedService::ServerStatus(grpc::CallbackServerContext* context,
                                                    const v1::ServerStatusRequest*,
                                                    v1::ServerStatusResponse* response) {
  const absl::StatusOr<Asker> asker = WhoAsks(options_.access.get(), *context);
  return Answer(context, "ServerStatus", asker.ok() ? Tell(*asker, *response) : asker.status(),
                {.identity = IdentityOf(asker)});
}

absl::Status FeedService::Tell(const Asker& asker, v1::ServerStatusResponse& response) const {
  if (!asker.MaySeeStatus()) return NotPermitted(asker.caller, "ServerStatus", "status");
  response.set_version(SYSTOLE_VERSION);
  response.set_content_version(ContentVersion());
  response.set_draining(counters_.draining);
  AddMetrics(ReadMetrics(), response);
  response.set_jpeg_fallback(std::string(OwnJpegEntropyDecoding().message()));
  for (const auto& [name, dataset] : catalogue_.datasets()) {
    if (!asker.MayList(name)) continue;
    v1::DatasetStatus& status = *response.add_datasets();
    status.set_name(name);
    status.set_masked_examples(dataset->damage().masked_examples());
    for (const DamageLog::Entry& entry : dataset->damage().entries()) {
      DescribeDamage(entry, *status.add_damaged_records());
    }
  }
  return absl::OkStatus();
}

std::vector<MetricReading> FeedService::ReadMetrics() const {
  ServerNumbers numbers = {.service = counters_, .engine = engine_.GetStats()};
  if (const Door* const door = door_; door != nullptr) numbers.door = door->counters();
  if (options_.cache != nullptr) numbers.cache = options_.cache->stats();
  for (const auto& [name, dataset] : catalogue_.datasets()) {
    numbers.masked_examples += dataset->damage().masked_examples();
  }
  return ReadServerMetrics(numbers);
}

absl::StatusOr<std::shared_ptr<const ServedFeed>> FeedService::PlanStream(
    const v1::StreamStepsRequest& request, const Asker& asker) {
  if (counters_.draining) return Draining();
  SYSTOLE_RETURN_IF_ERROR(CheckMayRead(asker, DatasetsOf(request.spec())));
  // A slice in a slot is finished, and one stream has one form.
  if (request.compact() && !request.slot_session().empty()) {
    return absl::InvalidArgumentError(
        "the request has compact and a slot_session; leave one out: in shared memory the server "
        "finishes tensors");
  }
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const ServedFeed> feed, feeds_.Find(request.spec()));
  if (request.has_expected()) {
    SYSTOLE_RETURN_IF_ERROR(CheckIdentity(request.expected(), IdentityOf(*feed->plan)));
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
    const grpc::CallbackServerContext& context, const absl::Status& status, LogFields about) {
  refusals_.Add(context, "StreamSteps", status, std::move(about));
  // Its client has connected too.
  if (slots_ != nullptr) slots_->LetIn();
  return new RefusedStream(status);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* FeedService::StreamSteps(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  v1::StreamStepsRequest parsed;
  if (absl::Status status = ReadRequest(*context, *request, parsed); !status.ok()) {
    return Refuse(*context, status, {});
  }
  absl::StatusOr<Asker> asker = WhoAsks(options_.access.get(), *context);
  LogFields about = {.client = context->peer(),
                     .identity = IdentityOf(asker),
                     .dataset = NamesOf(parsed.spec()),
                     .step = parsed.first_step()};
  if (!asker.ok()) return Refuse(*context, asker.status(), about);
  // Before a place is taken: a request that cannot be served must not end another peer's stream.
  const absl::StatusOr<std::shared_ptr<const ServedFeed>> feed = PlanStream(parsed, *asker);
  if (!feed.ok()) return Refuse(*context, feed.status(), about);
  about.feed = (*feed)->plan->fingerprint();
  // The place is taken first and given back if the stream cannot begin: requests that come at once
  // must not all find the last place free.
  const auto handle = std::make_shared<StreamHandle>(context->c_call(), options_.clock);
  const bool anonymous = asker->caller.anonymous();
  const std::string peer = anonymous ? std::string(HostOfPeer(context->peer()))
                                     : absl::StrCat("identity '", asker->caller.identity, "'");
  if (!running_.Add({.peer = peer,
                     .credentials = std::move(asker->credentials),
                     .datasets = DatasetsOf(parsed.spec()),
                     .handle = handle})) {
    context->AddTrailingMetadata(kPushbackKey, kPushbackMs);
    return Refuse(
        *context,
        MarkedAs(Trouble::kNoPlace, absl::ResourceExhaustedError(absl::StrCat(
                                        "this server serves ", options_.max_streams,
                                        " streams, the most it may; ask another, or later"))),
        about);
  }
  ++counters_.active_streams;
  StepRange range;
  StreamSlots slots;
  absl::StatusOr<std::unique_ptr<StepStream>> stream =
      OpenStream(parsed, **feed, peer, range, slots);
  if (!stream.ok()) {
    running_.Remove(*handle);
    --counters_.active_streams;
    return Refuse(*context, stream.status(), about);
  }
  handle->SharesThrough(slots.session);
  return StepWriter::Start(
      *std::move(stream), range, std::move(slots), handle, running_, counters_, not_shared_,
      StreamLog(events_, ++counters_.streams_opened, std::move(about), *(*feed)->plan, range));
}

}  // namespace systole
