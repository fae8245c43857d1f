// The same shards behind a network and on this machine, for benchmarks of far feeds.
//
// Thread-compatible. A failure to open ends the program.
#ifndef SYSTOLE_BENCH_FAR_SHARDS_H_
#define SYSTOLE_BENCH_FAR_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/bare_fetch.h"
#include "bench/object_server.h"
#include "core/dataset/dataset.h"
#include "core/fetch/block.h"
#include "core/plan/feed_plan.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/storage/temp_folder.h"

namespace systole::bench {

// The server of the corpora. The first call forks, so main() calls it before there are other
// threads.
ObjectServer& TheServer();

// What a feed does with its records: copies them, or decodes photographs.
enum class Work { kCopy, kDecode };

// A block of the far shards. It stays valid when the shards are opened anew.
struct FarBlock {
  size_t shard = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  int64_t records = 0;
};

class FarShards {
 public:
  explicit FarShards(Work work = Work::kCopy);

  // Opens the far shards anew, and makes their indexes anew. The shards get other addresses, so
  // that no bytes that were read before are used again, neither from memory nor from disk.
  void OpenFar();

  // Feeds of the far shards, and of the same shards on this machine.
  std::shared_ptr<const FeedPlan> Far(v1::Shuffle::Mode mode) const;
  std::shared_ptr<const FeedPlan> Near(v1::Shuffle::Mode mode) const;

  double bytes() const;
  // The blocks of the far shards that a feed without shuffling reads, in order. Together they have
  // all bytes of all records.
  std::vector<FarBlock> Blocks() const;
  // These blocks as ranges, for bare libcurl.
  std::vector<FetchRange> Ranges() const;
  // What to pass to a BlockReader to get the block.
  BlockWant WantOf(const FarBlock& block) const;

 private:
  const Work work_;
  const std::vector<std::string> paths_;
  int openings_ = 0;
  const TempFolder indexes_;  // Of the far shards.
  std::shared_ptr<Dataset> far_;
  std::shared_ptr<Dataset> near_;
};

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_FAR_SHARDS_H_
