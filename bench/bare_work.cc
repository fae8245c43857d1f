#include "bench/bare_work.h"

#include <isa-l/igzip_lib.h>

#include <atomic>
#include <cstring>
#include <memory>

#include "bench/bare_decoder.h"
#include "benchmark/benchmark.h"
#include "core/concurrency/worker_pool.h"
#include "core/record/tfrecord/scan_shard.h"
#include "core/status/check.h"
#include "core/storage/local/file_source.h"

namespace systole::bench {
namespace {

constexpr int64_t kSlices = 4;

uint32_t BigEndianAt(absl::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (const char byte : bytes.substr(at, 4)) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

// Inflates the pixels of PNGs that have 3 channels of 8 bits and all data in the second chunk.
class BareInflater {
 public:
  void Inflate(absl::string_view png) {
    constexpr size_t kHeader = 8;                // The header's chunk, after the signature.
    constexpr size_t kData = kHeader + 12 + 13;  // The data's chunk, after the header's.
    const size_t width = BigEndianAt(png, kHeader + 8);
    const size_t height = BigEndianAt(png, kHeader + 12);
    rows_.resize(height * (1 + 3 * width));
    isal_inflate_reset(state_.get());
    state_->crc_flag = ISAL_DEFLATE;
    // Leaves out zlib's header of two bytes before the deflated data, and the checksum after the
    // data.
    state_->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(png.data())) + kData + 8 + 2;
    state_->avail_in = BigEndianAt(png, kData) - 6;
    state_->next_out = rows_.data();
    state_->avail_out = static_cast<uint32_t>(rows_.size());
    SYSTOLE_CHECK(isal_inflate_stateless(state_.get()) == ISAL_DECOMP_OK);
    SYSTOLE_CHECK(state_->total_out == rows_.size());
    benchmark::DoNotOptimize(rows_.data());
  }

 private:
  const std::unique_ptr<inflate_state> state_ = [] {
    auto state = std::make_unique<inflate_state>();
    isal_inflate_init(state.get());
    return state;
  }();
  std::vector<uint8_t> rows_;
};

}  // namespace

SliceStore::SliceStore(int64_t example_bytes, int64_t batch, bool kept)
    : example_bytes_(example_bytes),
      batch_(batch),
      source_(static_cast<size_t>(example_bytes * (kept ? batch : 1)), 77),
      slices_(static_cast<size_t>(example_bytes * batch * kSlices)) {}

void SliceStore::Copy(int64_t number) {
  const int64_t sources = static_cast<int64_t>(source_.size()) / example_bytes_;
  std::memcpy(&slices_[static_cast<size_t>(number % (batch_ * kSlices) * example_bytes_)],
              &source_[static_cast<size_t>(number % sources * example_bytes_)],
              static_cast<size_t>(example_bytes_));
  benchmark::ClobberMemory();
}

Sample RunBare(const std::vector<BareExample>& examples, SliceStore& slices, int threads) {
  return Measure(static_cast<double>(examples.size()), [&] {
    std::atomic<size_t> next = 0;
    WorkerPool pool(threads);
    for (int i = 0; i < threads; ++i) {
      pool.Submit([&] {
        BareDecoder decoder;
        BareInflater inflater;
        TapsLoop taps;
        for (size_t number = next++; number < examples.size(); number = next++) {
          const BareExample& example = examples[number];
          if (!example.jpeg.empty()) decoder.Decode(example.jpeg, example.rect);
          if (!example.png.empty()) inflater.Inflate(example.png);
          for (const TapsPass& pass : example.passes) taps.Run(pass);
          slices.Copy(static_cast<int64_t>(number));
        }
      });
    }
  });
}

Sample ScanBare(const std::vector<std::string>& shards, int64_t passes, SliceStore& slices,
                int threads) {
  std::vector<std::unique_ptr<FileSource>> sources;
  for (const std::string& shard : shards) {
    absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(shard);
    SYSTOLE_CHECK(source.ok());
    sources.push_back(*std::move(source));
  }
  std::atomic<int64_t> records = 0;
  Sample sample = Measure(0, [&] {
    WorkerPool pool(threads);
    for (int64_t task = 0; task < passes * static_cast<int64_t>(sources.size()); ++task) {
      pool.Submit([&, task] {
        const absl::StatusOr<ScannedShard> scanned = ScanShard(
            *sources[static_cast<size_t>(task) % sources.size()], {.verify_payloads = true});
        SYSTOLE_CHECK(scanned.ok());
        const int64_t found = scanned->index.num_records();
        const int64_t first = records.fetch_add(found);
        for (int64_t number = first; number < first + found; ++number) slices.Copy(number);
      });
    }
  });
  sample.amount = static_cast<double>(records);
  return sample;
}

}  // namespace systole::bench
