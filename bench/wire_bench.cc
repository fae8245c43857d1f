// The wire alone: ready batches from a C++ server over loopback into the client's aligned memory,
// against a raw TCP socket that moves the same bytes and against generated protobuf code. The
// generated way runs in a process of its own, because ours tunes the allocator (KeepFreedMemory).
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/feed_client.h"
#include "core/batch/slice_layout.h"
#include "core/flow/worker_pool.h"
#include "core/memory/aligned_buffer.h"
#include "core/memory/allocator.h"
#include "core/status/check.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "proto/framing/element_spec.h"
#include "proto/framing/slice_chunks.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole {
namespace {

constexpr int kCores = 8;

// wire_bench --generated GLOBAL_BATCH STEPS prints the seconds of the generated way and ends.
constexpr char kGeneratedFlag[] = "--generated";

// Steps of `global_batch` images 224x224x3 in bf16, ready in memory. Two, so that no side finds all
// of it in the cache.
struct ReadySteps {
  explicit ReadySteps(int64_t global_batch) : global_batch(global_batch) {
    const int64_t batch = global_batch / kCores;
    absl::StatusOr<SliceLayout> created = SliceLayout::Create(
        {{.spec = {.name = "image", .dtype = DType::kBfloat16, .shape = {batch, 224, 224, 3}}},
         {.spec = {.name = "label", .dtype = DType::kInt64, .shape = {batch}}},
         {.spec = {.name = kValidTensor, .dtype = DType::kUint8, .shape = {batch}}}});
    SYSTOLE_CHECK(created.ok());
    layout = *created;
    for (AlignedBuffer& step : steps) {
      step = *AlignedBuffer::Create(bytes());
      for (int64_t i = 0; i < bytes(); ++i) step.data()[i] = static_cast<uint8_t>(i * 7);
    }
  }
  int64_t bytes() const { return layout.slice_bytes() * kCores; }
  const uint8_t* slice(int64_t step, int core) const {
    return steps[step % 2].data() + core * layout.slice_bytes();
  }

  const int64_t global_batch;
  SliceLayout layout;
  AlignedBuffer steps[2];
};

// Sends `count` steps from memory, framed as the real server frames them.
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
    if (core_ == kCores) {
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

class ReadyService final
    : public v1::Systole::WithCallbackMethod_ResolveFeed<
          v1::Systole::WithRawCallbackMethod_StreamSteps<v1::Systole::Service>> {
 public:
  explicit ReadyService(const ReadySteps& ready) : ready_(ready) {}
  grpc::ServerUnaryReactor* ResolveFeed(grpc::CallbackServerContext* context,
                                        const v1::ResolveFeedRequest*,
                                        v1::ResolveFeedResponse* response) override {
    DescribeLayout(ready_.layout, *response);
    response->set_steps_per_epoch(1);
    response->set_bytes_per_step(ready_.layout.payload_bytes() * kCores);
    response->mutable_identity()->set_content_version("ready");
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerWriteReactor<grpc::ByteBuffer>* StreamSteps(grpc::CallbackServerContext*,
                                                          const grpc::ByteBuffer* bytes) override {
    grpc::ByteBuffer copy(*bytes);
    v1::StreamStepsRequest request;
    SYSTOLE_CHECK(
        (grpc::GenericDeserialize<grpc::ProtoBufferReader, v1::StreamStepsRequest>(&copy, &request)
             .ok()));
    return new ReadyWriter(ready_, request);
  }

 private:
  const ReadySteps& ready_;
};

// The way a first version would be written: one message a step, generated code on both ends.
class GeneratedService final : public v1::Systole::Service {
 public:
  explicit GeneratedService(const ReadySteps& ready) : ready_(ready) {}
  grpc::Status StreamSteps(grpc::ServerContext*, const v1::StreamStepsRequest* request,
                           grpc::ServerWriter<v1::Chunk>* writer) override {
    v1::Chunk chunk;
    for (int64_t step = 0; step < request->count(); ++step) {
      chunk.set_step(step);
      chunk.set_data(ready_.slice(step, 0), static_cast<size_t>(ready_.bytes()));
      if (!writer->Write(chunk)) break;
    }
    return grpc::Status::OK;
  }

 private:
  const ReadySteps& ready_;
};

struct RunningServer {
  explicit RunningServer(grpc::Service& service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    SYSTOLE_CHECK(server != nullptr);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port); }
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

// How many steps one measurement moves: 1 GiB in the full run.
int64_t StepsToMove(const ReadySteps& ready) {
  return std::max<int64_t>(1, bench::ScaledWork(int64_t{1} << 30) / ready.bytes());
}

double BytesOf(const ReadySteps& ready, int64_t steps) {
  return static_cast<double>(ready.bytes() * steps);
}

bench::Sample MeasureFeedClient(const std::string& address, const ReadySteps& ready,
                                int64_t steps) {
  v1::FeedSpec spec;
  spec.set_dataset("ready");
  spec.set_num_cores(kCores);
  spec.set_global_batch(ready.global_batch);
  absl::StatusOr<std::unique_ptr<FeedClient>> client =
      FeedClient::Create(spec, {.servers = {address}, .prefetch_bytes = 3 * ready.bytes()});
  SYSTOLE_CHECK(client.ok());
  // The steady state is measured: afterwards the connection is there and every buffer was used.
  for (int64_t i = 0; i <= (*client)->window_steps(); ++i) SYSTOLE_CHECK((*client)->Next().ok());
  return bench::Measure(BytesOf(ready, steps), [&] {
    for (int64_t i = 0; i < steps; ++i) {
      absl::StatusOr<std::optional<Step>> step = (*client)->Next();
      SYSTOLE_CHECK(step.ok() && step->has_value());
      benchmark::DoNotOptimize((*step)->slice(0));
    }
  });
}

bench::Sample MeasureGenerated(const std::string& address, const ReadySteps& ready, int64_t steps) {
  AlignedBuffer destination = *AlignedBuffer::Create(ready.bytes());
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const auto stub = v1::Systole::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  v1::StreamStepsRequest request;
  request.set_count(steps + 1);
  const auto reader = stub->StreamSteps(&context, request);
  v1::Chunk chunk;
  SYSTOLE_CHECK(reader->Read(&chunk));
  const bench::Sample sample = bench::Measure(BytesOf(ready, steps), [&] {
    while (reader->Read(&chunk)) {
      std::memcpy(destination.data(), chunk.data().data(), chunk.data().size());
      benchmark::DoNotOptimize(destination.data());
    }
  });
  SYSTOLE_CHECK(reader->Finish().ok());
  return sample;
}

// A connected pair of TCP sockets over loopback.
std::pair<int, int> TcpPair() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  SYSTOLE_CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  SYSTOLE_CHECK(listen(listener, 1) == 0);
  SYSTOLE_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const int sender = socket(AF_INET, SOCK_STREAM, 0);
  SYSTOLE_CHECK(connect(sender, reinterpret_cast<sockaddr*>(&address), size) == 0);
  const int receiver = accept(listener, nullptr, nullptr);
  SYSTOLE_CHECK(receiver >= 0);
  close(listener);
  return {sender, receiver};
}

// The ceiling: 1 MiB writes, each received straight into its place in one of two aligned steps.
bench::Sample MeasureSocket(const ReadySteps& ready, int64_t steps,
                            AlignedBuffer (&destination)[2]) {
  const auto [sender, receiver] = TcpPair();
  const int64_t bytes = ready.bytes();
  const bench::Sample sample =
      bench::Measure(BytesOf(ready, steps), [&, sender = sender, receiver = receiver] {
        WorkerPool sending(1);
        sending.Submit([&] {
          for (int64_t step = 0; step < steps; ++step) {
            for (int64_t at = 0; at < bytes;) {
              const int64_t piece = std::min<int64_t>(bytes - at, 1 << 20);
              const ssize_t sent =
                  send(sender, ready.slice(step, 0) + at, static_cast<size_t>(piece), 0);
              SYSTOLE_CHECK(sent > 0);
              at += sent;
            }
          }
        });
        for (int64_t step = 0; step < steps; ++step) {
          uint8_t* to = destination[step % 2].data();
          for (int64_t at = 0; at < bytes;) {
            const ssize_t got = recv(receiver, to + at, static_cast<size_t>(bytes - at), 0);
            SYSTOLE_CHECK(got > 0);
            at += got;
          }
        }
      });
  close(sender);
  close(receiver);
  return sample;
}

// MeasureGenerated in a new process, with the allocator as a program finds it.
bench::Sample MeasureGeneratedInNewProcess(const ReadySteps& ready, int64_t steps) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      absl::StrCat("'", program, "' ", kGeneratedFlag, " ", ready.global_batch, " ", steps);
  FILE* pipe = popen(command.c_str(), "r");
  SYSTOLE_CHECK(pipe != nullptr);
  bench::Sample sample = {.amount = BytesOf(ready, steps)};
  SYSTOLE_CHECK(std::fscanf(pipe, "%lf", &sample.seconds) == 1);
  SYSTOLE_CHECK(pclose(pipe) == 0);
  return sample;
}

void PrintGeneratedSeconds(int64_t global_batch, int64_t steps) {
  const ReadySteps ready(global_batch);
  GeneratedService service(ready);
  const RunningServer server(service);
  std::printf("%.9f\n", MeasureGenerated(server.address(), ready, steps).seconds);
}

void BM_WireAgainstSocketAndGeneratedCode(benchmark::State& state) {
  const ReadySteps ready(/*global_batch=*/state.range(0));
  const int64_t steps = StepsToMove(ready);
  ReadyService service(ready);
  const RunningServer server(service);
  AlignedBuffer destination[2] = {*AlignedBuffer::Create(ready.bytes()),
                                  *AlignedBuffer::Create(ready.bytes())};
  for (auto _ : state) {
    const std::vector<std::vector<bench::Sample>> samples =
        bench::TakeTurns({[&] { return MeasureFeedClient(server.address(), ready, steps); },
                          [&] { return MeasureSocket(ready, steps, destination); },
                          [&] { return MeasureGeneratedInNewProcess(ready, steps); }});
    bench::Row row = {.figure = "wire alone: ready bf16 batches into the caller's memory",
                      .ceiling = "raw TCP socket",
                      .unit = "GB/s",
                      .unit_size = 1e9,
                      .wanted = 0.70};
    bench::ReportRow(state, "of_socket", row, samples[0], samples[1]);
    row.ceiling = "generated protobuf code, a message a step";
    row.wanted = 4;
    bench::ReportRow(state, "times_generated", row, samples[0], samples[2]);
  }
}
BENCHMARK(BM_WireAgainstSocketAndGeneratedCode)
    ->ArgName("global_batch")
    ->Arg(128)  // 38.5 MB a step.
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Ours alone, for a profiler to look at.
void BM_Wire(benchmark::State& state) {
  const ReadySteps ready(/*global_batch=*/state.range(0));
  ReadyService service(ready);
  const RunningServer server(service);
  const int64_t steps = StepsToMove(ready);
  for (auto _ : state) {
    state.SetIterationTime(MeasureFeedClient(server.address(), ready, steps).seconds);
  }
  state.SetBytesProcessed(state.iterations() * steps * ready.bytes());
}
BENCHMARK(BM_Wire)
    ->ArgName("global_batch")
    ->Arg(128)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime();

int Main(int argc, char** argv) {
  if (argc == 4 && absl::string_view(argv[1]) == kGeneratedFlag) {
    PrintGeneratedSeconds(std::atoll(argv[2]), std::atoll(argv[3]));
    return 0;
  }
  KeepFreedMemory();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) { return systole::Main(argc, argv); }
