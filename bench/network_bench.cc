// Measures feeds whose shards lie behind a network: 20 ms of latency, and 400 MB/s for all
// connections together (object_server.h). The ceilings are bare libcurl, which fetches the same
// bytes from the same server, and the same feeds with the shards on this machine.
//   BM_FarBlocks   the blocks that a feed reads, in order and ahead, but without the feed; also the
//                  CPU time for a GB
//   BM_FarInOrder  a feed in order, from a cold start; also the CPU time for a GB
//   BM_FarWindow   a feed shuffled by WINDOW, from a cold start; also how many bytes it fetches
//   BM_FarGlobal   a feed shuffled by GLOBAL, in epochs after the first
//
// A feed does little with its records: it checks their checksums, and copies them into the step.
// Only BM_FarGlobal/decoded decodes them.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bench/bare_fetch.h"
#include "bench/far_shards.h"
#include "bench/object_server.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/cache/disk_store.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/processors.h"
#include "core/engine/step_engine.h"
#include "core/fetch/block_reader.h"
#include "core/plan/feed_plan.h"
#include "core/process/allocator.h"
#include "core/status/check.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/storage/temp_folder.h"

namespace systole::bench {
namespace {

constexpr int kConnections = 64;  // As many as an HttpClient has.
// The epochs that a turn of BM_FarGlobal makes. An epoch that only copies takes a tenth of a
// second.
constexpr int64_t kWarmEpochs = 10;
constexpr int64_t kWarmEpochsDecoded = 1;

// Makes the steps of some epochs, each of `bytes` bytes, and drops each step as it comes.
Sample RunEpochs(StepEngine& engine, const std::shared_ptr<const FeedPlan>& plan, double bytes,
                 int64_t first_epoch = 0, int64_t epochs = 1) {
  const int64_t steps_per_epoch = plan->order().steps_per_epoch();
  const int64_t steps = epochs * steps_per_epoch;
  return Measure(static_cast<double>(epochs) * bytes, [&] {
    absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(plan, {.first_step = first_epoch * steps_per_epoch, .count = steps});
    SYSTOLE_CHECK(stream.ok());
    for (int64_t step = 0; step < steps; ++step) {
      const StepStream::Result slice = (*stream)->Next();
      SYSTOLE_CHECK(slice.ok() && slice->has_value());
    }
  });
}

// Returns an engine that has read nothing over the network. It has allocated its buffers for steps,
// because it has made an epoch of `near`.
std::unique_ptr<StepEngine> ColdEngine(const std::shared_ptr<const FeedPlan>& near,
                                       StepEngineOptions options = {}) {
  options.threads = UsableProcessors();
  auto engine = std::make_unique<StepEngine>(options);
  RunEpochs(*engine, near, /*bytes=*/1);
  return engine;
}

// An empty cache of blocks, with room for the blocks that all rounds read.
std::shared_ptr<DiskStore> OpenDisk(const TempFolder& folder) {
  absl::StatusOr<std::unique_ptr<DiskStore>> disk =
      DiskStore::Open(folder.path(), int64_t{8} << 30);
  SYSTOLE_CHECK(disk.ok());
  return *std::move(disk);
}

Side FetchAll(BareFetch& bare, const std::vector<FetchRange>& ranges, double bytes) {
  return [&bare, &ranges, bytes] { return Measure(bytes, [&] { bare.Fetch(ranges); }); };
}

// Requests blocks in order from a BlockReader, as far ahead as the reader's memory allows, and
// drops each block when it comes.
class BlocksInOrder {
 public:
  explicit BlocksInOrder(std::shared_ptr<DiskStore> disk)
      : reader_({.disk = std::move(disk), .room = [this] { Wake(); }}) {}

  void ReadAll(const FarShards& shards, const std::vector<FarBlock>& blocks) {
    std::vector<BlockWant> wants;
    for (const FarBlock& block : blocks) wants.push_back(shards.WantOf(block));
    ReadAll(std::move(wants));
  }

 private:
  void ReadAll(std::vector<BlockWant> blocks) {
    std::vector<std::unique_ptr<BlockTicket>> tickets(blocks.size());
    size_t asked = 0;
    size_t ended = 0;
    while (ended < blocks.size()) {
      bool has_room = true;
      while (has_room && asked < blocks.size()) {
        BlockReading reading =
            reader_.TryRead(blocks[asked], [this, asked](std::vector<BlockPtr> come) {
              SYSTOLE_CHECK(come[0]->status().ok());
              come.clear();
              MutexLock lock(mu_);
              come_.push_back(asked);
              changed_.Signal();
            });
        const bool ready = reading.state == BlockReading::State::kReady;
        has_room = ready || reading.state == BlockReading::State::kReading;
        if (ready) ++ended;
        tickets[asked] = std::move(reading.ticket);
        if (has_room) ++asked;
      }
      std::vector<size_t> come;
      {
        MutexLock lock(mu_);
        while (!woken_ && come_.empty() && ended < blocks.size()) changed_.Wait(mu_);
        woken_ = false;
        come.swap(come_);
      }
      for (const size_t index : come) tickets[index].reset();
      ended += come.size();
    }
  }

  void Wake() {
    MutexLock lock(mu_);
    woken_ = true;
    changed_.Signal();
  }

  Mutex mu_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;        // The reader may accept a request again.
  std::vector<size_t> come_ ABSL_GUARDED_BY(mu_);  // Blocks that have come: drop their tickets.
  BlockReader reader_;                             // Last: its callbacks use the other members.
};

std::vector<double> CpuPerGb(const std::vector<Sample>& samples) {
  std::vector<double> cpu;
  for (const Sample& sample : samples) cpu.push_back(sample.cpu_seconds / sample.amount * 1e9);
  return cpu;
}

// How many CPU-seconds for a GB blocks may take beyond bare libcurl, and a feed beyond bare libcurl
// and the near feed.
double AllowedCpu(bool on_disk) { return on_disk ? 0.4 : 0.15; }

void BM_FarBlocks(benchmark::State& state, bool on_disk) {
  FarShards shards;
  const double bytes = shards.bytes();
  const std::vector<FarBlock> blocks = shards.Blocks();
  const std::vector<FetchRange> ranges = shards.Ranges();
  BareFetch bare(kConnections);
  bare.Fetch(ranges);  // Makes its connections and memory.
  const std::string name = absl::StrCat("blocks read ahead, in order, ",
                                        on_disk ? "into the cache on disk" : "in memory");
  // The first ReadAll() is not measured, because it allocates the reader's memory. A server, which
  // reads for days, does this only once.
  const TempFolder folder;
  BlocksInOrder reader(on_disk ? OpenDisk(folder) : nullptr);
  reader.ReadAll(shards, blocks);
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns({
        [&] {
          shards.OpenFar();
          return Measure(bytes, [&] { reader.ReadAll(shards, blocks); });
        },
        FetchAll(bare, ranges, bytes),
    });
    ReportRow(state, "of_bare",
              {.figure = name,
               .ceiling = "bare libcurl, the same ranges on 64 connections",
               .unit = "GB/s",
               .unit_size = 1e9,
               .wanted = 0.8},
              samples[0], samples[1]);
    const std::vector<double> read_cpu = CpuPerGb(samples[0]);
    const std::vector<double> bare_cpu = CpuPerGb(samples[1]);
    std::vector<Sample> beyond;
    for (size_t round = 0; round < read_cpu.size(); ++round) {
      beyond.push_back({.amount = read_cpu[round] - bare_cpu[round], .seconds = 1});
    }
    ReportRow(state, "of_allowed",
              {.figure = absl::StrCat(name, ": CPU time for a GB beyond bare libcurl"),
               .ceiling = "what is allowed",
               .unit = "CPU-s/GB",
               .wanted = 1,
               .bound = Bound::kAtMost},
              beyond,
              std::vector<Sample>(beyond.size(), {.amount = AllowedCpu(on_disk), .seconds = 1}));
    state.counters["cpu_s/GB"] = Median(read_cpu);
    state.counters["bare_cpu_s/GB"] = Median(bare_cpu);
  }
}
BENCHMARK_CAPTURE(BM_FarBlocks, memory, /*on_disk=*/false)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(BM_FarBlocks, disk, /*on_disk=*/true)->Iterations(1)->Unit(benchmark::kSecond);

void BM_FarInOrder(benchmark::State& state, bool on_disk) {
  FarShards shards;
  const double bytes = shards.bytes();
  const std::shared_ptr<const FeedPlan> near = shards.Near(v1::Shuffle::NONE);
  const std::vector<FetchRange> ranges = shards.Ranges();
  BareFetch bare(kConnections);
  bare.Fetch(ranges);  // Makes its connections and memory.
  const std::string name = absl::StrCat("feed in order over 20 ms and 400 MB/s, cold",
                                        on_disk ? ", into the cache on disk" : "");
  for (auto _ : state) {
    // The first RunEpochs() is not measured, because it allocates the engine's memory. A server,
    // which reads for days, does this only once.
    const TempFolder folder;
    const std::unique_ptr<StepEngine> engine =
        ColdEngine(near, {.block_cache = on_disk ? OpenDisk(folder) : nullptr});
    RunEpochs(*engine, shards.Far(v1::Shuffle::NONE), bytes);
    const std::vector<std::vector<Sample>> samples = TakeTurns({
        [&] {
          shards.OpenFar();
          return RunEpochs(*engine, shards.Far(v1::Shuffle::NONE), bytes);
        },
        FetchAll(bare, ranges, bytes),
        [&] { return RunEpochs(*ColdEngine(near), near, bytes); },
    });
    ReportRow(state, "of_bare",
              {.figure = name,
               .ceiling = "bare libcurl, the same ranges on 64 connections",
               .unit = "GB/s",
               .unit_size = 1e9,
               .wanted = 0.8},
              samples[0], samples[1]);
    const std::vector<double> far_cpu = CpuPerGb(samples[0]);
    const std::vector<double> bare_cpu = CpuPerGb(samples[1]);
    const std::vector<double> near_cpu = CpuPerGb(samples[2]);
    std::vector<Sample> beyond;
    for (size_t round = 0; round < far_cpu.size(); ++round) {
      beyond.push_back(
          {.amount = far_cpu[round] - bare_cpu[round] - near_cpu[round], .seconds = 1});
    }
    ReportRow(
        state, "of_allowed",
        {.figure = absl::StrCat(name, ": CPU time for a GB beyond bare libcurl and a near feed"),
         .ceiling = "what is allowed",
         .unit = "CPU-s/GB",
         .wanted = 1,
         .bound = Bound::kAtMost},
        beyond, std::vector<Sample>(beyond.size(), {.amount = AllowedCpu(on_disk), .seconds = 1}));
    state.counters["far_cpu_s/GB"] = Median(far_cpu);
    state.counters["bare_cpu_s/GB"] = Median(bare_cpu);
    state.counters["near_cpu_s/GB"] = Median(near_cpu);
  }
}
BENCHMARK_CAPTURE(BM_FarInOrder, memory, /*on_disk=*/false)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(BM_FarInOrder, disk, /*on_disk=*/true)->Iterations(1)->Unit(benchmark::kSecond);

void BM_FarWindow(benchmark::State& state) {
  const FarShards shards;
  const double bytes = shards.bytes();
  const std::shared_ptr<const FeedPlan> far = shards.Far(v1::Shuffle::WINDOW);
  const std::shared_ptr<const FeedPlan> near = shards.Near(v1::Shuffle::WINDOW);
  const std::vector<FetchRange> ranges = shards.Ranges();
  BareFetch bare(kConnections);
  bare.Fetch(ranges);
  std::vector<Sample> fetched;
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples = TakeTurns({
        [&] {
          const std::unique_ptr<StepEngine> engine = ColdEngine(near);
          const int64_t sent_before = TheServer().bytes_sent();
          const Sample sample = RunEpochs(*engine, far, bytes);
          fetched.push_back({.amount = static_cast<double>(TheServer().bytes_sent() - sent_before),
                             .seconds = 1});
          return sample;
        },
        FetchAll(bare, ranges, bytes),
        [&] { return RunEpochs(*ColdEngine(near), near, bytes); },
    });
    std::vector<Sample> slower;
    for (size_t round = 0; round < fetched.size(); ++round) {
      slower.push_back(
          std::min(samples[1][round], samples[2][round],
                   [](const Sample& a, const Sample& b) { return a.rate() < b.rate(); }));
    }
    ReportRow(state, "of_slower",
              {.figure = "feed shuffled by WINDOW over 20 ms and 400 MB/s, cold",
               .ceiling = "the slower of bare libcurl and the near feed",
               .unit = "GB/s",
               .unit_size = 1e9,
               .wanted = 0.8},
              samples[0], slower);
    ReportRow(state, "of_set",
              {.figure = "bytes that the same feed fetches",
               .ceiling = "bytes of the shards",
               .unit = "GB",
               .unit_size = 1e9,
               .wanted = 1.1,
               .bound = Bound::kAtMost},
              fetched, std::vector<Sample>(fetched.size(), {.amount = bytes, .seconds = 1}));
  }
}
BENCHMARK(BM_FarWindow)->Iterations(1)->Unit(benchmark::kSecond);

void BM_FarGlobal(benchmark::State& state, Work work) {
  const FarShards shards(work);
  const double bytes = shards.bytes();
  const std::shared_ptr<const FeedPlan> far = shards.Far(v1::Shuffle::GLOBAL);
  const std::shared_ptr<const FeedPlan> near = shards.Near(v1::Shuffle::GLOBAL);
  // An engine keeps records in half of its read budget. This half is one and a half times the bytes
  // of all records, so the engine keeps all records.
  const std::unique_ptr<StepEngine> far_engine =
      ColdEngine(near, {.read_budget_bytes = 3 * static_cast<int64_t>(bytes)});
  const std::unique_ptr<StepEngine> near_engine = ColdEngine(near);
  RunEpochs(*far_engine, far, bytes);
  // Every turn makes the steps of new epochs. The last steps of an earlier epoch would not be made
  // again, because an engine keeps its last steps for a while.
  int64_t far_epoch = 0;
  int64_t near_epoch = 0;
  const int64_t epochs = work == Work::kDecode ? kWarmEpochsDecoded : kWarmEpochs;
  for (auto _ : state) {
    const int64_t sent_before = TheServer().bytes_sent();
    const std::vector<std::vector<Sample>> samples = TakeTurns({
        [&] { return RunEpochs(*far_engine, far, bytes, far_epoch += epochs, epochs); },
        [&] { return RunEpochs(*near_engine, near, bytes, near_epoch += epochs, epochs); },
    });
    ReportRow(state, "of_near",
              {.figure = absl::StrCat(work == Work::kDecode ? "photographs, decoded, " : "feed ",
                                      "shuffled by GLOBAL over 20 ms and 400 MB/s, after the first "
                                      "epoch"),
               .ceiling = "the near feed",
               .unit = "GB/s",
               .unit_size = 1e9,
               .wanted = 0.95},
              samples[0], samples[1]);
    state.counters["far_cpu_s/GB"] = Median(CpuPerGb(samples[0]));
    state.counters["near_cpu_s/GB"] = Median(CpuPerGb(samples[1]));
    state.counters["fetched_of_set"] = static_cast<double>(TheServer().bytes_sent() - sent_before) /
                                       bytes / static_cast<double>(NumRounds() * epochs);
  }
}
BENCHMARK_CAPTURE(BM_FarGlobal, copied, Work::kCopy)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(BM_FarGlobal, decoded, Work::kDecode)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::KeepFreedMemory();  // As the server does.
  systole::bench::TheServer();
  return systole::bench::RunBenchmarks(argc, argv);
}
