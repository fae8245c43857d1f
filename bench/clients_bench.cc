// Measures one server with many clients.
//   BM_Clients       The total rate of 1 to 16 clients, and how evenly the clients share this rate.
//                    Either all clients read one feed, or each client reads a feed of its own.
//   BM_ServerMemory  The memory of a server when most of its clients do not read.
//
// BM_Clients asks for small pictures (64 x 64, u8), so that the clients in this process cost little
// and leave the processors to the server. The server decodes the same photographs for any size.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/photograph_feed.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "client/feed/feed_client.h"
#include "core/process/allocator.h"
#include "core/status/check.h"
#include "grpcpp/create_channel.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole::bench {
namespace {

constexpr int kNumClients[] = {1, 2, 4, 8, 16};

// Lets client i take steps of `specs[i]`. `duration` begins when every client has had its first
// step. Returns how many examples each client took within `duration`.
std::vector<double> ExamplesTaken(const std::string& address,
                                  const std::vector<v1::FeedSpec>& specs,
                                  std::chrono::duration<double> duration) {
  std::vector<std::unique_ptr<FeedClient>> clients;
  for (const v1::FeedSpec& spec : specs) {
    // Without memory for prefetching, a client is at most two steps ahead when `duration` begins.
    absl::StatusOr<std::unique_ptr<FeedClient>> client =
        FeedClient::Create(spec, {.servers = {address}, .prefetch_bytes = 0});
    SYSTOLE_CHECK(client.ok());
    clients.push_back(*std::move(client));
  }
  std::atomic<size_t> ready = 0;
  std::atomic<bool> over = false;
  std::vector<double> examples(specs.size());
  std::vector<std::thread> trainers;
  for (size_t i = 0; i < specs.size(); ++i) {
    trainers.emplace_back([&, i] {
      bool first = true;
      while (!over) {
        const absl::StatusOr<std::optional<Step>> step = clients[i]->Next();
        SYSTOLE_CHECK(step.ok() && step->has_value());
        if (std::exchange(first, false)) ++ready;
        // A step counts only within `duration`.
        if (ready == specs.size() && !over) {
          examples[i] += static_cast<double>(specs[i].global_batch());
        }
      }
    });
  }
  while (ready < specs.size()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(duration);
  over = true;
  for (std::thread& trainer : trainers) trainer.join();
  return examples;
}

std::vector<v1::FeedSpec> SpecsOf(int clients, bool different) {
  std::vector<v1::FeedSpec> specs;
  for (int i = 0; i < clients; ++i) {
    specs.push_back(SpecOf({.dtype = v1::UINT8,
                            .global_batch = 32,
                            .edge_px = 64,
                            .seed = static_cast<uint64_t>(different ? i : 0)}));
  }
  return specs;
}

std::vector<double> Rates(const std::vector<Sample>& samples) {
  std::vector<double> rates;
  for (const Sample& sample : samples) rates.push_back(sample.rate());
  return rates;
}

void BM_Clients(benchmark::State& state, bool different) {
  const std::string series = different ? "different feeds" : "one feed";
  const std::unique_ptr<ServerProcess> server = ServePhotographs();
  const auto seconds = static_cast<double>(ScaledWork(100)) / 100;
  // Number of clients -> one sample for each round. `least`: the examples of the client that got
  // the fewest. `mean`: the mean of all clients' examples.
  std::map<int, std::vector<Sample>> least;
  std::map<int, std::vector<Sample>> mean;
  std::vector<Side> sides;
  for (const int clients : kNumClients) {
    sides.push_back([&, clients] {
      const double cpu_before = UseOf(*server).cpu_seconds;
      const std::vector<double> examples = ExamplesTaken(
          server->address(), SpecsOf(clients, different), std::chrono::duration<double>(seconds));
      double total = 0;
      for (const double of_one : examples) total += of_one;
      least[clients].push_back(
          {.amount = *std::min_element(examples.begin(), examples.end()), .seconds = seconds});
      mean[clients].push_back({.amount = total / clients, .seconds = seconds});
      return Sample{.amount = total,
                    .seconds = seconds,
                    .cpu_seconds = UseOf(*server).cpu_seconds - cpu_before};
    });
  }
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> totals = TakeTurns(sides);
    size_t best = 0;
    size_t worst = 0;
    int least_fair = kNumClients[0];
    const auto share = [&](int clients) {
      std::vector<double> shares;
      for (size_t round = 0; round < least[clients].size(); ++round) {
        shares.push_back(least[clients][round].amount / mean[clients][round].amount);
      }
      return Median(shares);
    };
    for (size_t i = 0; i < totals.size(); ++i) {
      const double total = Median(Rates(totals[i]));
      if (total > Median(Rates(totals[best]))) best = i;
      if (total < Median(Rates(totals[worst]))) worst = i;
      if (share(kNumClients[i]) < share(least_fair)) least_fair = kNumClients[i];
      const auto x = static_cast<double>(kNumClients[i]);
      ReportPoint({.curve = "Total over clients",
                   .series = series,
                   .x_label = "clients",
                   .x = x,
                   .y_label = "img/s",
                   .y = total});
      ReportPoint({.curve = "Smallest client's part of an equal share",
                   .series = series,
                   .x_label = "clients",
                   .x = x,
                   .y_label = "of an equal share",
                   .y = share(kNumClients[i])});
      state.counters[absl::StrCat("img/s_", kNumClients[i])] = total;
      state.counters[absl::StrCat("share_", kNumClients[i])] = share(kNumClients[i]);
    }
    if (different) {
      ReportRow(state, "of_best",
                {.figure = absl::StrCat(series, ": total with ", kNumClients[worst],
                                        " clients, the lowest of 1 to 16"),
                 .ceiling = absl::StrCat("total with ", kNumClients[best], ", the highest"),
                 .unit = "img/s",
                 .wanted = 0.9},
                totals[worst], totals[best]);
    } else {
      // Clients of one feed share their steps, so each example is made once.
      ReportRow(state, "of_one",
                {.figure = absl::StrCat(series, ": total with ", kNumClients[1], " clients"),
                 .ceiling = absl::StrCat("total with ", kNumClients[0]),
                 .unit = "img/s",
                 .wanted = 1.6},
                totals[1], totals[0]);
    }
    ReportRow(state, "smallest_share",
              {.figure = absl::StrCat(series, ": the client that got least of ", least_fair),
               .ceiling = "an equal share",
               .unit = "img/s",
               .wanted = 0.5},
              least[least_fair], mean[least_fair]);
  }
}
BENCHMARK_CAPTURE(BM_Clients, one_feed, /*different=*/false)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Clients, different_feeds, /*different=*/true)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// A stream that is opened and never read from.
class IdleStream {
 public:
  IdleStream(const std::string& address, const v1::FeedSpec& spec)
      : stub_(v1::Systole::NewStub(OwnConnection(address))) {
    v1::StreamStepsRequest request;
    *request.mutable_spec() = spec;
    request.set_count(int64_t{1} << 40);
    reader_ = stub_->StreamSteps(&context_, request);
    reader_->WaitForInitialMetadata();
  }
  ~IdleStream() {
    context_.TryCancel();
    reader_->Finish();
  }

 private:
  static std::shared_ptr<grpc::Channel> OwnConnection(const std::string& address) {
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args);
  }

  const std::unique_ptr<v1::Systole::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader_;
};

// Measures the largest resident set of a server. Each round starts a new server.
void BM_ServerMemory(benchmark::State& state) {
  constexpr int kIdle = 64;
  constexpr int kActive = 8;
  constexpr int64_t kBudgetMib = 256;
  const auto seconds = static_cast<double>(ScaledWork(100)) / 100;
  const Side server_memory = [&] {
    const std::unique_ptr<ServerProcess> server =
        ServePhotographs({"--memory-budget", absl::StrCat(kBudgetMib << 20)});
    std::vector<std::unique_ptr<IdleStream>> idle;
    // A slice takes 2.4 MB. Without the budget, the server would make slices ahead for all 64 idle
    // and 8 active clients. Together these slices would need more memory than the budget.
    for (uint64_t i = 0; i < kIdle; ++i) {
      idle.push_back(std::make_unique<IdleStream>(server->address(), SpecOf({.seed = i})));
    }
    std::vector<v1::FeedSpec> active;
    for (uint64_t i = 0; i < kActive; ++i) active.push_back(SpecOf({.seed = kIdle + i}));
    ExamplesTaken(server->address(), active, std::chrono::duration<double>(seconds));
    const double peak = UseOf(*server).peak_bytes;
    return Sample{.amount = peak, .seconds = 1, .peak_bytes = peak};
  };
  const Side allowed = [] {
    return Sample{.amount = static_cast<double>((kBudgetMib + 64) << 20), .seconds = 1};
  };
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns({server_memory, allowed});
    ReportRow(
        state, "of_allowed",
        {.figure =
             absl::StrCat("server's memory at ", kIdle, " idle and ", kActive, " active streams"),
         .ceiling = absl::StrCat("its --memory-budget of ", kBudgetMib, " MiB and 64 MiB besides"),
         .unit = "MiB",
         .unit_size = 1 << 20,
         .wanted = 1,
         .bound = Bound::kAtMost},
        samples[0], samples[1]);
    state.counters["MiB"] = Median(Rates(samples[0])) / (1 << 20);
  }
}
BENCHMARK(BM_ServerMemory)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::KeepFreedMemory();
  return systole::bench::RunBenchmarks(argc, argv);
}
