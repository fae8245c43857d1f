// Measures how long it takes to open a dataset of 100,000 shards in a bucket of S3 that answers
// each request after 20 ms. The folder of the shards has an index (shards.manifest.idx), so nearly
// all requests only list objects. There are two measurements: with the shards' own indexes beside
// the shards, and with these indexes in a folder on this machine. The bucket is a process of its
// own, and its CPU time is not measured.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/dataset/dataset.h"
#include "core/dataset/folder_index.h"
#include "core/example/example_builder.h"
#include "core/record/shard_formats.h"
#include "core/status/check.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/stored_file.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"

namespace systole::bench {
namespace {

constexpr absl::Duration kLatency = absl::Milliseconds(20);
// Two folders of the bucket: `beside` has the shards and their indexes, `apart` only the shards.
constexpr char kBeside[] = "beside";
constexpr char kApart[] = "apart";

int64_t NumShards() { return ScaledWork(100'000); }

std::string KeyOf(const char* folder, int64_t shard) {
  return absl::StrFormat("%s/train-%05d-of-%05d.tfrecord", folder, shard, NumShards());
}

// Serves the bucket for ever. Writes the bucket's address to `out` once the bucket has all objects.
[[noreturn]] void Serve(int out) {
  StubBucket bucket;
  const std::string bytes =
      ShardBuilder().Add(ExampleBuilder().AddInt64s("label", {1}).Serialize()).Build();
  for (int64_t shard = 0; shard < NumShards(); ++shard) {
    bucket.Put(KeyOf(kApart, shard), bytes);
    for (const char* ending : {"", ".idx", ".idx.hash"}) {
      bucket.Put(KeyOf(kBeside, shard) + ending, bytes);
    }
  }
  bucket.SetFault([](const StubRequest&) -> std::optional<StubAnswer> {
    absl::SleepFor(kLatency);
    return std::nullopt;
  });
  const std::string endpoint = bucket.endpoint();
  SYSTOLE_CHECK(write(out, endpoint.data(), endpoint.size()) ==
                static_cast<ssize_t>(endpoint.size()));
  close(out);
  while (true) pause();
}

// Starts the bucket's process. REQUIRES: no other thread runs, because this function forks.
void StartBucket() {
  int ends[2];
  SYSTOLE_CHECK(pipe(ends) == 0);
  const pid_t process = fork();
  SYSTOLE_CHECK(process >= 0);
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    Serve(ends[1]);
  }
  close(ends[1]);
  std::string endpoint;
  char piece[256];
  for (ssize_t bytes = 0; (bytes = read(ends[0], piece, sizeof(piece))) > 0;) {
    endpoint.append(piece, static_cast<size_t>(bytes));
  }
  close(ends[0]);
  SYSTOLE_CHECK(!endpoint.empty());
  // Requests to the bucket must not go through a proxy that the environment names.
  setenv("no_proxy", "127.0.0.1", 1);
  setenv("AWS_ENDPOINT_URL_S3", endpoint.c_str(), 1);
  setenv("AWS_REGION", "eu-west-1", 1);
  setenv("SYSTOLE_S3_UNSIGNED", "1", 1);
}

std::string PatternOf(const char* folder) {
  return absl::StrCat("s3://", kStubBucket, "/", folder, "/train-*.tfrecord");
}

// Opens the dataset of all shards in `folder`.
void Open(const char* folder, const std::string& index_dir, bool write_index = false) {
  const absl::StatusOr<std::shared_ptr<Dataset>> dataset = Dataset::Open(
      "far", {PatternOf(folder)}, {.index_dir = index_dir, .write_index = write_index});
  SYSTOLE_CHECK(dataset.ok());
  SYSTOLE_CHECK((*dataset)->num_records() == NumShards());
  if (!write_index) SYSTOLE_CHECK((*dataset)->note().empty());
}

// Writes the index of the folder. Opens only one shard for this, because all shards have the same
// bytes. Then opens the dataset once, because a dataset samples records of some shards when it is
// opened, and the first opening writes the indexes of these shards.
void MakeIndexes(const char* folder, const std::string& index_dir) {
  const ShardList list = ListShardStates({PatternOf(folder)}).value();
  const absl::StatusOr<std::unique_ptr<RecordSource>> shard =
      OpenShard(list.shards[0].name, {.index_dir = index_dir, .write_index = true});
  SYSTOLE_CHECK(shard.ok());
  ShardFacts facts = (*shard)->facts().value();
  std::vector<FolderIndexLine> lines;
  for (const ListedFile& file : list.shards) {
    facts.identity = file.state.identity;
    lines.push_back({.name = std::string(BaseName(file.name)), .facts = facts});
  }
  const std::string path =
      FolderIndexPath(absl::StrCat("s3://", kStubBucket, "/", folder, "/"), index_dir);
  SYSTOLE_CHECK(PutStored(path, FolderIndexText(lines)).ok());
  Open(folder, index_dir, /*write_index=*/true);
}

void BM_OpenBucket(benchmark::State& state) {
  const TempFolder indexes;
  MakeIndexes(kBeside, "");
  MakeIndexes(kApart, indexes.path());
  const auto opens = [](const char* folder, const std::string& index_dir) {
    return [=]() -> Sample {
      Sample sample = Measure(1, [&] { Open(folder, index_dir); });
      sample.amount = sample.seconds;
      sample.seconds = 1;
      return sample;
    };
  };
  const Side second = []() -> Sample { return {.amount = 1, .seconds = 1}; };
  for (auto _ : state) {
    const std::vector<std::vector<Sample>> samples =
        TakeTurns({opens(kBeside, ""), opens(kApart, indexes.path()), second});
    const char* const counters[] = {"beside", "apart"};
    const char* const where[] = {"indexes beside them", "indexes on this machine"};
    for (size_t i = 0; i < 2; ++i) {
      ReportRow(state, absl::StrCat(counters[i], "_seconds"),
                {.figure = absl::StrCat("opening ", NumShards(), " shards of a bucket, ", where[i]),
                 .ceiling = "one second",
                 .unit = "s",
                 .wanted = 4,
                 .bound = Bound::kAtMost},
                samples[i], samples[2]);
      std::vector<double> cpu_seconds;
      for (const Sample& sample : samples[i]) cpu_seconds.push_back(sample.cpu_seconds);
      state.counters[absl::StrCat(counters[i], "_cpu_s")] = Median(cpu_seconds);
    }
  }
}
BENCHMARK(BM_OpenBucket)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace systole::bench

int main(int argc, char** argv) {
  systole::bench::StartBucket();
  return systole::bench::RunBenchmarks(argc, argv);
}
