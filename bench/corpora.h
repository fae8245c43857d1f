// Data sets for benchmarks: TFRecord shards of tf.train.Example with their indices, made when first
// asked for and used again afterwards. They lie in folders of $SYSTOLE_BENCH_CORPORA (default
// /tmp/systole-bench-corpora) whose names hold what decides the content: number of records and of
// shards, and a hash of the first record. How many records there are depends on the amount of work
// asked for (see rounds.h).
//
// Thread-safe, between processes too: while one makes a corpus, the others wait. If one cannot be
// made, a message goes to stderr and the program ends with status 2.
#ifndef SYSTOLE_BENCH_CORPORA_H_
#define SYSTOLE_BENCH_CORPORA_H_

#include <cstdint>
#include <string>
#include <vector>

namespace systole::bench {

// Eight shards with 1,024 photographs (see photographs.h) in the full run; at least 128, one batch,
// in any run. Features as `systole pack` writes them: image (JPEG), class, label (below 1,000),
// size (height, width, channels).
std::vector<std::string> PhotographShards();

// Eight shards with 400,000 small records in the full run. Features: image (784 bytes, 28 x 28
// uint8), label (below 10).
std::vector<std::string> SmallRecordShards();
constexpr int64_t kSmallRecordBytes = 784;

// As many records in as many shards as the ImageNet training set has, 1,281,167 in 1,024, in the
// full run. Features: image (64 bytes), label (below 1,000).
std::vector<std::string> ManyShards();
constexpr int64_t kTinyRecordBytes = 64;

}  // namespace systole::bench

#endif  // SYSTOLE_BENCH_CORPORA_H_
