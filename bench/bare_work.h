// The least work that examples need, done by bare libraries and loops. Its speed is the ceiling of
// a pipeline that makes these examples. These loops neither shuffle nor parse records. Only
// ScanBare() compares checksums.
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

// What RunBare() does for one example, in the order of the members. It skips empty members.
struct BareExample {
  absl::string_view jpeg = {};  // libjpeg-turbo decodes the part `rect` of it.
  CropRect rect = {};
  absl::string_view png = {};  // ISA-L inflates its pixel data, which stay filtered.
  std::vector<TapsPass> passes = {};
};

// Takes copies of finished examples, in four slices that are filled in turn. An engine makes four
// slices ahead, too.
class SliceStore {
 public:
  // If `kept`, Copy() takes turns among as many source examples as a slice has, and reads them from
  // memory. Otherwise Copy() reads the same source example each time, from the processor's caches.
  SliceStore(int64_t example_bytes, int64_t batch, bool kept);

  // Copies example `number`. Thread-safe for different numbers.
  void Copy(int64_t number);

 private:
  const int64_t example_bytes_;
  const int64_t batch_;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> slices_;
};

// Does the work of all examples. Copies a finished example to `slices` for each. Checks nothing.
Sample RunBare(const std::vector<BareExample>& examples, SliceStore& slices, int threads);

// Scans the shards `passes` times, checks every checksum, and copies an example for each record.
Sample ScanBare(const std::vector<std::string>& shards, int64_t passes, SliceStore& slices,
                int threads);

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_BARE_WORK_H_
