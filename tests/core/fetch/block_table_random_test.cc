// Uses a BlockTable at random: asks for blocks, drops wants, and lets reads end, fail or hang.
// After each step, the test checks what must always hold.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/fetch/block_table.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr int64_t kRequests = 8;
constexpr uint64_t kSize = 1000;
constexpr int64_t kCost = 4096;
constexpr int64_t kMemoryBlocks = 24;

class RandomUse {
 public:
  explicit RandomUse(uint64_t seed) : random_(seed) {}

  void Step() {
    switch (Draw(10)) {
      case 0:
      case 1:
      case 2:
        Admit();
        break;
      case 3:
        if (!waiting_.empty() && Draw(3) == 0) Drop();
        break;
      case 4:
      case 5:
        if (!held_.empty()) Release();
        break;
      case 6:
        now_ += absl::Seconds(Draw(100) == 0 ? 61 : 1);
        Take(table_.Look(now_));
        break;
      default:
        Begin();
        if (!jobs_.empty() && Draw(4) != 0) Arrive();
    }
    table_.TakeFreed();
    Check();
  }

  // Lets all wants and reads end.
  void Finish() {
    for (int i = 0; i < 100'000 && (!waiting_.empty() || !jobs_.empty()); ++i) {
      Begin();
      if (!jobs_.empty()) Arrive();
    }
    EXPECT_THAT(waiting_, testing::IsEmpty());
    while (!held_.empty()) Release();
    EXPECT_EQ(table_.GetStats().memory_in_use_bytes, 0);
    EXPECT_EQ(table_.GetStats().reads_under_way, 0);
    EXPECT_EQ(table_.GetStats().reads_hung, 0);
    EXPECT_EQ(table_.GetStats().reads_queued, 0);
    EXPECT_LE(table_.GetStats().memory_bytes, kMemoryBlocks * kCost);
  }

  int64_t finished() const { return finished_; }

 private:
  uint64_t Draw(uint64_t below) { return random_() % below; }

  void Admit() {
    BlockWant want = {.feed = Draw(3), .dataset = Draw(2)};
    const uint64_t uses = 1 + Draw(4);
    for (uint64_t use = 0; use < uses; ++use) {
      const uint64_t block = want.dataset * 1000 + Draw(60);
      want.uses.push_back({.range = {.source = &source_, .offset = block * kSize, .size = kSize},
                           .records_in_block = 3});
    }
    const BlockTable::Admission admission = table_.Admit(want);
    if (!admission.admitted) return;
    if (admission.blocks.has_value()) {
      held_.push_back(*admission.blocks);
    } else {
      ASSERT_TRUE(waiting_.insert(admission.want).second);
    }
  }
  void Drop() {
    const auto want = std::next(waiting_.begin(), static_cast<int64_t>(Draw(waiting_.size())));
    table_.Drop(*want);
    waiting_.erase(want);
  }
  void Release() {
    const size_t which = Draw(held_.size());
    for (const BlockTable::Handed& handed : held_[which]) {
      if (handed.block->status().ok()) table_.Release(handed);
    }
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  void Begin() {
    if (!table_.CanBegin()) return;
    std::optional<BlockTable::Job> job = table_.NextRead(now_);
    ASSERT_TRUE(job.has_value());
    jobs_.push_back(*std::move(job));
  }
  void Arrive() {
    const size_t which = Draw(jobs_.size());
    const BlockTable::Job job = jobs_[which];
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(which));
    auto block =
        Draw(10) == 0
            ? std::make_shared<const Block>(job.range, absl::UnavailableError("failed"))
            : std::make_shared<const Block>(job.range, BlockBuffer(*AlignedBuffer::Create(64)));
    Take(table_.Arrive(job.read, std::move(block), BlockOrigin::kSource, now_));
    table_.TakeFreed();
    table_.End(job.read);
  }
  void Take(std::vector<BlockTable::Finished> finished) {
    for (BlockTable::Finished& each : finished) {
      ASSERT_EQ(waiting_.erase(each.want), 1) << "a want that was dropped or has finished";
      for (const BlockTable::Handed& handed : each.blocks) ASSERT_NE(handed.block, nullptr);
      held_.push_back(std::move(each.blocks));
      ++finished_;
    }
  }

  void Check() const {
    const BlockReaderStats stats = table_.GetStats();
    if (stats.reads_hung == 0) {
      ASSERT_LE(stats.memory_bytes, kMemoryBlocks * kCost);
    }
    ASSERT_EQ(stats.reads_under_way, static_cast<int64_t>(jobs_.size()));
    ASSERT_LE(stats.reads_under_way, kRequests);
    ASSERT_LE(stats.reads_hung, stats.reads_under_way);
    // Each block that is held counts as memory in use.
    std::set<std::pair<uint64_t, uint64_t>> held;
    for (const auto& blocks : held_) {
      for (const BlockTable::Handed& handed : blocks) {
        if (handed.block->status().ok()) held.insert({handed.key.source, handed.key.offset});
      }
    }
    ASSERT_LE(static_cast<int64_t>(held.size()) * kCost, stats.memory_in_use_bytes);
    ASSERT_LE(stats.memory_in_use_bytes, stats.memory_bytes);
    // No block is read twice at the same time, and each dataset leaves at least a quarter of the
    // requests to the other dataset.
    std::map<uint64_t, int> reads;
    std::map<bool, int64_t> of_dataset;
    for (const BlockTable::Job& job : jobs_) {
      if (!job.flag->is_raised()) {
        ASSERT_EQ(++reads[job.range.offset], 1);
      }
      ++of_dataset[job.range.offset >= 1000 * kSize];
    }
    for (const auto& [dataset, count] : of_dataset) ASSERT_LE(count, kRequests * 3 / 4);
  }

  std::mt19937_64 random_;
  const MemorySource source_ = MemorySource("", "shard-1");
  BlockTable table_{{.requests = kRequests,
                     .memory_bytes = kMemoryBlocks * kCost,
                     .read_timeout = absl::Seconds(60)}};
  absl::Duration now_;
  std::set<int64_t> waiting_;
  std::vector<BlockTable::Job> jobs_;
  std::vector<std::vector<BlockTable::Handed>> held_;
  int64_t finished_ = 0;
};

TEST(BlockTableRandomTest, BoundsHoldAndEveryWantFinishesOnce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomUse use(seed);
    for (int step = 0; step < 1000; ++step) {
      use.Step();
      if (testing::Test::HasFatalFailure()) return;
    }
    use.Finish();
    EXPECT_GT(use.finished(), 20);
  }
}

}  // namespace
}  // namespace systole
