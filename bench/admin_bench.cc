// Measures what a scrape of /metrics costs a server with many streams.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/status/check.h"
#include "grpcpp/create_channel.h"
#include "server/server.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/admin/http_client.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"

namespace systole::bench {
namespace {

constexpr int kStreams = 100;

// A stream whose client has read the first chunk and reads no more.
struct OpenStream {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader;

  ~OpenStream() { context.TryCancel(); }
};

void BM_Scrape(benchmark::State& state) {
  const TempFolder folder;
  folder.Write("a.tfrecord", TestShards({12})[0]);
  v1::ServerConfig config = ListenOn("127.0.0.1:0");
  config.set_admin("127.0.0.1:0");
  absl::StatusOr<std::unique_ptr<AdminPort>> admin =
      Server::OpenAdmin(config, /*access=*/nullptr, /*events=*/nullptr);
  absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder / "a.tfrecord");
  SYSTOLE_CHECK(admin.ok() && catalogue.ok());
  const int port = (*admin)->port();
  const FeedServiceOptions service;  // g++ 12 would warn of a temporary.
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(*std::move(catalogue), config, service, *std::move(admin));
  SYSTOLE_CHECK(server.ok());
  std::vector<std::unique_ptr<v1::Systole::Stub>> stubs;
  std::vector<std::unique_ptr<OpenStream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stubs.push_back(v1::Systole::NewStub(grpc::CreateCustomChannel(
        (*server)->address(), grpc::InsecureChannelCredentials(), own_connection)));
    v1::StreamStepsRequest request;
    *request.mutable_spec() =
        SpecFromText("dataset: 'test' seed: 3 global_batch: 4 num_cores: 2 " + AllOutputs());
    request.mutable_spec()->set_seed(static_cast<uint64_t>(i));
    request.set_count(1'000'000);
    streams.push_back(std::make_unique<OpenStream>());
    streams.back()->reader = stubs.back()->StreamSteps(&streams.back()->context, request);
    v1::Chunk chunk;
    SYSTOLE_CHECK(streams.back()->reader->Read(&chunk));
  }
  // After this time each stream has sent as much as its client's flow-control window takes.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const int64_t scrapes = ScaledWork(100);
  const Side scrape = [&]() -> Sample {
    const Sample all = Measure(static_cast<double>(scrapes), [&] {
      for (int64_t i = 0; i < scrapes; ++i) {
        SYSTOLE_CHECK(HttpGet(port, "/metrics").status == 200);
      }
    });
    return {.amount = all.cpu_seconds / static_cast<double>(scrapes), .seconds = 1};
  };
  const Side bound = []() -> Sample { return {.amount = 0.01, .seconds = 1}; };
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns({scrape, bound});
    ReportRow(state, "of_bound",
              {.figure = "CPU time of a scrape of `/metrics`, 100 streams, its client included",
               .ceiling = "10 ms",
               .unit = "s",
               .wanted = 1,
               .bound = Bound::kAtMost},
              samples[0], samples[1]);
  }
}
BENCHMARK(BM_Scrape)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole::bench
