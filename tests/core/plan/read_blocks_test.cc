#include "core/plan/read_blocks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/compression/compression.h"
#include "core/record/source/record_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/far_compressed.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;

// A shard whose record i has `sizes[i]` bytes of one feature.
std::string ShardOf(const std::vector<int>& sizes) {
  ShardBuilder builder;
  for (const int size : sizes) {
    builder.Add(
        ExampleBuilder().AddBytes("raw", std::string(static_cast<size_t>(size), 'x')).Serialize());
  }
  return builder.Build();
}

std::shared_ptr<Dataset> FarDataset() {
  std::vector<int> small(500, 3000);
  std::vector<int> mixed;
  for (int i = 0; i < 300; ++i) mixed.push_back(i % 50 == 7 ? 600'000 : 2'000 + i * 37);
  return OpenFarDataset({ShardOf(small), ShardOf({10}), ShardOf(mixed)}, std::make_shared<Gate>());
}

Order OrderOf(const Dataset& dataset, ShuffleMode mode, int64_t block_records = 0) {
  absl::StatusOr<Order> order = Order::Create({.mode = mode,
                                               .block_records = block_records,
                                               .window_records = 4 * block_records,
                                               .num_records = dataset.num_records(),
                                               .global_batch = 8});
  SYSTOLE_CHECK(order.ok());
  return *std::move(order);
}

// The blocks in the order of the dataset's records. Checks that each record has one block, and that
// the bytes of each block are exactly those of its records [first, last].
std::vector<ReadBlock> AllBlocks(const Dataset& dataset, const ReadBlocks& blocks) {
  std::vector<ReadBlock> all;
  int64_t record = 0;
  for (const auto& of_dataset : dataset.shards()) {
    const RecordSource& shard = *of_dataset;
    for (int64_t i = 0; i < shard.num_records(); ++i, ++record) {
      const ReadBlocks::Blocks own = blocks.BlocksOf(shard, i, record);
      EXPECT_EQ(own.size(), 1);
      const ReadBlock block = own.front();
      EXPECT_EQ(block.shard, &shard);
      EXPECT_LE(block.first, i);
      EXPECT_GE(block.last, i);
      EXPECT_EQ(block.offset, shard.span(block.first).offset);
      const RecordSpan last = shard.span(block.last);
      EXPECT_EQ(block.offset + block.size, last.offset + last.size);
      if (all.empty() || !(all.back() == block)) {
        EXPECT_EQ(block.first, i) << "a block begins where the one before ends";
        all.push_back(block);
      }
    }
  }
  return all;
}

TEST(ReadBlocksTest, BlocksOfEachOrderPartitionTheRecordsOfEachShard) {
  const auto dataset = FarDataset();
  for (const ShuffleMode mode : {ShuffleMode::kNone, ShuffleMode::kGlobal, ShuffleMode::kWindow}) {
    for (const int64_t block : {1, 7, 100, 100'000}) {
      for (const bool keeps_all : {false, true}) {
        const Order order = OrderOf(*dataset, mode, block);
        AllBlocks(*dataset, ReadBlocks(order, keeps_all));
      }
    }
  }
}

// The stretches of a file have `run_bytes` bytes each.
void CheckRuns(const Dataset& dataset, const std::vector<ReadBlock>& runs, uint64_t run_bytes) {
  EXPECT_GT(std::ssize(runs), std::ssize(dataset.shards()));
  const RecordSource* shard = nullptr;
  uint64_t stretch = 0;  // That of the run before.
  for (const ReadBlock& run : runs) {
    const uint64_t own = run.offset / run_bytes;
    EXPECT_EQ(run.shard->span(run.last).offset / run_bytes, own);
    if (run.shard == shard) {
      EXPECT_GT(own, stretch);
    }
    shard = run.shard;
    stretch = own;
  }
}

TEST(ReadBlocksTest, ARunHasAllRecordsThatBeginInOneStretchOfTheFile) {
  const auto dataset = FarDataset();
  const Order in_order = OrderOf(*dataset, ShuffleMode::kNone);
  CheckRuns(*dataset, AllBlocks(*dataset, ReadBlocks(in_order, false)), ReadBlocks::kRunBytes);
  const Order global = OrderOf(*dataset, ShuffleMode::kGlobal);
  CheckRuns(*dataset, AllBlocks(*dataset, ReadBlocks(global, /*keeps_all=*/true)),
            ReadBlocks::kKeptRunBytes);
}

TEST(ReadBlocksTest, GlobalReadsEachRecordByItselfUnlessEverythingIsKept) {
  const auto dataset = FarDataset();
  const Order order = OrderOf(*dataset, ShuffleMode::kGlobal);
  EXPECT_EQ(std::ssize(AllBlocks(*dataset, ReadBlocks(order, false))), dataset->num_records());
  EXPECT_LT(std::ssize(AllBlocks(*dataset, ReadBlocks(order, true))), dataset->num_records() / 2);
}

TEST(ReadBlocksTest, ARunNeverCrossesTheBorderOfAShuffleBlock) {
  const auto dataset = FarDataset();
  constexpr int64_t kBlock = 64;
  const Order order = OrderOf(*dataset, ShuffleMode::kWindow, kBlock);
  int64_t before = 0;  // Records of the shards before.
  size_t shard = 0;
  for (const ReadBlock& block : AllBlocks(*dataset, ReadBlocks(order, false))) {
    for (; dataset->shards()[shard].get() != block.shard; ++shard) {
      before += dataset->records_per_shard()[shard];
    }
    EXPECT_EQ((before + block.first) / kBlock, (before + block.last) / kBlock);
  }
}

// The blocks of a compressed dataset, by shard and offset. Checks that each record has the pieces
// that it needs, and that each block names the records that need it.
std::map<std::pair<int64_t, uint64_t>, ReadBlock> CompressedBlocks(const Dataset& dataset,
                                                                   const ReadBlocks& blocks) {
  std::map<std::pair<int64_t, uint64_t>, ReadBlock> all;
  std::map<std::pair<int64_t, uint64_t>, int64_t> uses;
  int64_t record = 0;
  for (int64_t s = 0; s < std::ssize(dataset.shards()); ++s) {
    const RecordSource& shard = *dataset.shards()[static_cast<size_t>(s)];
    const StoredPieces& pieces = *shard.far_pieces();
    for (int64_t i = 0; i < shard.num_records(); ++i, ++record) {
      const ReadBlocks::Blocks own = blocks.BlocksOf(shard, i, record);
      for (const ReadBlock& block : own) {
        EXPECT_LE(block.first, i);
        EXPECT_GE(block.last, i);
        const auto [at, is_new] = all.try_emplace({s, block.offset}, block);
        EXPECT_EQ(at->second, block);
        ++uses[{s, block.offset}];
      }
      const RecordSpan span = shard.span(i);
      for (const PieceRange& range :
           pieces.PiecesOf({.begin = span.offset, .end = span.offset + span.size})) {
        for (int64_t piece = range.begin; piece < range.end; ++piece) {
          const ByteStretch place = pieces.PlaceOf(piece);
          EXPECT_TRUE(std::any_of(own.begin(), own.end(),
                                  [&](const ReadBlock& block) {
                                    return block.offset <= place.begin &&
                                           place.end <= block.offset + block.size;
                                  }))
              << "record " << i << " piece " << piece;
        }
      }
    }
  }
  for (const auto& [key, block] : all) EXPECT_EQ(uses[key], block.num_records());
  return all;
}

TEST(ReadBlocksTest, CompressedShardsAreReadInRunsThatHaveEachWholePieceOnce) {
  const TempFolder folder;
  const std::vector<std::string> shards = NoisyShards({150, 1, 250}, 40'000);
  for (const Compression compression : kCompressions) {
    SCOPED_TRACE(CompressionName(compression));
    const auto dataset = OpenFarCompressed(shards, compression, std::make_shared<Gate>(),
                                           folder / std::string(CompressionName(compression)));
    EXPECT_LT(dataset->far_bytes(), 9'000'000);
    for (const bool keeps_all : {false, true}) {
      const ShuffleMode mode = keeps_all ? ShuffleMode::kGlobal : ShuffleMode::kNone;
      const Order order = OrderOf(*dataset, mode);
      uint64_t bytes = 0;
      const auto blocks = CompressedBlocks(*dataset, ReadBlocks(order, keeps_all));
      for (const auto& [key, block] : blocks) bytes += block.size;
      // Neighbouring pieces of gzip and zlib may share a byte, which then counts twice.
      EXPECT_GE(bytes, dataset->far_bytes());
      EXPECT_LE(bytes, dataset->far_bytes() + blocks.size());
      EXPECT_GT(std::ssize(blocks), keeps_all ? 15 : 3);
    }
  }
}

// In mode WINDOW, a block of the shuffle may end within a piece. Then the read blocks on both sides
// of the border have the piece.
TEST(ReadBlocksTest, ShuffledRecordsOfACompressedShardGetAllTheirPieces) {
  const TempFolder folder;
  const std::vector<std::string> shards = NoisyShards({200}, 40'000);
  for (const Compression compression : kCompressions) {
    const auto dataset = OpenFarCompressed(shards, compression, std::make_shared<Gate>(),
                                           folder / std::string(CompressionName(compression)));
    const RecordSource& shard = *dataset->shards()[0];
    for (const ShuffleMode mode : {ShuffleMode::kGlobal, ShuffleMode::kWindow}) {
      const Order order = OrderOf(*dataset, mode, /*block_records=*/7);
      const ReadBlocks blocks(order, /*keeps_all=*/false);
      for (int64_t i = 0; i < shard.num_records(); ++i) {
        const RecordSpan span = shard.span(i);
        const PieceRange needed =
            shard.far_pieces()->PiecesOf({.begin = span.offset, .end = span.offset + span.size})[0];
        const ReadBlocks::Blocks own = blocks.BlocksOf(shard, i, i);
        EXPECT_LE(own.front().offset, shard.far_pieces()->PlaceOf(needed.begin).begin);
        EXPECT_GE(own.back().offset + own.back().size,
                  shard.far_pieces()->PlaceOf(needed.end - 1).end);
        if (mode == ShuffleMode::kWindow) {
          EXPECT_EQ(own.front().first / 7, own.back().last / 7);
        } else {
          EXPECT_EQ(own.size(), 1);
          EXPECT_EQ(own.front().num_records(), 1);
        }
      }
    }
  }
}

// Image files are not read in runs: an error of one image would fail the whole run, and each image
// takes a request of its own in any case.
TEST(ReadBlocksTest, ImageFilesAreReadOneByOne) {
  StubObjects objects;
  std::vector<std::string> names;
  for (int i = 0; i < 9; ++i) {
    names.push_back(objects.Put(absl::StrCat("/x/a/", i, ".jpg"), TestJpeg(i)));
  }
  const TempFolder indexes;
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Open("images", names, {.index_dir = indexes.path()});
  ASSERT_THAT(dataset, IsOk());
  for (const ShuffleMode mode : {ShuffleMode::kNone, ShuffleMode::kGlobal, ShuffleMode::kWindow}) {
    const Order order = OrderOf(**dataset, mode, /*block_records=*/4);
    EXPECT_EQ(std::ssize(AllBlocks(**dataset, ReadBlocks(order, true))), 9);
  }
}

TEST(ReadBlocksTest, FarBytesCountFarShardsAndNotLocalShards) {
  const std::vector<std::string> bytes = {ShardOf({100, 200}), ShardOf({300})};
  const auto far = OpenFarDataset(bytes, std::make_shared<Gate>());
  EXPECT_EQ(far->far_bytes(), bytes[0].size() + bytes[1].size());
  const auto near = OpenTestDataset(bytes);
  EXPECT_EQ(near->far_bytes(), 0);
}

}  // namespace
}  // namespace systole
