// Measures what a record of a compressed shard costs. One thread reads every record once, either in
// shard order or in shuffled order. The ceiling is zlib or libzstd alone, which decompresses the
// same file from its beginning to its end.
#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/corpora.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/process/allocator.h"
#include "core/random/counter_rng.h"
#include "core/record/shard_formats.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

// Much less than the shard, so that shuffled reads miss the cache.
constexpr uint64_t kCacheBytes = 16 << 20;
constexpr size_t kPieceBytes = 256 << 10;

// Writes all photographs into one shard.
std::string WritePhotographs(const TempFolder& folder, Compression compression) {
  const std::string path = folder / "photographs.tfrecord";
  absl::StatusOr<RecordWriter> writer = RecordWriter::Create(path, compression);
  SYSTOLE_CHECK(writer.ok());
  AlignedBuffer scratch;
  for (const std::string& plain : bench::PhotographShards()) {
    const absl::StatusOr<std::unique_ptr<RecordSource>> shard = OpenShard(plain);
    SYSTOLE_CHECK(shard.ok());
    for (int64_t record = 0; record < (*shard)->num_records(); ++record) {
      const absl::StatusOr<absl::string_view> payload = (*shard)->ReadRecord(record, scratch);
      SYSTOLE_CHECK(payload.ok() && writer->Write(*payload).ok());
    }
  }
  SYSTOLE_CHECK(writer->Close().ok());
  return path;
}

void InflateBare(const std::string& file) {
  z_stream stream = {};
  SYSTOLE_CHECK(inflateInit2(&stream, MAX_WBITS + 16) == Z_OK);
  std::vector<Bytef> out(kPieceBytes);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    result = inflate(&stream, Z_NO_FLUSH);
    SYSTOLE_CHECK(result == Z_OK || result == Z_STREAM_END);
    benchmark::DoNotOptimize(out[0]);
  }
  inflateEnd(&stream);
}

void DecompressBare(const std::string& file) {
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  std::vector<char> out(kPieceBytes);
  ZSTD_inBuffer in = {.src = file.data(), .size = file.size(), .pos = 0};
  while (in.pos < in.size) {
    ZSTD_outBuffer to = {.dst = out.data(), .size = out.size(), .pos = 0};
    SYSTOLE_CHECK(ZSTD_isError(ZSTD_decompressStream(context, &to, &in)) == 0);
    benchmark::DoNotOptimize(out[0]);
  }
  ZSTD_freeDCtx(context);
}

std::vector<int64_t> Shuffled(int64_t records) {
  std::vector<int64_t> order(static_cast<size_t>(records));
  std::iota(order.begin(), order.end(), 0);
  CounterRng rng(/*seed=*/1, /*epoch=*/0, /*record=*/0, /*purpose=*/0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.NextU32() % i]);
  return order;
}

void BM_ReadCompressed(benchmark::State& state) {
  KeepFreedMemory();  // As the server does.
  const auto compression = static_cast<Compression>(state.range(0));
  const bool shuffled = state.range(1) != 0;
  const TempFolder folder;
  const std::string path = WritePhotographs(folder, compression);
  const absl::StatusOr<std::unique_ptr<RecordSource>> shard =
      OpenShard(path, {.chunks = std::make_shared<ChunkCache>(kCacheBytes)});
  SYSTOLE_CHECK(shard.ok() && (*shard)->note().empty());
  std::vector<int64_t> order = Shuffled((*shard)->num_records());
  if (!shuffled) std::iota(order.begin(), order.end(), 0);
  const std::string file = ReadWholeFile(path);
  const auto bytes = static_cast<double>((*shard)->size_bytes());
  AlignedBuffer scratch;
  for (auto _ : state) {
    const std::vector<std::vector<bench::Sample>> samples = bench::TakeTurns({
        [&] {
          return bench::Measure(bytes, [&] {
            for (const int64_t record : order) {
              SYSTOLE_CHECK((*shard)->ReadRecord(record, scratch).ok());
            }
          });
        },
        [&] {
          return bench::Measure(bytes, [&] {
            compression == Compression::kZstd ? DecompressBare(file) : InflateBare(file);
          });
        },
    });
    // JPEGs do not compress further, so libzstd only copies. Our own copies then take a larger
    // share of the time, so the wanted ratio is lower.
    const bool copies = compression == Compression::kZstd;
    bench::ReportRow(state, "of_library",
                     {.figure = absl::StrCat("records of a ", CompressionName(compression),
                                             " shard, ", shuffled ? "shuffled" : "in shard order"),
                      .ceiling = copies ? "libzstd, the file from its beginning"
                                        : "zlib, the file from its beginning",
                      .unit = "GB/s",
                      .unit_size = 1e9,
                      .wanted = shuffled ? (copies ? 0.1 : 0.2) : (copies ? 0.15 : 0.6)},
                     samples[0], samples[1]);
  }
}
BENCHMARK(BM_ReadCompressed)
    ->ArgNames({"compression", "shuffled"})
    ->ArgsProduct({{static_cast<int>(Compression::kGzip), static_cast<int>(Compression::kZstd)},
                   {0, 1}})
    ->Iterations(1);

}  // namespace
}  // namespace systole
