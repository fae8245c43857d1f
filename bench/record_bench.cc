// Measures what a record costs before anything is decoded:
//   BM_ScanShard           scanning a shard with every checksum; compared with pread of its bytes
//   BM_ExampleToRawTensor  making tensors from Example records of raw bytes; compared with memcpy
// Shards lie in the page cache.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/corpora.h"
#include "bench/rounds.h"
#include "benchmark/benchmark.h"
#include "core/dataset/dataset.h"
#include "core/engine/step_engine.h"
#include "core/example/example_builder.h"
#include "core/plan/feed_plan.h"
#include "core/process/allocator.h"
#include "core/random/counter_rng.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/record/tfrecord/scan_shard.h"
#include "core/status/check.h"
#include "core/storage/local/file_sink.h"
#include "core/storage/local/file_source.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

constexpr int64_t kPreadBytes = 256 << 10;
constexpr int64_t kBatch = 128;
// With this number of epochs a round takes a tenth of a second.
constexpr int64_t kEpochs = 4;

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
    // Each record begins at another place in `bytes`, so that neighbours differ.
    const absl::string_view payload =
        absl::string_view(bytes).substr(static_cast<size_t>(r % 4096), payload_bytes);
    SYSTOLE_CHECK(writer.Write(payload).ok());
  }
  SYSTOLE_CHECK(writer.Close().ok());
}

// Reads all of the file `path` with pread, in pieces that fit into the processor's cache.
void ReadBare(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  SYSTOLE_CHECK(fd >= 0);
  // A buffer aligned to a page is fastest.
  alignas(4096) static char buffer[kPreadBytes];
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
  const auto bytes = static_cast<double>((*source)->state().size_bytes);
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

v1::FeedSpec RawSpec(int64_t image_bytes, v1::Shuffle::Mode mode) {
  v1::FeedSpec spec;
  spec.set_dataset("raw");
  spec.set_seed(1);
  spec.mutable_shuffle()->set_mode(mode);
  spec.set_global_batch(kBatch);
  spec.set_num_cores(1);
  spec.set_epochs(kEpochs);
  v1::Output& output = *spec.add_outputs();
  output.set_name("image");
  output.set_feature("image");
  output.add_shape(image_bytes);
  output.add_transforms()->mutable_decode_raw();
  output.set_dtype(v1::UINT8);
  return spec;
}

// Shards of Example records: about 256 MB in all. Each record has an image of `image_bytes` bytes.
std::vector<std::string> RawShards(const TempFolder& folder, int64_t image_bytes) {
  if (image_bytes == bench::kSmallRecordBytes) return bench::SmallRecordShards();
  const int64_t records = std::max(kBatch, bench::ScaledWork((256 << 20) / image_bytes));
  const std::string bytes = RandomBytes(/*seed=*/2, image_bytes + 4096);
  absl::StatusOr<RecordWriter> writer = RecordWriter::Create(folder / "raw.tfrecord");
  SYSTOLE_CHECK(writer.ok());
  for (int64_t r = 0; r < records; ++r) {
    const absl::string_view image =
        absl::string_view(bytes).substr(static_cast<size_t>(r % 4096), image_bytes);
    SYSTOLE_CHECK(writer
                      ->Write(ExampleBuilder()
                                  .AddBytes("image", image)
                                  .AddInt64s("label", {r % 1000})
                                  .Serialize())
                      .ok());
  }
  SYSTOLE_CHECK(writer->Close().ok());
  return {folder / "raw.tfrecord"};
}

// An engine with one thread makes kEpochs epochs of raw tensors. The ceiling copies as many bytes
// from memory. It fills four slices in turn, because the engine makes four slices ahead.
void BM_ExampleToRawTensor(benchmark::State& state) {
  KeepFreedMemory();  // As the server does.
  const int64_t image_bytes = state.range(0);
  const auto mode = static_cast<v1::Shuffle::Mode>(state.range(1));
  const TempFolder folder;
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("raw", RawShards(folder, image_bytes));
  SYSTOLE_CHECK(dataset.ok());
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
      FeedPlan::Create(RawSpec(image_bytes, mode), *dataset);
  SYSTOLE_CHECK(plan.ok());
  const int64_t steps_per_epoch = (*plan)->order().steps_per_epoch();
  const int64_t steps = kEpochs * steps_per_epoch;
  const int64_t slice_bytes = kBatch * image_bytes;
  const auto bytes = static_cast<double>(steps * slice_bytes);
  const std::string source(static_cast<size_t>(steps_per_epoch * slice_bytes), 'x');
  std::vector<std::string> slices(4, std::string(static_cast<size_t>(slice_bytes), '\0'));
  StepEngine engine({.threads = 1});
  for (auto _ : state) {
    const std::vector<std::vector<bench::Sample>> samples = bench::TakeTurns({
        [&] {
          return bench::Measure(bytes, [&] {
            absl::StatusOr<std::unique_ptr<StepStream>> stream =
                engine.Open(*plan, {.count = steps});
            SYSTOLE_CHECK(stream.ok());
            for (int64_t step = 0; step < steps; ++step) {
              StepStream::Result slice = (*stream)->Next();
              SYSTOLE_CHECK(slice.ok() && slice->has_value());
              benchmark::DoNotOptimize((**slice)->data());
            }
          });
        },
        [&] {
          return bench::Measure(bytes, [&] {
            const int64_t images = steps * kBatch;
            for (int64_t i = 0; i < images; ++i) {
              std::string& slice = slices[static_cast<size_t>(i / kBatch) % slices.size()];
              std::memcpy(
                  &slice[static_cast<size_t>(i % kBatch * image_bytes)],
                  &source[static_cast<size_t>(i % (steps_per_epoch * kBatch) * image_bytes)],
                  static_cast<size_t>(image_bytes));
              benchmark::ClobberMemory();
            }
          });
        },
    });
    bench::ReportRow(state, "of_memcpy",
                     {.figure = absl::StrCat("TFRecord to Example to raw tensor, ", image_bytes,
                                             " bytes, shuffle ", v1::Shuffle::Mode_Name(mode)),
                      .ceiling = "memcpy of the same payload into slices",
                      .unit = "GB/s",
                      .unit_size = 1e9,
                      .wanted = 0.50},
                     samples[0], samples[1]);
  }
}
BENCHMARK(BM_ExampleToRawTensor)
    ->ArgNames({"bytes", "shuffle"})
    ->ArgsProduct({{224 * 224 * 3, bench::kSmallRecordBytes},
                   {v1::Shuffle::NONE, v1::Shuffle::GLOBAL}})
    ->Iterations(1);

}  // namespace
}  // namespace systole
