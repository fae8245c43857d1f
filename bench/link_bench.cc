// Measures a feed whose speed a link limits (bench/link.h): a link of 1 Gbit/s, and a link with a
// round trip of 20 ms. The ceiling is a raw TCP socket that moves the same bytes over the same
// link. Also measures how much faster images come through the link of 1 Gbit/s if the client, and
// not the server, finishes the steps. To finish a step is to normalise and cast its pixels.
//
// Needs root. Without root every figure is reported as not measured.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/link.h"
#include "bench/ready_feed.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/feed/feed_client.h"
#include "core/example/example_builder.h"
#include "core/memory/aligned_buffer.h"
#include "core/process/allocator.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/status/check.h"
#include "server/server.h"

namespace systole::bench {
namespace {

// Images in a step. A step of bf16 images has 9.6 MB.
constexpr int64_t kBatch = 32;
constexpr int64_t kImageBytes = 224 * 224 * 3;

// What StartBehindLinks() returned: OK if the links are there.
absl::Status links;
// The ports on which the server's process listens.
struct Ports {
  int32_t ready = 0;
  int32_t raw = 0;
  int32_t pixels = 0;
} ports;

// The server's process.

int Listen(int32_t& port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  SYSTOLE_CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  SYSTOLE_CHECK(listen(listener, 4) == 0);
  SYSTOLE_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port = ntohs(address.sin_port);
  return listener;
}

// Serves one client after the other: reads how many bytes the client wants, and sends this many
// bytes of ready steps, at most 1 MiB in a call of send().
void ServeRaw(int listener, const ReadySteps& ready) {
  while (true) {
    const int client = accept(listener, nullptr, nullptr);
    SYSTOLE_CHECK(client >= 0);
    int64_t left = 0;
    SYSTOLE_CHECK(recv(client, &left, sizeof(left), MSG_WAITALL) == sizeof(left));
    for (int64_t step = 0; left > 0; ++step) {
      for (int64_t at = 0; at < ready.bytes() && left > 0;) {
        const int64_t piece = std::min({ready.bytes() - at, left, int64_t{1} << 20});
        const ssize_t sent =
            send(client, ready.slice(step, 0) + at, static_cast<size_t>(piece), MSG_NOSIGNAL);
        SYSTOLE_CHECK(sent > 0);
        at += sent;
        left -= sent;
      }
    }
    close(client);
  }
}

// Writes records of raw pixels into a new folder, and returns the folder. Steps of raw pixels cost
// the server little, so the link is the limit.
std::string WritePixelShard() {
  const std::string path =
      absl::StrCat(std::filesystem::temp_directory_path().string(), "/link_bench-", getpid());
  std::filesystem::create_directory(path);
  absl::StatusOr<RecordWriter> writer = RecordWriter::Create(path + "/pixels.tfrecord");
  SYSTOLE_CHECK(writer.ok());
  for (int64_t i = 0; i < 2 * kBatch; ++i) {
    std::string pixels(static_cast<size_t>(kImageBytes), '\0');
    for (size_t at = 0; at < pixels.size(); ++at) pixels[at] = static_cast<char>(at * 7 + i);
    SYSTOLE_CHECK(writer->Write(ExampleBuilder().AddBytes("pixels", pixels).Serialize()).ok());
  }
  SYSTOLE_CHECK(writer->Close().ok());
  return path;
}

void Serve(int control) {
  const std::string folder = WritePixelShard();
  v1::ServerConfig config;
  v1::DatasetConfig& dataset = *config.add_datasets();
  dataset.set_name("pixels");
  dataset.add_shards(folder + "/*.tfrecord");
  absl::StatusOr<Catalogue> catalogue = Catalogue::Open(config, {});
  SYSTOLE_CHECK(catalogue.ok());
  config.set_listen("0.0.0.0:0");
  config.set_insecure(true);
  // A variable, because g++ 12 warns of unset members in a default argument.
  const FeedServiceOptions options;
  const auto pixels = Server::Start(*std::move(catalogue), config, options);
  SYSTOLE_CHECK(pixels.ok());
  const ReadySteps ready(kBatch, /*num_cores=*/1);
  ReadyService service(ready);
  const RunningServer server(service, "0.0.0.0:0");
  ports.ready = server.port;
  ports.pixels = (*pixels)->port();
  const int listener = Listen(ports.raw);
  std::thread raw([&] { ServeRaw(listener, ready); });
  SYSTOLE_CHECK(write(control, &ports, sizeof(ports)) == sizeof(ports));
  char end;
  (void)!read(control, &end, 1);  // Returns when the client's process ends or shuts the socket.
  std::filesystem::remove_all(folder);
  _exit(0);
}

// The client's process.

Sample MeasureSteps(FeedClient& client, int64_t warm_steps, int64_t steps, int64_t step_bytes) {
  for (int64_t i = 0; i < warm_steps; ++i) SYSTOLE_CHECK(client.Next().ok());
  return Measure(static_cast<double>(steps * step_bytes), [&] {
    for (int64_t i = 0; i < steps; ++i) {
      absl::StatusOr<std::optional<Step>> step = client.Next();
      SYSTOLE_CHECK(step.ok() && step->has_value());
      benchmark::DoNotOptimize((*step)->slice(0));
    }
  });
}

// The number of steps before the clock starts. After `full` steps TCP's windows are open, and the
// client has fetched as many steps ahead as it may. A smoke run needs no right figures: one step.
int64_t WarmSteps(int64_t full) { return NumRounds() == 1 ? 1 : full; }
constexpr int64_t kWarmSteps = 12;

Sample MeasureFeed(const char* host, const ReadySteps& ready, int64_t steps) {
  const int64_t step_bytes = ready.bytes();
  const auto client = FeedClient::Create(
      ready.spec,
      {.servers = {absl::StrCat(host, ":", ports.ready)}, .prefetch_bytes = 3 * step_bytes});
  SYSTOLE_CHECK(client.ok());
  return MeasureSteps(**client, WarmSteps(kWarmSteps), steps, step_bytes);
}

Sample MeasureSocket(const char* host, int64_t steps, int64_t step_bytes, AlignedBuffer& to) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(ports.raw));
  SYSTOLE_CHECK(inet_pton(AF_INET, host, &address.sin_addr) == 1);
  SYSTOLE_CHECK(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  const int64_t all = (WarmSteps(kWarmSteps) + steps) * step_bytes;
  SYSTOLE_CHECK(send(connection, &all, sizeof(all), 0) == sizeof(all));
  const auto receive = [&](int64_t number) {
    for (int64_t step = 0; step < number; ++step) {
      for (int64_t at = 0; at < step_bytes;) {
        const ssize_t got =
            recv(connection, to.data() + at, static_cast<size_t>(step_bytes - at), 0);
        SYSTOLE_CHECK(got > 0);
        at += got;
      }
    }
  };
  receive(WarmSteps(kWarmSteps));
  const Sample sample = Measure(static_cast<double>(steps * step_bytes), [&] { receive(steps); });
  close(connection);
  return sample;
}

// Whether there are links. If not (no root, or a container that may not make namespaces), reports
// `figure` as not measured.
bool HasLinks(benchmark::State& state, const std::string& figure) {
  if (links.ok()) return true;
  ReportNotMeasured(figure, std::string(links.message()));
  for (auto _ : state) continue;
  return false;
}

void CompareWithSocket(benchmark::State& state, const char* host, const std::string& link,
                       int64_t full_steps) {
  const std::string figure = absl::StrCat("ready bf16 batches through ", link);
  if (!HasLinks(state, figure)) return;
  const ReadySteps ready(kBatch, 1);
  const int64_t steps = ScaledWork(full_steps);
  AlignedBuffer to = *AlignedBuffer::Create(ready.bytes());
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples =
        TakeTurns({[&] { return MeasureFeed(host, ready, steps); },
                   [&] { return MeasureSocket(host, steps, ready.bytes(), to); }});
    const Row row = {.figure = figure,
                     .ceiling = "raw TCP socket through the same link",
                     .unit = "MB/s",
                     .unit_size = 1e6,
                     .wanted = 0.85};
    ReportRow(state, "of_socket", row, samples[0], samples[1]);
    state.counters["MB/s"] = samples[0].back().rate() / 1e6;
    state.counters["socket_MB/s"] = samples[1].back().rate() / 1e6;
  }
}

void BM_GigabitLink(benchmark::State& state) {
  CompareWithSocket(state, kGigabitServer, "a link of 1 Gbit/s", 30);
}
BENCHMARK(BM_GigabitLink)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

void BM_FarLink(benchmark::State& state) {
  CompareWithSocket(state, kFarServer, "a link of 20 ms round trip", 60);
}
BENCHMARK(BM_FarLink)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

// Measures how fast steps of float32 images come through the link of 1 Gbit/s. `finish`: "client"
// or "server".
Sample MeasureFinished(const std::string& finish, int64_t steps) {
  v1::FeedSpec spec;
  spec.set_dataset("pixels");
  spec.set_num_cores(1);
  spec.set_global_batch(kBatch);
  v1::Output& output = *spec.add_outputs();
  output.set_name("image");
  output.set_feature("pixels");
  output.add_transforms()->mutable_decode_raw();
  v1::Normalize& normalize = *output.add_transforms()->mutable_normalize();
  normalize.add_mean(127.5);
  normalize.add_stddev(63.75);
  output.set_dtype(v1::FLOAT32);
  for (const int64_t edge : {224, 224, 3}) output.add_shape(edge);
  const auto client =
      FeedClient::Create(spec, {.servers = {absl::StrCat(kGigabitServer, ":", ports.pixels)},
                                .finish = finish,
                                .prefetch_bytes = 3 * kBatch * kImageBytes * 4});
  SYSTOLE_CHECK(client.ok());
  return MeasureSteps(**client, WarmSteps(6), steps, kBatch);
}

void BM_FinishInClient(benchmark::State& state) {
  const std::string figure = "float32 images through a link of 1 Gbit/s, finish: client";
  if (!HasLinks(state, figure)) return;
  const int64_t steps = ScaledWork(12);
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples =
        TakeTurns({[&] { return MeasureFinished("client", steps); },
                   [&] { return MeasureFinished("server", steps); }});
    const Row row = {
        .figure = figure, .ceiling = "the same, finish: server", .unit = "img/s", .wanted = 3.5};
    ReportRow(state, "times_finished", row, samples[0], samples[1]);
  }
}
BENCHMARK(BM_FinishInClient)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  int control = -1;
  links = StartBehindLinks(Serve, control);
  if (links.ok()) SYSTOLE_CHECK(read(control, &ports, sizeof(ports)) == sizeof(ports));
  KeepFreedMemory();
  benchmark::RunSpecifiedBenchmarks();
  if (control >= 0) {
    shutdown(control, SHUT_RDWR);
    wait(nullptr);  // The server's process removes its shard.
  }
  return 0;
}

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) { return systole::bench::Main(argc, argv); }
