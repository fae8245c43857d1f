// Measures the time from a server's start until a client has the first batch. The server is the
// real program. Its data set has as many records and shards as ImageNet, and index files are
// present. A second figure is for a client that resumes in the middle of epoch 90.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/corpora.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/feed/feed_client.h"
#include "core/status/check.h"
#include "systole/v1/feed.pb.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

constexpr int64_t kBatch = 128;

v1::FeedSpec MakeSpec() {
  v1::FeedSpec spec;
  spec.set_dataset("many");
  spec.set_seed(1);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  spec.set_global_batch(kBatch);
  spec.set_num_cores(8);
  v1::Output& output = *spec.add_outputs();
  output.set_name("image");
  output.set_feature("image");
  output.add_shape(bench::kTinyRecordBytes);
  output.add_transforms()->mutable_decode_raw();
  output.set_dtype(v1::UINT8);
  return spec;
}

// Seconds from exec to the first batch, and the step in the middle of epoch 90.
struct Start {
  double seconds = 0;
  int64_t far_step = 0;
};

Start StartServer(const std::string& glob, int64_t first_step) {
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<std::unique_ptr<ServerProcess>> server =
      ServerProcess::Start({"--dataset", absl::StrCat("many=", glob)});
  SYSTOLE_CHECK(server.ok());
  absl::StatusOr<std::unique_ptr<FeedClient>> client = FeedClient::Create(
      MakeSpec(), {.servers = {(*server)->address()}, .first_step = first_step, .steps = 1});
  SYSTOLE_CHECK(client.ok());
  absl::StatusOr<std::optional<Step>> step = (*client)->Next();
  SYSTOLE_CHECK(step.ok() && step->has_value());
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  const int64_t steps_per_epoch = (*client)->info().steps_per_epoch();
  return {.seconds = wall.count(), .far_step = 89 * steps_per_epoch + steps_per_epoch / 2};
}

void BM_FirstBatchAfterStart(benchmark::State& state) {
  const std::vector<std::string> shards = bench::ManyShards();
  const std::string glob = (std::filesystem::path(shards[0]).parent_path() / "*.tfrecord").string();
  const int64_t far_step = StartServer(glob, 0).far_step;
  const auto start = [&](int64_t first_step) {
    return [&glob, first_step]() -> bench::Sample {
      return {.amount = StartServer(glob, first_step).seconds, .seconds = 1};
    };
  };
  const bench::Side second = []() -> bench::Sample { return {.amount = 1, .seconds = 1}; };
  for (auto _ : state) {
    const std::vector<std::vector<bench::Sample>> samples =
        bench::TakeTurns({start(0), start(far_step), second});
    bench::ReportRow(state, "seconds",
                     {.figure = absl::StrCat("first batch after the server's start, ",
                                             bench::ScaledWork(1'281'167), " records in ",
                                             shards.size(), " shards"),
                      .ceiling = "one second",
                      .unit = "s",
                      .wanted = 0.3,
                      .bound = bench::Bound::kAtMost},
                     samples[0], samples[2]);
    bench::ReportRow(state, "of_first",
                     {.figure = "the same, resumed at half of epoch 90",
                      .ceiling = "first batch after the server's start",
                      .unit = "s",
                      .wanted = 1.2,
                      .bound = bench::Bound::kAtMost},
                     samples[1], samples[0]);
  }
}
BENCHMARK(BM_FirstBatchAfterStart)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole
