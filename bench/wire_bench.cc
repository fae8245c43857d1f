// Measures the wire alone: ready batches go from a C++ server over loopback into the client's
// aligned memory. The speed is compared with a raw TCP socket that moves the same bytes, and with
// generated protobuf code. The generated code runs in a process of its own, because this process
// tunes the allocator (KeepFreedMemory).
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
#include "bench/ready_feed.h"
#include "bench/rounds.h"
#include "bench/tcp_pair.h"
#include "benchmark/benchmark.h"
#include "core/concurrency/worker_pool.h"
#include "core/memory/aligned_buffer.h"
#include "core/process/allocator.h"
#include "core/status/check.h"
#include "grpcpp/create_channel.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole {
namespace {

using bench::ReadyService;
using bench::ReadySteps;
using bench::RunningServer;

constexpr int kCores = 8;

// wire_bench --generated GLOBAL_BATCH STEPS prints the seconds that generated code takes, and ends.
constexpr char kGeneratedFlag[] = "--generated";

// The simplest server: it sends one message a step, with generated code on both ends.
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

// How many steps one measurement moves: 1 GiB in the full run.
int64_t StepsToMove(const ReadySteps& ready) {
  return std::max<int64_t>(1, bench::ScaledWork(int64_t{1} << 30) / ready.bytes());
}

double BytesOf(const ReadySteps& ready, int64_t steps) {
  return static_cast<double>(ready.bytes() * steps);
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

// The ceiling: send() sends 1 MiB at a time, and recv() receives straight into one of two aligned
// buffers, each as large as a step.
bench::Sample MeasureSocket(const ReadySteps& ready, int64_t steps,
                            AlignedBuffer (&destination)[2]) {
  const auto [sender, receiver] = bench::TcpPair();
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

// Runs MeasureGenerated in a new process, whose allocator is not tuned.
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
  const ReadySteps ready(global_batch, kCores);
  GeneratedService service(ready);
  const RunningServer server(service);
  std::printf("%.9f\n", MeasureGenerated(server.address, ready, steps).seconds);
}

void BM_WireAgainstSocketAndGeneratedCode(benchmark::State& state) {
  const ReadySteps ready(/*global_batch=*/state.range(0), kCores);
  const int64_t steps = StepsToMove(ready);
  ReadyService service(ready);
  const RunningServer server(service);
  AlignedBuffer destination[2] = {*AlignedBuffer::Create(ready.bytes()),
                                  *AlignedBuffer::Create(ready.bytes())};
  for (auto _ : state) {
    const std::vector<std::vector<bench::Sample>> samples =
        bench::TakeTurns({[&] { return MeasureFeedClient(server.address, ready, steps); },
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

// Measures the feed client alone, for a profiler.
void BM_Wire(benchmark::State& state) {
  const ReadySteps ready(/*global_batch=*/state.range(0), kCores);
  ReadyService service(ready);
  const RunningServer server(service);
  const int64_t steps = StepsToMove(ready);
  for (auto _ : state) {
    state.SetIterationTime(MeasureFeedClient(server.address, ready, steps).seconds);
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
  return bench::RunBenchmarks(argc, argv);
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) { return systole::Main(argc, argv); }
