// What a record costs before anything is decoded, each figure against the same bytes moved bare:
// scanning a shard with every checksum against pread, and Example records of raw bytes as tensors
// against memcpy. Shards lie in the page cache.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/random/counter_rng.h"
#include "core/record/record_writer.h"
#include "core/record/scan_shard.h"
#include "core/status/check.h"
#include "core/storage/file_sink.h"
#include "core/storage/file_source.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

constexpr int64_t kPreadBytes = 256 << 10;

std::string RandomBytes(uint64_t seed, int64_t size) {
  CounterRng rng(seed, /*epoch=*/0, /*record=*/0, /*purpose=*/0);
  std::string bytes(static_cast<size_t>(size), '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.NextU32() & 0xff);
  return bytes;
}

// Writes a shard of `records` records with payloads of `payload_bytes`.
void WriteShard(const std::string& path, int64_t records, int64_t payload_bytes) {
  const std::string bytes = RandomBytes(/*seed=*/1, payload_bytes + 4096);
  absl::StatusOr<std::unique_ptr<FileSink>> sink = FileSink::Create(path, {.sync = false});
  SYSTOLE_CHECK(sink.ok());
  RecordWriter writer(*std::move(sink));
  for (int64_t r = 0; r < records; ++r) {
    // Another stretch each time, so that no two neighbours are alike.
    const absl::string_view payload =
        absl::string_view(bytes).substr(static_cast<size_t>(r % 4096), payload_bytes);
    SYSTOLE_CHECK(writer.Write(payload).ok());
  }
  SYSTOLE_CHECK(writer.Close().ok());
}

// Reads all of the file `path` with pread, in pieces that stay in cache.
void ReadBare(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  SYSTOLE_CHECK(fd >= 0);
  static char* const buffer = new char[kPreadBytes];
  int64_t offset = 0;
  while (true) {
    const ssize_t read = ::pread(fd, buffer, kPreadBytes, offset);
    SYSTOLE_CHECK(read >= 0);
    if (read == 0) break;
    benchmark::DoNotOptimize(buffer[0]);
    offset += read;
  }
  ::close(fd);
}

void BM_ScanShard(benchmark::State& state) {
  const int64_t payload_bytes = state.range(0);
  const int64_t shard_bytes = bench::ScaledWork(256 << 20);
  const int64_t records = std::max<int64_t>(1, shard_bytes / (payload_bytes + 16));
  const TempFolder folder;
  const std::string path = folder / "shard.tfrecord";
  WriteShard(path, records, payload_bytes);
  absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(path);
  SYSTOLE_CHECK(source.ok());
  const auto bytes = static_cast<double>((*source)->identity().size_bytes);
  for (auto _ : state) {
    const std::vector<std::vector<bench::Sample>> samples = bench::TakeTurns({
        [&] {
          return bench::Measure(bytes, [&] {
            absl::StatusOr<ScannedShard> scanned = ScanShard(**source, {.verify_payloads = true});
            SYSTOLE_CHECK(scanned.ok() && scanned->index.num_records() == records);
          });
        },
        [&] { return bench::Measure(bytes, [&] { ReadBare(path); }); },
    });
    bench::ReportRow(
        state, "of_pread",
        {.figure = absl::StrCat("index + CRC scan, records of ", payload_bytes, " bytes"),
         .ceiling = "pread of the same bytes from the page cache, 256 KiB at a time",
         .unit = "GB/s",
         .unit_size = 1e9,
         .wanted = 0.65},
        samples[0], samples[1]);
  }
}
BENCHMARK(BM_ScanShard)->ArgName("record_bytes")->Arg(110'000)->Arg(784)->Iterations(1);

}  // namespace
}  // namespace systole
