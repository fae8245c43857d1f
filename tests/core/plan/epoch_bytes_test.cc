// Compares the results of epoch_bytes.h with a model. The model goes through epochs of real
// datasets, record by record, and counts what is fetched and kept.
#include "core/plan/epoch_bytes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/compression/compression.h"
#include "core/plan/read_blocks.h"
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

using ::testing::AllOf;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMib = int64_t{1} << 20;

// Makes shards. `records` has the number of records of each shard. A record has about `bytes`
// bytes.
std::vector<std::string> ShardsOf(const std::vector<int>& records, int bytes) {
  std::vector<std::string> shards;
  int number = 0;
  for (const int count : records) {
    ShardBuilder builder;
    for (int i = 0; i < count; ++i, ++number) {
      // The sizes vary from half of `bytes` to one and a half times `bytes`.
      const int size = bytes / 2 + (number * 7919) % 1000 * (bytes / 1000);
      builder.Add(ExampleBuilder()
                      .AddBytes("raw", std::string(static_cast<size_t>(size), 'x'))
                      .AddInt64s("label", {number})
                      .Serialize());
    }
    shards.push_back(builder.Build());
  }
  return shards;
}

std::shared_ptr<Dataset> FarDataset(const std::vector<int>& records, int bytes,
                                    const std::string& name = "test") {
  return OpenFarDataset(ShardsOf(records, bytes), std::make_shared<Gate>(), name);
}

// Returns the plan of a feed with one output, `label`. All datasets of these tests have the feature
// `label`.
std::shared_ptr<const FeedPlan> PlanOf(std::shared_ptr<const Dataset> dataset,
                                       const std::string& order) {
  absl::StatusOr<std::shared_ptr<const FeedPlan>> plan = FeedPlan::Create(
      SpecFromText(absl::StrCat(order,
                                " seed: 7 epochs: 0 tail: PAD outputs { name: 'label' "
                                "feature: 'label' }")),
      std::move(dataset));
  EXPECT_THAT(plan, IsOk());
  return *std::move(plan);
}

std::string Window(int64_t block, int64_t window) {
  return absl::StrCat("dataset: 'test' global_batch: 64 shuffle { mode: WINDOW block_records: ",
                      block, " window_records: ", window, " }");
}
const char kInOrder[] = "dataset: 'test' global_batch: 64 shuffle { mode: NONE }";
const char kGlobal[] = "dataset: 'test' global_batch: 64 shuffle { mode: GLOBAL }";

// The key begins with the shard's name, because the order of keys decides which blocks are removed
// first.
using BlockKey = std::tuple<std::string, uint64_t, uint64_t>;
BlockKey KeyOf(const ReadBlock& block) {
  return {std::string(block.shard->path()), block.offset, block.size};
}

// Models which blocks of a feed the memory and the disk keep. Each of the two keeps the blocks that
// come first, while it has room. In memory, a block whose records are needed again in this pass
// replaces blocks that are not needed again.
class ModelCache {
 public:
  explicit ModelCache(int64_t memory, int64_t disk) : memory_(memory), disk_(disk) {}

  // Whether the block is kept. `more`: records of the block are needed again in this pass.
  bool Find(const ReadBlock& block, bool more) {
    const BlockKey key = KeyOf(block);
    const auto found = in_memory_.find(key);
    if (found != in_memory_.end()) found->second.needed = more;
    return found != in_memory_.end() || on_disk_.contains(key);
  }

  void Keep(const ReadBlock& block, bool more) {
    const BlockKey key = KeyOf(block);
    const auto size = static_cast<int64_t>(block.size);
    const int64_t file = (size + 48 + 4095) / 4096 * 4096;
    if (size <= disk_ / 8 && disk_used_ + file <= disk_) {
      disk_used_ += file;
      on_disk_.insert(key);
    }
    for (auto it = in_memory_.begin(); more && used_ + size > memory_ && it != in_memory_.end();) {
      if (it->second.needed) {
        ++it;
        continue;
      }
      used_ -= it->second.size;
      it = in_memory_.erase(it);
    }
    if (used_ + size > memory_) return;
    used_ += size;
    in_memory_[key] = {.size = size, .needed = more};
  }

 private:
  struct Held {
    int64_t size = 0;
    bool needed = false;
  };
  const int64_t memory_;
  const int64_t disk_;
  int64_t used_ = 0;
  int64_t disk_used_ = 0;
  std::map<BlockKey, Held> in_memory_;
  std::set<BlockKey> on_disk_;
};

struct Fetched {
  int64_t bytes = 0;
  int64_t requests = 0;
};

// Returns what each of the first `epochs` epochs fetches.
std::vector<Fetched> GoThrough(const FeedPlan& plan, const ReadRoom& room, int64_t epochs) {
  const Dataset& dataset = plan.dataset();
  const Order& order = plan.order();
  const bool keeps_all = static_cast<int64_t>(dataset.far_bytes()) <= room.kept_bytes();
  const bool in_memory = static_cast<int64_t>(dataset.far_bytes()) <= room.memory_bytes;
  const ReadBlocks blocks(order, in_memory);
  // `under_way` bytes of the memory are for blocks that are being fetched. The cache has the rest.
  int64_t under_way = 64 * int64_t{ReadBlocks::kRunBytes};
  if (order.spec().mode == ShuffleMode::kGlobal) under_way = 64 * dataset.mean_record_bytes();
  if (keeps_all) under_way = 0;
  ModelCache cache(room.memory_bytes - std::min(room.memory_bytes / 2, under_way), room.disk_bytes);
  std::vector<Fetched> fetched(static_cast<size_t>(epochs));
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    // If consecutive records of the order need the same block, the block is listed once.
    std::vector<std::pair<int64_t, ReadBlock>> needed;  // Pass and block.
    std::map<std::pair<int64_t, BlockKey>, int64_t> uses;
    for (int64_t i = 0; i < order.steps_per_epoch() * order.spec().global_batch; ++i) {
      const Place place =
          order.PlaceOf(epoch * order.steps_per_epoch() + i / order.spec().global_batch,
                        i % order.spec().global_batch);
      if (!place.record.has_value()) continue;
      const ShardPlace in_shard = dataset.map().Find(*place.record);
      const RecordSource& shard = *dataset.shards()[static_cast<size_t>(in_shard.shard)];
      if (shard.far_bytes() == nullptr) continue;
      for (const ReadBlock& block : blocks.BlocksOf(shard, in_shard.index, *place.record)) {
        if (!needed.empty() && needed.back().second == block) continue;
        needed.emplace_back(place.pass, block);
        ++uses[{place.pass, KeyOf(block)}];
      }
    }
    for (const auto& [pass, block] : needed) {
      const bool more = --uses[{pass, KeyOf(block)}] > 0;
      if (cache.Find(block, more)) continue;
      fetched[static_cast<size_t>(epoch)].bytes += static_cast<int64_t>(block.size);
      ++fetched[static_cast<size_t>(epoch)].requests;
      cache.Keep(block, more);
    }
  }
  return fetched;
}

void ExpectNear(int64_t seen, int64_t wanted, double error) {
  EXPECT_NEAR(static_cast<double>(seen), static_cast<double>(wanted),
              static_cast<double>(wanted) * error);
}

class EpochBytesTest : public testing::Test {
 protected:
  // 105 MB in shards of several sizes.
  static const std::shared_ptr<Dataset>& Photos() {
    static const auto dataset = FarDataset({1500, 0, 1, 700, 1299}, 30'000);
    return dataset;
  }

  // Expects that `first_bytes` is what the model fetches in its first epoch. `later_bytes` may
  // differ by `block` bytes from what the model fetches in its third epoch.
  static EpochBytes ExpectExact(const std::string& order, const ReadRoom& room, int64_t block) {
    SCOPED_TRACE(order);
    const auto plan = PlanOf(Photos(), order);
    const EpochBytes epoch = EpochBytesOf(*plan, room);
    const std::vector<Fetched> fetched = GoThrough(*plan, room, 3);
    EXPECT_TRUE(epoch.exact);
    EXPECT_EQ(epoch.first_bytes, fetched[0].bytes);
    EXPECT_NEAR(static_cast<double>(epoch.later_bytes), static_cast<double>(fetched[2].bytes),
                static_cast<double>(block));
    EXPECT_GE(epoch.first_requests, fetched[0].requests);
    EXPECT_LE(epoch.first_requests, fetched[0].requests * 5 / 4 + 8);
    return epoch;
  }
};

constexpr int64_t kRun = int64_t{ReadBlocks::kRunBytes} + 45'000;

TEST_F(EpochBytesTest, WithoutShuffleRunsAreFetchedOnceAndCachedBytesNeverAgain) {
  const EpochBytes cold = ExpectExact(kInOrder, {.memory_bytes = 16 * kMib}, kRun);
  EXPECT_EQ(cold.first_bytes, cold.set_bytes);
  EXPECT_NEAR(static_cast<double>(cold.later_bytes), static_cast<double>(cold.set_bytes - 8 * kMib),
              1);
  ExpectExact(kInOrder, {.memory_bytes = 16 * kMib, .disk_bytes = 50 * kMib}, kRun);
  const EpochBytes kept =
      ExpectExact(kInOrder, {.memory_bytes = 16 * kMib, .disk_bytes = 150 * kMib}, 0);
  EXPECT_TRUE(kept.keeps_all);
  EXPECT_EQ(kept.later_bytes, 0);
}

TEST_F(EpochBytesTest, GlobalFetchesRecordByRecordAndLaterOnlyUncachedRecords) {
  const EpochBytes cold = ExpectExact(kGlobal, {.memory_bytes = 16 * kMib}, 45'000);
  EXPECT_EQ(cold.first_requests, Photos()->num_records());
  ExpectExact(kGlobal, {.memory_bytes = 90 * kMib}, 45'000);
  // A file on the disk takes a multiple of 4,096 bytes, so some bytes stay unused. The estimate
  // takes the mean number of unused bytes for each file, so it is exact only to some thousandths.
  ExpectExact(kGlobal, {.memory_bytes = 16 * kMib, .disk_bytes = 60 * kMib}, 300'000);
}

TEST_F(EpochBytesTest, GlobalFetchesTheSetOnceIfCachedAndInRunsIfInMemory) {
  for (const ReadRoom& room : {ReadRoom{.memory_bytes = 110 * kMib},
                               ReadRoom{.memory_bytes = kMib, .disk_bytes = 150 * kMib}}) {
    const EpochBytes kept = ExpectExact(kGlobal, room, 0);
    EXPECT_TRUE(kept.keeps_all);
    EXPECT_EQ(kept.first_bytes, kept.set_bytes);
    EXPECT_EQ(kept.later_bytes, 0);
    // Whole runs are fetched only if memory keeps everything.
    const bool in_memory = kept.set_bytes <= room.memory_bytes;
    EXPECT_EQ(kept.first_requests < Photos()->num_records() / 5, in_memory);
  }
}

TEST_F(EpochBytesTest, WindowFetchesEachBlockOnceIfMemoryHoldsAWindow) {
  const EpochBytes cold = ExpectExact(Window(100, 400), {.memory_bytes = 48 * kMib}, 4 * kRun);
  EXPECT_TRUE(cold.holds);
  EXPECT_EQ(cold.first_bytes, cold.set_bytes);
  // The memory holds the four blocks of a window, and the blocks at the window's borders.
  EXPECT_GT(cold.held_bytes, 4 * 100 * 30'000);
  EXPECT_LT(cold.held_bytes, 7 * 100 * 30'000);
  ExpectExact(Window(500, 500), {.memory_bytes = 64 * kMib, .disk_bytes = 50 * kMib}, kRun);
  ExpectExact(Window(1, 64), {.memory_bytes = 8 * kMib}, 8 * kMib);
}

TEST_F(EpochBytesTest, AWindowThatMemoryDoesNotHoldIsFetchedAgainAboutAsOftenAsEstimated) {
  for (const auto& [block, window, memory] :
       {std::tuple(100, 1000, 32), std::tuple(300, 1500, 24), std::tuple(20, 500, 16)}) {
    const auto plan = PlanOf(Photos(), Window(block, window));
    const ReadRoom room = {.memory_bytes = memory * kMib};
    const EpochBytes epoch = EpochBytesOf(*plan, room);
    EXPECT_FALSE(epoch.holds);
    EXPECT_FALSE(epoch.exact);
    EXPECT_GT(epoch.first_bytes, 2 * epoch.set_bytes);
    const std::vector<Fetched> fetched = GoThrough(*plan, room, 2);
    ExpectNear(epoch.first_bytes, fetched[0].bytes, 0.25);
    ExpectNear(epoch.later_bytes, fetched[1].bytes, 0.25);
    EXPECT_THAT(EpochText(*plan, epoch), HasSubstr("for which --read-budget has no room"));
  }
}

TEST_F(EpochBytesTest, SelectedRecordsAreEstimatedByASample) {
  const std::string in_order = "dataset: 'test' global_batch: 16 shuffle { mode: NONE } ";
  const std::string global = "dataset: 'test' global_batch: 16 shuffle { mode: GLOBAL } ";
  for (const std::string select :
       {"select { take: 900 }", "select { shard { count: 10 index: 3 } }",
        "select { skip: 100 } select { take: 2000 }",
        "select { interleave { cycle_length: 3 block_length: 4 } }",
        "select { auto_shard { policy: FILE count: 2 index: 0 } }"}) {
    for (const std::string& order : {in_order + select, global + select}) {
      SCOPED_TRACE(order);
      const auto plan = PlanOf(Photos(), order);
      const ReadRoom room = {.memory_bytes = 40 * kMib};
      const EpochBytes epoch = EpochBytesOf(*plan, room);
      EXPECT_FALSE(epoch.exact);
      const std::vector<Fetched> fetched = GoThrough(*plan, room, 1);
      // The runs at the edges of the selection also have records that are not selected, and these
      // are fetched, too.
      ExpectNear(epoch.first_bytes, fetched[0].bytes, 0.2);
    }
  }
}

TEST_F(EpochBytesTest, MixtureMembersCountInProportionToTheirTurns) {
  const auto dataset =
      Dataset::Join({FarDataset({800}, 20'000, "a"), FarDataset({100}, 80'000, "b"),
                     OpenTestDataset(ShardsOf({300}, 1000), "near")});
  ASSERT_THAT(dataset, IsOk());
  const std::string members =
      "mixture { dataset: 'a' weight: 2 } mixture { dataset: 'b' weight: 1 } "
      "mixture { dataset: 'near' weight: 1 } global_batch: 16 ";
  for (const std::string mode : {"NONE", "GLOBAL"}) {
    SCOPED_TRACE(mode);
    const auto plan = PlanOf(*dataset, absl::StrCat(members, "shuffle { mode: ", mode, " }"));
    const ReadRoom room = {.memory_bytes = 20 * kMib};
    const EpochBytes epoch = EpochBytesOf(*plan, room);
    EXPECT_FALSE(epoch.exact);
    EXPECT_TRUE(epoch.holds) << "two of the members that take turns are far";
    EXPECT_EQ(epoch.set_bytes, static_cast<int64_t>((*dataset)->far_bytes()));
    const std::vector<Fetched> fetched = GoThrough(*plan, room, 1);
    ExpectNear(epoch.first_bytes, fetched[0].bytes, 0.15);
  }
}

TEST_F(EpochBytesTest, ImagesAreFetchedOneByOneInEachOrder) {
  StubObjects objects;
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    names.push_back(objects.Put(absl::StrCat("/x/a/", i, ".jpg"), TestJpeg(i)));
  }
  const TempFolder indexes;
  const auto dataset = Dataset::Open("test", names, {.index_dir = indexes.path()});
  ASSERT_THAT(dataset, IsOk());
  const std::string batch = "dataset: 'test' global_batch: 8 ";
  for (const std::string& order :
       {batch + "shuffle { mode: NONE }", batch + "shuffle { mode: GLOBAL }",
        batch + "shuffle { mode: WINDOW block_records: 4 window_records: 16 }",
        batch + "shuffle { mode: NONE } select { take: 24 }",
        batch + "shuffle { mode: NONE } select { interleave { cycle_length: 3 } }"}) {
    for (const int64_t memory : {int64_t{20'000}, kMib}) {
      SCOPED_TRACE(absl::StrCat(order, " ", memory));
      const auto plan = PlanOf(*dataset, order);
      const EpochBytes epoch = EpochBytesOf(*plan, {.memory_bytes = memory});
      const std::vector<Fetched> fetched = GoThrough(*plan, {.memory_bytes = memory}, 1);
      EXPECT_EQ(epoch.first_requests, fetched[0].requests);
      EXPECT_EQ(epoch.first_requests, plan->order().spec().num_records);
      ExpectNear(epoch.first_bytes, fetched[0].bytes, 0.01);
      EXPECT_EQ(epoch.held_bytes, 0);
      EXPECT_TRUE(epoch.by_record);
      EXPECT_EQ(ProposeWindow(*plan, {.memory_bytes = memory}), std::nullopt);
    }
  }
  const auto plan = PlanOf(*dataset, batch + "shuffle { mode: NONE }");
  EXPECT_THAT(EpochText(*plan, EpochBytesOf(*plan, {.memory_bytes = 1})),
              AllOf(HasSubstr("in about 40 requests"), HasSubstr("each record is a file")));
}

TEST_F(EpochBytesTest, CompressedShardsAreEstimatedInWholePieces) {
  const TempFolder folder;
  // The records are shorter than the pieces of gzip, and as long as the pieces of zstd.
  for (const int record : {8'000, 130'000}) {
    const std::vector<std::string> shards = NoisyShards({8'000'000 / record, 1}, record);
    for (const Compression compression : {Compression::kGzip, Compression::kZstd}) {
      const std::string prefix = folder / absl::StrCat(CompressionName(compression), record, "-");
      const auto dataset = OpenFarCompressed(shards, compression, std::make_shared<Gate>(), prefix);
      for (const std::string& spec : {std::string(kInOrder), std::string(kGlobal),
                                      Window(8'000'000 / record / 3, 16'000'000 / record)}) {
        for (const ReadRoom& room : {ReadRoom{}, ReadRoom{.memory_bytes = 100 * kMib},
                                     ReadRoom{.memory_bytes = kMib, .disk_bytes = 100 * kMib}}) {
          SCOPED_TRACE(absl::StrCat(spec, " ", CompressionName(compression), record, " memory ",
                                    room.memory_bytes, " disk ", room.disk_bytes));
          const auto plan = PlanOf(dataset, spec);
          const EpochBytes epoch = EpochBytesOf(*plan, room);
          EXPECT_FALSE(epoch.exact);
          if (!epoch.holds) continue;
          const std::vector<Fetched> fetched = GoThrough(*plan, room, 2);
          ExpectNear(epoch.first_bytes, fetched[0].bytes, 0.12);
          ExpectNear(epoch.later_bytes, fetched[1].bytes, 0.12);
        }
      }
    }
  }
}

// Both members have the same shards, so each of them needs as many runs as member `a` alone.
TEST_F(EpochBytesTest, AZipNeedsTheBytesAndRequestsOfAllMembers) {
  const auto a = FarDataset({800, 400}, 30'000, "test");
  const auto b = FarDataset({800, 400}, 30'000, "b");
  const auto zip = Dataset::Zip({{.dataset = a, .prefix = ""}, {.dataset = b, .prefix = "b/"}});
  ASSERT_THAT(zip, IsOk());
  for (const std::string& order : {std::string(kInOrder), Window(30, 300), Window(101, 500)}) {
    SCOPED_TRACE(order);
    const ReadRoom room = {.memory_bytes = 200 * kMib};
    const auto alone = EpochBytesOf(*PlanOf(a, order), room);
    const auto joined = EpochBytesOf(
        *PlanOf(*zip, absl::StrReplaceAll(
                          order, {{"dataset: 'test'",
                                   "zip { dataset: 'test' } zip { dataset: 'b' prefix: 'b/' }"}})),
        room);
    EXPECT_EQ(joined.first_bytes, 2 * alone.first_bytes);
    EXPECT_EQ(joined.first_requests, 2 * alone.first_requests);
  }
}

TEST_F(EpochBytesTest, LocalShardsAreNotFetched) {
  const auto plan = PlanOf(OpenTestDataset(ShardsOf({20, 30}, 500)), kGlobal);
  const EpochBytes epoch = EpochBytesOf(*plan, {.memory_bytes = kMib});
  EXPECT_EQ(epoch.set_bytes, 0);
  EXPECT_EQ(epoch.first_bytes, 0);
  EXPECT_EQ(ProposeWindow(*plan, {.memory_bytes = kMib}), std::nullopt);
}

TEST_F(EpochBytesTest, AProposedWindowFetchesTheSetOnceWithTheProposedMemory) {
  for (const int64_t memory : {8, 64, 90}) {
    SCOPED_TRACE(memory);
    const auto plan = PlanOf(Photos(), kGlobal);
    const std::optional<WindowProposal> window =
        ProposeWindow(*plan, {.memory_bytes = memory * kMib});
    ASSERT_TRUE(window.has_value());
    const auto proposed =
        PlanOf(Photos(), absl::StrCat("dataset: 'test' global_batch: 64 ", SpecText(*window)));
    const ReadRoom room = {.memory_bytes = std::max(memory * kMib, window->memory_bytes)};
    EXPECT_EQ(EpochBytesOf(*proposed, room).first_bytes, window->epoch.first_bytes);
    EXPECT_TRUE(window->epoch.holds);
    EXPECT_EQ(GoThrough(*proposed, room, 1)[0].bytes, window->epoch.set_bytes);
    EXPECT_THAT(CostText(*window),
                HasSubstr(absl::StrCat("--read-budget ", window->memory_bytes / kMib, "MB")));
  }
}

TEST_F(EpochBytesTest, ProposedBlocksHoldARunAndProposedWindowsAtLeast16Blocks) {
  const auto block_bytes = [](const Dataset& dataset, const WindowProposal& window) {
    return static_cast<double>(dataset.far_bytes()) / static_cast<double>(dataset.num_records()) *
           static_cast<double>(window.block_records);
  };
  const auto joined = Dataset::Join({Photos(), Photos(), Photos(), Photos()});
  ASSERT_THAT(joined, IsOk());
  const std::string member = "concatenation { dataset: 'test' } ";
  const auto plan = PlanOf(*joined, absl::StrCat(member, member, member, member,
                                                 "global_batch: 64 shuffle { mode: GLOBAL }"));
  const std::optional<WindowProposal> least = ProposeWindow(*plan, {.memory_bytes = 16 * kMib});
  ASSERT_TRUE(least.has_value());
  EXPECT_GE(block_bytes(**joined, *least), ReadBlocks::kRunBytes);
  EXPECT_LE(block_bytes(**joined, *least), ReadBlocks::kRunBytes + 40'000);
  EXPECT_EQ(least->window_records, 16 * least->block_records);
  EXPECT_GT(least->memory_bytes, 16 * kMib) << "16 blocks need more than the room given";
  // With more memory, first the blocks become larger, and then the windows.
  const std::optional<WindowProposal> more = ProposeWindow(*plan, {.memory_bytes = 380 * kMib});
  ASSERT_TRUE(more.has_value());
  EXPECT_GT(block_bytes(**joined, *more), block_bytes(**joined, *least));
  EXPECT_LE(more->memory_bytes, 380 * kMib);
  EXPECT_GE(more->window_records, 16 * more->block_records);

  // If a record is larger than the wanted size of a block, a block has one record. A window has at
  // most as many records as the dataset.
  const auto large = FarDataset({4}, 10'000'000);
  const std::optional<WindowProposal> one =
      ProposeWindow(*PlanOf(large, kGlobal), {.memory_bytes = 16 * kMib});
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->block_records, 1);
  EXPECT_EQ(one->window_records, 4);
}

TEST_F(EpochBytesTest, NoWindowIsProposedIfTheCacheHoldsEverything) {
  EXPECT_EQ(ProposeWindow(*PlanOf(Photos(), kGlobal), {.disk_bytes = 150 * kMib}), std::nullopt);
}

TEST_F(EpochBytesTest, EpochTextSaysBytesRequestsAndTheReason) {
  const auto plan = PlanOf(Photos(), kGlobal);
  EXPECT_THAT(EpochText(*plan, EpochBytesOf(*plan, {.memory_bytes = 90 * kMib})),
              AllOf(HasSubstr("the first epoch fetches "),
                    HasSubstr(" MB, all of the set, in about 3500 requests, and each later one "),
                    HasSubstr("GLOBAL fetches record by record"), Not(HasSubstr("fetches about"))));
  EXPECT_THAT(EpochText(*plan, EpochBytesOf(*plan, {.disk_bytes = 150 * kMib})),
              HasSubstr("each later one 0 bytes: the whole set is kept"));
}

}  // namespace
}  // namespace systole
