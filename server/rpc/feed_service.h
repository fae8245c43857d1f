// The gRPC service: translates messages into calls of core/plan and core/engine, and results into
// messages. It also checks permissions, admits streams, counts, and sends the drain notice.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_RPC_FEED_SERVICE_H_
#define SYSTOLE_SERVER_RPC_FEED_SERVICE_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/cache/value_cache.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/dataset/damage_cause.h"
#include "core/engine/step_engine.h"
#include "core/log/event_log.h"
#include "core/metrics/metric.h"
#include "core/metrics/metric_family.h"
#include "core/plan/epoch_bytes.h"
#include "core/plan/feed_plan.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/access/access_control.h"
#include "server/access/permissions.h"
#include "server/listener/listener.h"
#include "server/metrics/server_metrics.h"
#include "server/otlp/span_exporter.h"
#include "server/rpc/catalogue.h"
#include "server/rpc/served_feeds.h"
#include "server/slots/not_shared_log.h"
#include "server/slots/slot_server.h"
#include "server/statusz/served_pictures.h"
#include "server/streams/refusal_log.h"
#include "server/streams/running_streams.h"
#include "server/streams/service_counters.h"
#include "server/streams/stream_snapshot.h"
#include "server/streams/trainer_waits.h"
#include "server/traces/slow_steps.h"
#include "server/traces/tracer.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole {

struct FeedServiceOptions {
  StepEngineOptions engine;
  // The space that `engine` has for bytes of far shards. Only a line of the log uses this field.
  ReadRoom read_room;
  // Where feeds keep values of outputs with `cache`. Null: nowhere.
  std::shared_ptr<ValueCache> cache = nullptr;
  // The most streams that run at once. A client that gets no place is told to come back later.
  // Otherwise a flood of requests could divide the memory budget until no stream makes progress.
  int max_streams = 256;
  // A stream ends if its client takes nothing for this long. The stream's place and memory then go
  // to other streams.
  absl::Duration stalled_stream_timeout = absl::Seconds(120);
  // Who may do what. Null: everybody may do everything.
  std::shared_ptr<AccessControl> access;
  // Measures stalls.
  MonotonicClock clock = SteadyClock();
  // Gets lines about streams, refused requests and damage, from any thread. Null: no log.
  EventLog* events = nullptr;
  // Gets spans of calls and steps. Null: none are made.
  std::shared_ptr<SpanExporter> spans = nullptr;
};

class FeedService final : public v1::Systole::WithCallbackMethod_ListDatasets<
                              v1::Systole::WithCallbackMethod_DescribeDataset<
                                  v1::Systole::WithRawCallbackMethod_ResolveFeed<
                                      v1::Systole::WithCallbackMethod_ServerStatus<
                                          v1::Systole::WithCallbackMethod_ReportTrainer<
                                              v1::Systole::WithRawCallbackMethod_StreamSteps<
                                                  v1::Systole::Service>>>>>> {
 public:
  // `slots` are for clients of this machine; null: everything is sent as bytes.
  FeedService(Catalogue catalogue, const FeedServiceOptions& options,
              std::unique_ptr<SlotServer> slots);

  // Reads the tokens again if they have changed. Ends streams that are not permitted any more,
  // streams whose dataset was removed, and streams whose client takes nothing. Call it about once a
  // second, from one thread.
  void Tick();

  // The catalogue in force.
  std::shared_ptr<const Catalogue> catalogue() const { return feeds_.catalogue(); }

  // Takes the datasets `removed` out of the catalogue, and puts those of `added` into it. Streams
  // that read a removed dataset end with NotFound at the next Tick(). Two threads must not call
  // Change() at once.
  void Change(absl::Span<const std::string> removed, const Catalogue& added);

  // From now on streams end at the next step with a notice. New streams, and calls that wait for
  // their feed, get Unavailable.
  void StartDraining();
  bool draining() const { return counters_.draining; }

  // Adds the listener's connections to the metrics. `listener` must outlive all calls.
  void TellOfConnections(const Listener& listener) { listener_ = &listener; }

  // The server's metrics, as they are now.
  std::vector<MetricReading> ReadMetrics() const;
  // For a monitor: the metrics of the server, of trainers, of each dataset and of the build.
  std::vector<MetricFamily> ReadFamilies() const;

  // The streams that run now, with the clients' reports about their trainers (RunningStreams). Only
  // streams of datasets that may be listed with `permissions`.
  StreamSnapshots ReadStreams(const Permissions& permissions) const;
  // The slowest steps of the last minutes. Only steps of datasets that may be listed with
  // `permissions`.
  SlowStepLists ReadSlowSteps(const Permissions& permissions) const;

  // Pictures of what streams send.
  ServedPictures& pictures() { return pictures_; }

  // Logs and counts the refusals of this service and of other services of the server.
  RefusalLog& refusals() { return refusals_; }

  // See StepEngine::CancelAll(). Also false if a feed is still in making when `patience` is over.
  bool StopWork(absl::Duration patience);

  // Bytes of records that were read ahead, or are kept (StepEngineOptions::read_budget_bytes).
  int64_t read_ahead_bytes() const { return engine_.GetStats().reads.memory_bytes; }

  grpc::ServerUnaryReactor* ListDatasets(grpc::CallbackServerContext* context,
                                         const v1::ListDatasetsRequest* request,
                                         v1::ListDatasetsResponse* response) override;
  grpc::ServerUnaryReactor* DescribeDataset(grpc::CallbackServerContext* context,
                                            const v1::DescribeDatasetRequest* request,
                                            v1::DescribeDatasetResponse* response) override;
  grpc::ServerUnaryReactor* ResolveFeed(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ServerStatus(grpc::CallbackServerContext* context,
                                         const v1::ServerStatusRequest* request,
                                         v1::ServerStatusResponse* response) override;
  grpc::ServerUnaryReactor* ReportTrainer(grpc::CallbackServerContext* context,
                                          const v1::ReportTrainerRequest* request,
                                          v1::ReportTrainerResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* StreamSteps(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* request) override;

 private:
  // OK if the caller may read all of `datasets`.
  //   Unauthenticated  the caller is anonymous and may not read one of them, whether or not it
  //                    exists.
  //   NotFound         one of them does not exist, or the caller may not read it.
  // Also the error of `permissions`, and the errors of Catalogue::Find.
  absl::Status CheckMayRead(const absl::StatusOr<Permissions>& permissions,
                            const std::vector<std::string>& datasets) const;

  // Checks a request for a stream before the stream gets a place. Returns the stream's feed.
  absl::StatusOr<std::shared_ptr<const ServedFeed>> PlanStream(
      const v1::StreamStepsRequest& request, const Permissions& permissions);
  // Opens a stream. Sets `range`, and `slots` if the client asks for shared memory.
  absl::StatusOr<std::unique_ptr<StepStream>> OpenStream(const v1::StreamStepsRequest& request,
                                                         const ServedFeed& feed, std::string peer,
                                                         StepRange& range, StreamSlots& slots);
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Refuse(const grpc::CallbackServerContext& context,
                                                     const absl::Status& status, LogFields about,
                                                     const CallTrace& trace);
  // Ends a call that has one answer. `about` is for the log; End() adds the client and the trace.
  void End(grpc::CallbackServerContext& context, grpc::ServerUnaryReactor& reactor,
           const char* method, const absl::Status& status, LogFields about, const CallTrace& trace);
  // Serves a call that has one answer: identifies the caller, calls `answer`, and ends the call.
  grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context, const char* method, LogFields about,
      absl::FunctionRef<absl::Status(const Permissions& permissions)> answer);
  absl::Status Tell(const Permissions& permissions, v1::ServerStatusResponse& response) const;
  ServerNumbers Numbers() const;

  // From now on each record that is masked in a dataset of `catalogue` is logged.
  void ObserveDamage(const Catalogue& catalogue);

  const FeedServiceOptions options_;
  EventLog nobody_;  // Used if the options name no log.
  EventLog& events_;
  ServiceCounters counters_;
  RefusalLog refusals_;
  Tracer tracer_;
  std::atomic<const Listener*> listener_ = nullptr;
  NotSharedLog not_shared_;
  ServedPictures pictures_;
  RunningStreams running_;
  TrainerWaits trainers_;
  StepEngine engine_;
  const std::unique_ptr<SlotServer> slots_;  // After engine_: sessions hold the engine's memory.
  ServedFeeds feeds_;
  // Examples masked in datasets that have been removed, by cause.
  std::array<std::atomic<int64_t>, kNumDamageCauses> masked_in_removed_ = {};
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_FEED_SERVICE_H_
