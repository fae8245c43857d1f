// Feeds of photographs, and a real server that serves them, for the benchmarks of serving.
//
// Thread-compatible. A failure to open or start ends the program.
#ifndef SYSTOLE_BENCH_PHOTOGRAPH_FEED_H_
#define SYSTOLE_BENCH_PHOTOGRAPH_FEED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/dataset/dataset.h"
#include "systole/v1/feed.pb.h"
#include "tests/system/served_feed.h"

namespace systole::bench {

// Opens the shards of photographs (bench/corpora.h) in this process.
std::shared_ptr<const Dataset> OpenPhotographs();
// Starts a systole-server that serves the photographs. `flags` are added to its command line.
std::unique_ptr<ServerProcess> ServePhotographs(const std::vector<std::string>& flags = {});

struct PhotographFeed {
  v1::DataType dtype = v1::UINT8;
  int64_t global_batch = 128;
  int edge_px = 224;
  // A server treats two specs that differ only in their seeds as two feeds.
  uint64_t seed = 7;
};

// decode -> random-resized crop -> flip (-> normalise unless u8), over 8 cores, without end.
v1::FeedSpec SpecOf(const PhotographFeed& feed);

// What a server's process has used so far, and what memory it has.
struct ServerUse {
  double cpu_seconds = 0;
  double resident_bytes = 0;  // Now.
  double peak_bytes = 0;      // The largest so far.
};
ServerUse UseOf(ServerProcess& server);

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_PHOTOGRAPH_FEED_H_
