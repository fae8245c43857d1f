#include "tests/client/feed/fake_server.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/checksum/crc32c.h"
#include "core/checksum/xxh3.h"
#include "core/status/check.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_context.h"
#include "proto/framing/guarded_message.h"
#include "proto/framing/layout_description.h"
#include "proto/framing/status_bridge.h"
#include "tests/client/servers/paced_sockets.h"

namespace systole {
namespace {

// Returns the tensors of `feed`. If `feed` names no tensors, they are `valid`, `label` and `x`.
// `label` has the examples in its last dimension, and `x` in its first.
std::vector<SliceTensor> TensorsOf(const FakeFeed& feed) {
  if (!feed.tensors.empty()) return feed.tensors;
  return {{.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {feed.per_core_batch}}},
          {.spec = {.name = "label", .dtype = DType::kInt64, .shape = {3, feed.per_core_batch}},
           .batch_axis = 1},
          {.spec = {.name = "x",
                    .dtype = feed.pixels ? DType::kFloat32 : DType::kUint8,
                    .shape = {feed.per_core_batch, feed.example_bytes}}}};
}

// The byte at `place` of a tensor. Usually this is what feed.byte() returns for `place`. In a
// FLOAT32 tensor, feed.byte() gives the value of each element, not of each byte.
uint8_t ByteAt(DType dtype, const FakeFeed& feed, int64_t step, int core, int tensor,
               int64_t place) {
  if (dtype != DType::kFloat32) return feed.byte(step, core, tensor, place);
  const float value = feed.byte(step, core, tensor, place / 4);
  uint8_t bytes[4];
  std::memcpy(bytes, &value, 4);
  return bytes[place % 4];
}

// The layout in which a slice travels, `compact` or finished.
SliceLayout LayoutOf(const FakeFeed& feed, bool compact) {
  std::vector<SliceTensor> tensors = TensorsOf(feed);
  for (SliceTensor& tensor : tensors) {
    if (feed.pixels && compact && tensor.spec.name == "x") tensor.spec.dtype = DType::kUint8;
  }
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(std::move(tensors));
  SYSTOLE_CHECK(layout.ok());
  return *std::move(layout);
}

}  // namespace

uint8_t FakeByte(int64_t step, int core, int tensor, int64_t place) {
  const uint64_t mixed = static_cast<uint64_t>(step) * 0x9e3779b97f4a7c15 +
                         static_cast<uint64_t>(core) * 0xbf58476d1ce4e5b9 +
                         static_cast<uint64_t>(tensor) * 0x94d049bb133111eb +
                         static_cast<uint64_t>(place) * 0xd6e8feb86659fd93;
  return static_cast<uint8_t>(1 + (mixed >> 40) % 255);
}

std::string WrongBytesOf(const Step& step) {
  const FakeFeed feed;
  for (int core = step.core_begin(); core < step.core_end(); ++core) {
    for (int tensor = 0; tensor < static_cast<int>(step.layout().tensors().size()); ++tensor) {
      const TensorView found = step.Tensor(core, tensor);
      const absl::Span<const uint8_t> bytes = found.bytes();
      for (size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] !=
            ByteAt(found.dtype, feed, step.number(), core, tensor, static_cast<int64_t>(i))) {
          return absl::StrCat("step ", step.number(), ", core ", core, ", tensor ", tensor,
                              ", byte ", i);
        }
      }
    }
  }
  return "";
}

v1::FeedSpec SpecOf(const FakeFeed& feed) {
  v1::FeedSpec spec;
  spec.set_dataset("fake");
  spec.set_epochs(feed.epochs);
  spec.set_num_cores(feed.num_cores);
  spec.set_global_batch(feed.num_cores * feed.per_core_batch);
  std::vector<SliceTensor> tensors = TensorsOf(feed);
  std::reverse(tensors.begin(), tensors.end());  // `x` comes first.
  for (const SliceTensor& tensor : tensors) {
    if (tensor.spec.name == kValidTensor) continue;
    v1::Output& output = *spec.add_outputs();
    output.set_name(tensor.spec.name);
    output.set_feature(tensor.spec.name);
    output.set_dtype(static_cast<v1::DataType>(tensor.spec.dtype));
    if (tensor.is_tiled()) output.set_layout(v1::HWCN_TILED);
  }
  return spec;
}

// A synchronous gRPC service over generated protobuf messages. So the client also has to decode
// messages from another encoder than ours.
class FakeServer::Service : public v1::Systole::Service {
 public:
  explicit Service(FakeFeed feed) : feed_(std::move(feed)) {}

  grpc::Status ResolveFeed(grpc::ServerContext* context, const v1::ResolveFeedRequest* request,
                           v1::ResolveFeedResponse* answer) override {
    if (!feed_.refusal.ok()) return feed_.refusal;
    if (!IsGuarded(*context, *request)) return Damaged();
    const SliceLayout layout = LayoutOf(feed_, /*compact=*/false);
    DescribeLayout(layout, *answer);
    for (v1::TensorDescription& tensor : *answer->mutable_tensors()) {
      if (!feed_.pixels || !request->compact() || tensor.name() != "x") continue;
      tensor.mutable_compact()->add_scale(1);
      tensor.mutable_compact()->add_bias(0);
    }
    answer->set_steps_per_epoch(feed_.steps_per_epoch);
    answer->set_total_steps(request->spec().epochs() * feed_.steps_per_epoch);
    answer->set_num_records(feed_.steps_per_epoch * request->spec().global_batch());
    answer->set_bytes_per_step(layout.payload_bytes() * feed_.num_cores);
    *answer->mutable_identity() = Identity(request->spec());
    if (feed_.resolve) {
      const grpc::Status status = ToGrpcStatus(feed_.resolve(*answer));
      if (!status.ok()) return status;
    }
    std::string checksum = MessageChecksum(answer->SerializeAsString());
    if (feed_.resolve_checksum) feed_.resolve_checksum(checksum);
    context->AddInitialMetadata(kMessageChecksumKey, checksum);
    return grpc::Status::OK;
  }

  grpc::Status ServerStatus(grpc::ServerContext*, const v1::ServerStatusRequest*,
                            v1::ServerStatusResponse* answer) override {
    if (!feed_.refusal.ok()) return feed_.refusal;
    return feed_.status ? ToGrpcStatus(feed_.status(*answer)) : grpc::Status::OK;
  }

  grpc::Status ListDatasets(grpc::ServerContext*, const v1::ListDatasetsRequest*,
                            v1::ListDatasetsResponse* answer) override {
    if (!feed_.refusal.ok()) return feed_.refusal;
    return feed_.datasets ? ToGrpcStatus(feed_.datasets(*answer)) : grpc::Status::OK;
  }

  grpc::Status DescribeDataset(grpc::ServerContext*, const v1::DescribeDatasetRequest*,
                               v1::DescribeDatasetResponse* answer) override {
    if (!feed_.refusal.ok()) return feed_.refusal;
    return feed_.dataset ? ToGrpcStatus(feed_.dataset(*answer)) : grpc::Status::OK;
  }

  grpc::Status ReportTrainer(grpc::ServerContext*, const v1::ReportTrainerRequest* request,
                             v1::ReportTrainerResponse*) override {
    {
      MutexLock lock(mu_);
      ++reports_;
    }
    if (feed_.report) return ToGrpcStatus(feed_.report(request->trainer()));
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  }

  grpc::Status StreamSteps(grpc::ServerContext* context, const v1::StreamStepsRequest* request,
                           grpc::ServerWriter<v1::Chunk>* writer) override {
    int stream = 0;
    {
      MutexLock lock(mu_);
      stream = static_cast<int>(requests_.size());
      requests_.push_back(*request);
    }
    if (!IsGuarded(*context, *request)) return Damaged();
    if (feed_.pushback) {
      if (const std::optional<std::string> pushback = feed_.pushback(stream)) {
        context->AddTrailingMetadata("grpc-retry-pushback-ms", *pushback);
        return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "full");
      }
    }
    if (request->has_expected() &&
        request->expected().SerializeAsString() != Identity(request->spec()).SerializeAsString()) {
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "not the data expected");
    }
    const SliceLayout layout = LayoutOf(feed_, request->compact());
    const int64_t total_steps = request->spec().epochs() * feed_.steps_per_epoch;
    int chunk = 0;
    for (int64_t i = 0; i < request->count(); ++i) {
      const int64_t step = request->first_step() + i * std::max<int64_t>(1, request->stride());
      if (request->spec().epochs() > 0 && step >= total_steps) break;
      for (int core = request->core_begin(); core < request->core_end(); ++core) {
        for (int tensor = 0; tensor < static_cast<int>(layout.tensors().size()); ++tensor) {
          std::optional<grpc::Status> end =
              WriteTensor(layout, {step, core, tensor}, stream, chunk, *context, *writer);
          if (end.has_value()) return *end;
        }
      }
      MutexLock lock(mu_);
      ++steps_written_;
    }
    return grpc::Status::OK;
  }

  std::vector<v1::StreamStepsRequest> requests() const {
    MutexLock lock(mu_);
    return requests_;
  }
  int64_t reports() const {
    MutexLock lock(mu_);
    return reports_;
  }
  int64_t steps_written() const {
    MutexLock lock(mu_);
    return steps_written_;
  }
  int64_t chunks_written() const {
    MutexLock lock(mu_);
    return chunks_written_;
  }
  void WaitForChunks(int64_t chunks) const {
    MutexLock lock(mu_);
    while (chunks_written_ < chunks) changed_.Wait(mu_);
  }
  void Stop() {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.SignalAll();
  }

 private:
  static grpc::Status Damaged() {
    return grpc::Status(grpc::StatusCode::ABORTED, "the request has no checksum or a wrong one");
  }
  static bool IsGuarded(const grpc::ServerContext& context,
                        const google::protobuf::MessageLite& request) {
    const auto found = context.client_metadata().find(kMessageChecksumKey);
    return found != context.client_metadata().end() &&
           found->second == MessageChecksum(request.SerializeAsString());
  }

  v1::FeedIdentity Identity(const v1::FeedSpec& spec) const {
    v1::FeedIdentity identity;
    identity.set_dataset_fingerprint(feed_.dataset_fingerprint);
    identity.set_order_fingerprint(feed_.order_fingerprint);
    identity.set_content_version(feed_.content_version);
    identity.set_spec_fingerprint(Xxh3(spec.SerializeAsString()));
    return identity;
  }

  // Returns the status with which the stream must end, or nullopt if the stream goes on.
  std::optional<grpc::Status> WriteTensor(const SliceLayout& layout, const ChunkHeader& tensor,
                                          int stream, int& chunk, grpc::ServerContext& context,
                                          grpc::ServerWriter<v1::Chunk>& writer) {
    const TensorSpec& spec = layout.tensors()[static_cast<size_t>(tensor.tensor)].spec;
    const int64_t bytes = spec.num_bytes();
    for (int64_t offset = 0; offset < bytes; offset += feed_.chunk_bytes) {
      FakeChunk piece = {.header = tensor};
      piece.header.offset = offset;
      piece.data.resize(static_cast<size_t>(std::min(feed_.chunk_bytes, bytes - offset)));
      for (size_t i = 0; i < piece.data.size(); ++i) {
        piece.data[i] = ByteAt(spec.dtype, feed_, tensor.step, tensor.core, tensor.tensor,
                               offset + static_cast<int64_t>(i));
      }
      piece.header.crc32c = Crc32c(AsChars(piece.data));
      if (feed_.spoil) feed_.spoil(stream, chunk, piece);
      ++chunk;
      if (piece.hang) {
        Hang(context);
        return grpc::Status(grpc::StatusCode::CANCELLED, "");
      }
      if (!piece.skip && !writer.Write(MessageOf(piece))) {
        return grpc::Status(grpc::StatusCode::CANCELLED, "");
      }
      if (!piece.skip) {
        MutexLock lock(mu_);
        ++chunks_written_;
        changed_.SignalAll();
      }
      if (piece.end.has_value()) return ToGrpcStatus(*piece.end);
    }
    return std::nullopt;
  }

  void Hang(const grpc::ServerContext& context) {
    MutexLock lock(mu_);
    // gRPC does not signal that a client has gone, so the server looks every 2 ms.
    while (!stopping_ && !context.IsCancelled()) changed_.WaitFor(mu_, absl::Milliseconds(2));
  }

  static absl::string_view AsChars(const std::vector<uint8_t>& data) {
    return absl::string_view(reinterpret_cast<const char*>(data.data()), data.size());
  }

  static v1::Chunk MessageOf(const FakeChunk& piece) {
    v1::Chunk message;
    message.set_step(piece.header.step);
    message.set_core(piece.header.core);
    message.set_tensor(piece.header.tensor);
    message.set_offset(piece.header.offset);
    message.set_crc32c(piece.header.crc32c);
    message.set_draining(piece.header.draining);
    message.set_slot(piece.header.slot);
    message.set_slot_bytes(piece.header.slot_bytes);
    message.set_not_shared(static_cast<v1::NotShared>(piece.header.not_shared));
    message.set_header_crc32c(Crc32c(message.SerializeAsString()));
    message.set_data(std::string(AsChars(piece.data)));
    if (piece.alter) piece.alter(message);
    return message;
  }

  const FakeFeed feed_;
  mutable Mutex mu_;
  mutable CondVar changed_;
  std::vector<v1::StreamStepsRequest> requests_ ABSL_GUARDED_BY(mu_);
  int64_t reports_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t steps_written_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t chunks_written_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
};

FakeServer::FakeServer(FakeFeed feed, const std::string& address)
    : compresses_(feed.compresses),
      paced_(feed.paced),
      service_(std::make_unique<Service>(std::move(feed))) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service_.get());
  if (paced_) builder.SetOption(PacedSockets());
  if (compresses_) builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  server_ = builder.BuildAndStart();
  SYSTOLE_CHECK(server_ != nullptr && port != 0);
  address_ = absl::StartsWith(address, "unix:") ? address : absl::StrCat("127.0.0.1:", port);
}

FakeServer::~FakeServer() {
  service_->Stop();
  server_->Shutdown(std::chrono::system_clock::now());
}

std::vector<v1::StreamStepsRequest> FakeServer::requests() const { return service_->requests(); }
int64_t FakeServer::reports() const { return service_->reports(); }
int64_t FakeServer::steps_written() const { return service_->steps_written(); }
int64_t FakeServer::chunks_written() const { return service_->chunks_written(); }
void FakeServer::WaitForChunks(int64_t chunks) const { service_->WaitForChunks(chunks); }

}  // namespace systole
