#include "bench/ready_feed.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "benchmark/benchmark.h"
#include "client/feed/feed_client.h"
#include "core/status/check.h"
#include "grpcpp/server_builder.h"
#include "proto/framing/layout_description.h"
#include "proto/framing/slice_chunks.h"

namespace systole::bench {
namespace {

// Sends the steps that a request asks for. They are in memory already.
class ReadyWriter final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  ReadyWriter(const ReadySteps& ready, const v1::StreamStepsRequest& request)
      : ready_(ready), step_(request.first_step()), end_(step_ + request.count()) {
    OnWriteDone(true);
  }
  void OnWriteDone(bool ok) override {
    if (!ok || (chunks_.done() && !NextSlice())) {
      Finish(grpc::Status::OK);
      return;
    }
    int64_t payload_bytes = 0;
    message_ = chunks_.Next(payload_bytes);
    StartWrite(&message_);
  }
  void OnDone() override { delete this; }

 private:
  bool NextSlice() {
    if (core_ == ready_.num_cores) {
      core_ = 0;
      ++step_;
    }
    if (step_ == end_) return false;
    chunks_ = SliceChunks(step_, core_, ready_.layout, ready_.slice(step_, core_), nullptr);
    ++core_;
    return true;
  }

  const ReadySteps& ready_;
  int64_t step_;
  const int64_t end_;
  int core_ = 0;
  SliceChunks chunks_;
  grpc::ByteBuffer message_;
};

}  // namespace

ReadySteps::ReadySteps(int64_t global_batch, int num_cores)
    : global_batch(global_batch), num_cores(num_cores) {
  SYSTOLE_CHECK(global_batch % num_cores == 0);
  const int64_t batch = global_batch / num_cores;
  absl::StatusOr<SliceLayout> created = SliceLayout::Create(
      {{.spec = {.name = "image", .dtype = DType::kBfloat16, .shape = {batch, 224, 224, 3}}},
       {.spec = {.name = "label", .dtype = DType::kInt64, .shape = {batch}}},
       {.spec = {.name = kValidTensor, .dtype = DType::kUint8, .shape = {batch}}}});
  SYSTOLE_CHECK(created.ok());
  layout = *created;
  spec.set_dataset("ready");
  spec.set_num_cores(num_cores);
  spec.set_global_batch(global_batch);
  // A client refuses an answer that does not describe its spec's outputs.
  for (const auto& [name, dtype] : {std::pair{"image", v1::BFLOAT16}, {"label", v1::INT64}}) {
    v1::Output& output = *spec.add_outputs();
    output.set_name(name);
    output.set_dtype(dtype);
  }
  for (AlignedBuffer& step : steps) {
    step = *AlignedBuffer::Create(bytes());
    for (int64_t i = 0; i < bytes(); ++i) step.data()[i] = static_cast<uint8_t>(i * 7);
  }
}

grpc::ServerUnaryReactor* ReadyService::ResolveFeed(grpc::CallbackServerContext* context,
                                                    const v1::ResolveFeedRequest*,
                                                    v1::ResolveFeedResponse* response) {
  DescribeLayout(ready_.layout, *response);
  // The dataset has as many records as one step takes. A client checks that the numbers of records
  // and steps fit its spec.
  response->set_num_records(ready_.global_batch);
  response->set_steps_per_epoch(1);
  response->set_bytes_per_step(ready_.layout.payload_bytes() * ready_.num_cores);
  response->mutable_identity()->set_content_version("ready");
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadyService::StreamSteps(
    grpc::CallbackServerContext*, const grpc::ByteBuffer* bytes) {
  grpc::ByteBuffer copy(*bytes);
  v1::StreamStepsRequest request;
  SYSTOLE_CHECK(
      (grpc::GenericDeserialize<grpc::ProtoBufferReader, v1::StreamStepsRequest>(&copy, &request)
           .ok()));
  return Stream(request);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadyService::Stream(
    const v1::StreamStepsRequest& request) {
  return new ReadyWriter(ready_, request);
}

RunningServer::RunningServer(grpc::Service& service, const std::string& listen,
                             std::shared_ptr<grpc::ServerCredentials> own)
    : address(listen), credentials(std::move(own)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(listen, credentials, &port);
  builder.RegisterService(&service);
  server = builder.BuildAndStart();
  SYSTOLE_CHECK(server != nullptr);
  absl::string_view host = listen;
  if (absl::ConsumeSuffix(&host, ":0")) address = absl::StrCat(host, ":", port);
}

Sample MeasureFeedClient(const std::string& address, const ReadySteps& ready, int64_t steps,
                         const ServerSecurity& security) {
  absl::StatusOr<std::unique_ptr<FeedClient>> client = FeedClient::Create(
      ready.spec,
      {.servers = {address}, .security = security, .prefetch_bytes = 3 * ready.bytes()});
  SYSTOLE_CHECK(client.ok());
  // Only the steady state is measured. After these steps the connection is open and every buffer
  // has been used.
  for (int64_t i = 0; i <= (*client)->window_steps(); ++i) SYSTOLE_CHECK((*client)->Next().ok());
  return Measure(static_cast<double>(ready.bytes() * steps), [&] {
    for (int64_t i = 0; i < steps; ++i) {
      absl::StatusOr<std::optional<Step>> step = (*client)->Next();
      SYSTOLE_CHECK(step.ok() && step->has_value());
      benchmark::DoNotOptimize((*step)->slice(0));
    }
  });
}

}  // namespace systole::bench
