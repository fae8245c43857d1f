// The pipelines that breadth_bench measures.
//
// Thread-safe: no state.
#ifndef SYSTOLE_BENCH_BREADTH_ROWS_H_
#define SYSTOLE_BENCH_BREADTH_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "systole/v1/feed.pb.h"

namespace systole::bench {

struct BreadthRow {
  // What the ceiling does, with two threads.
  enum class Ceiling {
    // Decodes the part of each image that the pipeline needs, does the products and sums of the
    // pipeline's resample (taps_loop.h), and copies the finished example.
    kDecode,
    // Copies the finished example, and does nothing else.
    kCopy,
    // Scans the shards, checks every checksum, and copies an example for each record.
    kScan,
  };

  std::string name;    // The benchmark is BM_Breadth/NAME.
  std::string figure;  // Its name in the table.
  std::string corpus;  // A name for ShardsNamed().
  v1::FeedSpec spec;
  Ceiling ceiling = Ceiling::kDecode;
  // How many times each value is multiplied after the resample: once for each operation that
  // changes values, and once for each sum over the image that an operation needs.
  int value_steps = 1;
  // Epochs that are measured.
  int64_t epochs = 1;
  double wanted = 0.85;
  std::string unit = "img/s";
};

std::vector<BreadthRow> BreadthRows();

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_BREADTH_ROWS_H_
