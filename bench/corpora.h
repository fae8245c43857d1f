// Corpora, the data sets of benchmarks: TFRecord shards of tf.train.Example with their indexes. The
// first call makes a corpus, and later calls and runs use its files again. Each corpus has a folder
// in $SYSTOLE_BENCH_CORPORA (default /tmp/systole-bench-corpora). The folder's name holds what
// decides the content: the numbers of records and shards, and a hash of the first record. The
// number of records depends on the amount of work that a run does (see rounds.h).
//
// Thread-safe, between processes too: while one process makes a corpus, the others wait. If a
// corpus cannot be made, a message goes to stderr and the program ends with status 2.
#ifndef SYSTOLE_BENCH_CORPORA_H_
#define SYSTOLE_BENCH_CORPORA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace systole::bench {

// Eight shards with 1,024 photographs (see photographs.h) in the full run, and with at least 128
// (one batch) in any run. The features are those that `systole pack` writes: image (JPEG), class,
// label (below 1,000), size (height, width, channels).
std::vector<std::string> PhotographShards();

// Eight shards with 400,000 small records in the full run. Features: image (784 bytes, 28 x 28
// uint8), label (below 10).
std::vector<std::string> SmallRecordShards();
constexpr int64_t kSmallRecordBytes = 784;

// Eight shards with 5,120 records (524 MB) in the full run, and with at least 128 (one batch) in
// any run. Features: blob (102,400 random bytes), label (below 1,000). These shards are for reading
// over a network, because a record costs little work for its size.
std::vector<std::string> BlobShards();
constexpr int64_t kBlobBytes = 102'400;

// In the full run this corpus has as many records and shards as the ImageNet training set:
// 1,281,167 records in 1,024 shards. Features: image (64 bytes), label (below 1,000).
std::vector<std::string> ManyShards();
constexpr int64_t kTinyRecordBytes = 64;

// Eight shards each, for the pipelines of breadth_bench. All records have a label below 1,000. The
// numbers of records are those of the full run, and in brackets the least numbers of any run.
//   PNGs        1,024 (at least 128): image (320 x 240, see photographs.h)
//   large       32 photographs of 12 megapixels (at least 8): image (some 4 MB each, as cameras
//               write them)
//   tiny        50,000 images like CIFAR's: image (3,072 bytes, 32 x 32 x 3 uint8)
//   tokens      200,000 lists: tokens (16 to 128 int64 below 50,000)
//   tables      400,000 rows: row (20 floats)
std::vector<std::string> PngShards();
std::vector<std::string> LargePhotographShards();
std::vector<std::string> TinyImageShards();
std::vector<std::string> TokenShards();
std::vector<std::string> TableShards();

// The folder in which each corpus has its folder.
std::string CorporaFolder();

// The shards of the corpus of this name: photographs, small-records, blobs, pngs,
// large-photographs, tiny-images, tokens or tables. Empty if no corpus has this name.
std::vector<std::string> ShardsNamed(absl::string_view name);

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_CORPORA_H_
