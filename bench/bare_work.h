// The least work that examples need, done by bare libraries and loops: the ceiling of a pipeline
// that makes them. There is no order, no checksum and no parsing, and nothing is checked.
//
// Thread-compatible.
#ifndef SYSTOLE_BENCH_BARE_WORK_H_
#define SYSTOLE_BENCH_BARE_WORK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bench/rounds.h"
#include "bench/taps_loop.h"
#include "core/image/window/crop.h"

namespace systole::bench {

// The work of one example, in this order. Empty members are left out.
struct BareExample {
  absl::string_view jpeg = {};  // The part `rect` of it is decoded, by libjpeg-turbo.
  CropRect rect = {};
  absl::string_view png = {};  // Its pixel data are inflated by ISA-L, and stay filtered.
  std::vector<TapsPass> passes = {};
};

// Where finished examples are copied: into four slices in turn, as many as an engine makes ahead.
class SliceStore {
 public:
  // `kept`: there are as many source examples as a slice has, so they are copied from memory.
  // Otherwise one example is copied again and again, so that the processor's caches have it.
  SliceStore(int64_t example_bytes, int64_t batch, bool kept);

  // Copies example `number`. Thread-safe for different numbers.
  void Copy(int64_t number);

 private:
  const int64_t example_bytes_;
  const int64_t batch_;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> slices_;
};

// Works on all examples and copies each.
Sample RunBare(const std::vector<BareExample>& examples, SliceStore& slices, int threads);

// Scans shards with every checksum, `passes` times, and copies an example for each record.
Sample ScanBare(const std::vector<std::string>& shards, int64_t passes, SliceStore& slices,
                int threads);

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_BARE_WORK_H_
