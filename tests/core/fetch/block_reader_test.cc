#include "core/fetch/block_reader.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/cache/disk_entry.h"
#include "core/cache/disk_store.h"
#include "core/concurrency/mutex.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/read_progress.h"
#include "core/storage/byte_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr uint64_t kSize = 1000;  // The size of a block, which takes kCost bytes of memory.
constexpr int64_t kCost = 4096;

// A clock that goes only when the test says so.
class HandClock {
 public:
  MonotonicClock Clock() {
    return [this] { return absl::Nanoseconds(now_ns_.load()); };
  }
  void Advance(absl::Duration time) { now_ns_ += absl::ToInt64Nanoseconds(time); }

 private:
  std::atomic<int64_t> now_ns_ = 0;
};

// A source of many blocks, behind a gate, with an identity. Reads heed interrupts while they wait.
class Storage final : public ByteSource {
 public:
  explicit Storage(std::string name = "shard-1", std::string identity = "v1")
      : name_(std::move(name)), identity_(std::move(identity)) {
    for (int i = 0; i < 100'000; ++i) bytes_ += static_cast<char>('a' + i % 23);
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    ++reads_;
    NoteRead(comes_first_);
    ++waiting_;
    while (!open_ && !(heeds_ && InterruptRequested())) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    --waiting_;
    if (InterruptRequested()) ++interrupted_;
    if (fails_) return absl::UnavailableError("no route");
    if (offset >= bytes_.size()) return size_t{0};
    return bytes_.copy(out.data(), out.size(), offset);
  }
  absl::StatusOr<uint64_t> Size() const override { return bytes_.size(); }
  std::string identity() const override { return identity_; }
  absl::Status CheckUnchanged() const override {
    return replaced_ ? absl::FailedPreconditionError("was replaced") : absl::OkStatus();
  }
  absl::string_view name() const override { return name_; }

  BlockRange Range(uint64_t block) const {
    return {.source = this, .offset = block * kSize, .size = kSize};
  }
  std::string Bytes(uint64_t block) const { return bytes_.substr(block * kSize, kSize); }

  std::atomic<size_t> comes_first_ = 0;  // The bytes that a read gets before it waits at the gate.
  std::atomic<bool> open_ = true;
  std::atomic<bool> fails_ = false;
  std::atomic<bool> heeds_ = true;
  std::atomic<bool> replaced_ = false;
  mutable std::atomic<int> reads_ = 0;
  mutable std::atomic<int> waiting_ = 0;
  mutable std::atomic<int> interrupted_ = 0;

 private:
  const std::string name_;
  const std::string identity_;
  std::string bytes_;
};

BlockWant WantOf(const Storage& storage, std::vector<uint64_t> blocks, uint64_t dataset = 0) {
  BlockWant want = {.dataset = dataset};
  for (const uint64_t block : blocks) want.uses.push_back({.range = storage.Range(block)});
  return want;
}

// Receives the blocks of wants.
class Arrivals {
 public:
  BlockReader::Done Done() {
    return [this](std::vector<BlockPtr> blocks) {
      MutexLock lock(mu_);
      blocks_.push_back(std::move(blocks));
      changed_.SignalAll();
    };
  }
  std::vector<BlockPtr> Wait() {
    MutexLock lock(mu_);
    while (blocks_.empty()) changed_.Wait(mu_);
    std::vector<BlockPtr> first = std::move(blocks_.front());
    blocks_.erase(blocks_.begin());
    return first;
  }
  size_t size() const {
    MutexLock lock(mu_);
    return blocks_.size();
  }

 private:
  mutable Mutex mu_;
  CondVar changed_;
  std::vector<std::vector<BlockPtr>> blocks_ ABSL_GUARDED_BY(mu_);
};

// Gets the blocks of the want, from memory or by a read.
std::vector<BlockPtr> ReadNow(BlockReader& reader, BlockWant want) {
  Arrivals arrivals;
  BlockReading reading = reader.TryRead(std::move(want), arrivals.Done());
  EXPECT_NE(reading.state, BlockReading::State::kNoRoom);
  if (reading.state == BlockReading::State::kReading) return arrivals.Wait();
  return std::move(reading.blocks);
}

TEST(BlockReaderTest, BlocksComeInTheOrderAskedForAndEachIsReadOnce) {
  const Storage storage;
  BlockReader reader({.requests = 4});
  const std::vector<BlockPtr> blocks = ReadNow(reader, WantOf(storage, {3, 1, 3, 2}));
  ASSERT_THAT(blocks, SizeIs(4));
  EXPECT_EQ(blocks[0]->bytes(), storage.Bytes(3));
  EXPECT_EQ(blocks[1]->bytes(), storage.Bytes(1));
  EXPECT_EQ(blocks[2], blocks[0]);
  EXPECT_EQ(blocks[3]->bytes(), storage.Bytes(2));
  EXPECT_EQ(storage.reads_, 3);
}

TEST(BlockReaderTest, BlocksInMemoryAreHandedOutAtOnce) {
  const Storage storage;
  BlockReader reader({});
  ReadNow(reader, WantOf(storage, {1, 2}));
  const BlockReading reading = reader.TryRead(WantOf(storage, {2, 1}), [](auto) { FAIL(); });
  EXPECT_EQ(reading.state, BlockReading::State::kReady);
  ASSERT_THAT(reading.blocks, SizeIs(2));
  EXPECT_EQ(reading.blocks[0]->bytes(), storage.Bytes(2));
  EXPECT_EQ(storage.reads_, 2);
  EXPECT_EQ(reader.GetStats().bytes_from_memory, 2000);
}

TEST(BlockReaderTest, ANewSourceAtAReusedAddressIsReadAnew) {
  BlockReader reader({});
  alignas(Storage) char place[sizeof(Storage)];
  for (int i = 0; i < 2; ++i) {
    Storage* const storage = new (place) Storage();
    EXPECT_EQ(ReadNow(reader, WantOf(*storage, {1}))[0]->bytes(), storage->Bytes(1));
    EXPECT_EQ(storage->reads_, 1);
    storage->~Storage();
  }
}

TEST(BlockReaderTest, TwoWantsOfABlockShareItsRead) {
  Storage storage;
  storage.open_ = false;
  BlockReader reader({});
  Arrivals arrivals;
  const auto first = reader.TryRead(WantOf(storage, {1}), arrivals.Done());
  const auto second = reader.TryRead(WantOf(storage, {1}), arrivals.Done());
  storage.open_ = true;
  EXPECT_EQ(arrivals.Wait()[0]->bytes(), storage.Bytes(1));
  EXPECT_EQ(arrivals.Wait()[0]->bytes(), storage.Bytes(1));
  EXPECT_EQ(storage.reads_, 1);
}

TEST(BlockReaderTest, BlocksInUseAreNotDroppedAndRoomIsCalledWhenTheyAreReleased) {
  const Storage storage;
  std::atomic<int> rooms = 0;
  BlockReader reader({.memory_bytes = 2 * kCost, .room = [&] { ++rooms; }});
  std::vector<BlockPtr> held = ReadNow(reader, WantOf(storage, {1, 2}));
  EXPECT_EQ(reader.TryRead(WantOf(storage, {3}), [](auto) {}).state, BlockReading::State::kNoRoom);
  EXPECT_EQ(held[0]->bytes(), storage.Bytes(1));
  held.clear();
  ASSERT_TRUE(WaitUntil([&] { return rooms == 1; }));
  EXPECT_EQ(ReadNow(reader, WantOf(storage, {3}))[0]->bytes(), storage.Bytes(3));
  EXPECT_EQ(reader.GetStats().memory_bytes, 2 * kCost);
}

TEST(BlockReaderTest, TheDoneAndRoomCallbacksMayTakeALockThatCallersHold) {
  Storage storage;
  Mutex mu;
  std::atomic<int> calls = 0;
  const auto call = [&] {
    MutexLock lock(mu);
    ++calls;
  };
  BlockReader reader({.memory_bytes = kCost, .room = call});
  BlockReading reading;
  BlockPtr held;
  {
    MutexLock lock(mu);
    reading = reader.TryRead(WantOf(storage, {1}), [&](std::vector<BlockPtr> blocks) {
      held = blocks[0];
      call();
    });
    EXPECT_EQ(reader.TryRead(WantOf(storage, {2}), [](auto) {}).state,
              BlockReading::State::kNoRoom);
  }
  ASSERT_TRUE(WaitUntil([&] { return calls > 0; }));
  ASSERT_TRUE(WaitUntil([&] { return reader.GetStats().reads_under_way == 0; }));
  MutexLock lock(mu);
  reading.ticket.reset();
  (void)reader.TryRead(WantOf(storage, {2}), [](auto) {});
  held.reset();
}

TEST(BlockReaderTest, DroppingATicketInterruptsReadsThatNobodyElseWants) {
  Storage storage;
  storage.open_ = false;
  BlockReader reader({.requests = 4});
  Arrivals arrivals;
  auto first = reader.TryRead(WantOf(storage, {1, 2}), [](auto) { FAIL(); });
  const auto second = reader.TryRead(WantOf(storage, {2}), arrivals.Done());
  ASSERT_TRUE(WaitUntil([&] { return storage.waiting_ == 2; }));
  first.ticket.reset();
  ASSERT_TRUE(WaitUntil([&] { return storage.waiting_ == 1; }));
  EXPECT_EQ(storage.interrupted_, 1);
  storage.open_ = true;
  EXPECT_EQ(arrivals.Wait()[0]->bytes(), storage.Bytes(2));
}

TEST(BlockReaderTest, AQueuedReadThatNobodyWantsIsNeverBegun) {
  Storage storage;
  storage.open_ = false;
  BlockReader reader({.requests = 1});
  Arrivals arrivals;
  const auto first = reader.TryRead(WantOf(storage, {1}), arrivals.Done());
  ASSERT_TRUE(WaitUntil([&] { return storage.waiting_ == 1; }));
  auto second = reader.TryRead(WantOf(storage, {2}), [](auto) { FAIL(); });
  EXPECT_EQ(second.state, BlockReading::State::kReading);
  second.ticket.reset();
  storage.open_ = true;
  arrivals.Wait();
  ASSERT_TRUE(WaitUntil([&] { return reader.GetStats().reads_under_way == 0; }));
  EXPECT_EQ(storage.reads_, 1);
}

TEST(BlockReaderTest, AFailedReadIsReportedWithItsBlockAndNotCached) {
  Storage storage;
  storage.fails_ = true;
  BlockReader reader({});
  const std::vector<BlockPtr> failed = ReadNow(reader, WantOf(storage, {1}));
  EXPECT_THAT(failed[0]->status(), StatusIs(absl::StatusCode::kUnavailable, "no route"));
  EXPECT_EQ(failed[0]->bytes(), "");
  storage.fails_ = false;
  EXPECT_EQ(ReadNow(reader, WantOf(storage, {1}))[0]->bytes(), storage.Bytes(1));
}

TEST(BlockReaderTest, ATruncatedBlockIsDataLossAndTheErrorSaysHowManyBytesExist) {
  const Storage storage;
  BlockReader reader({});
  BlockWant want;
  want.uses.push_back({.range = {.source = &storage, .offset = 99'900, .size = 200}});
  EXPECT_THAT(ReadNow(reader, want)[0]->status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       "shard \"shard-1\", 200 bytes at byte offset 99900: the shard ends after "
                       "100 of the 200 bytes to be read"));
}

TEST(BlockReaderTest, ABlockOfAReplacedSourceIsAnError) {
  Storage storage;
  storage.replaced_ = true;
  BlockReader reader({});
  EXPECT_THAT(ReadNow(reader, WantOf(storage, {1}))[0]->status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "was replaced"));
}

TEST(BlockReaderTest, AHangingReadTimesOutItsBlockButCountsAsUnderWayUntilItReturns) {
  Storage storage;
  storage.open_ = false;
  storage.heeds_ = false;
  HandClock clock;
  BlockReader reader({.requests = 4, .read_timeout = absl::Seconds(60), .now = clock.Clock()});
  Arrivals arrivals;
  const auto reading = reader.TryRead(WantOf(storage, {1}), arrivals.Done());
  ASSERT_TRUE(WaitUntil([&] { return storage.waiting_ == 1; }));
  clock.Advance(absl::Seconds(61));
  EXPECT_THAT(arrivals.Wait()[0]->status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("shard \"shard-1\", 1000 bytes at byte offset 1000: no bytes have "
                                 "come for 1m; the storage does not answer")));
  EXPECT_EQ(reader.GetStats().reads_hung, 1);
  EXPECT_EQ(reader.GetStats().reads_under_way, 1);
  EXPECT_EQ(reader.GetStats().blocks_timed_out, 1);
  storage.open_ = true;
  ASSERT_TRUE(WaitUntil([&] { return reader.GetStats().reads_under_way == 0; }));
  EXPECT_EQ(reader.GetStats().reads_hung, 0);
  EXPECT_EQ(ReadNow(reader, WantOf(storage, {1}))[0]->bytes(), storage.Bytes(1));
}

TEST(BlockReaderTest, ATimeoutErrorSaysHowManyBytesHaveCome) {
  Storage storage;
  storage.comes_first_ = 123;
  storage.open_ = false;
  HandClock clock;
  BlockReader reader({.requests = 4, .read_timeout = absl::Seconds(60), .now = clock.Clock()});
  Arrivals arrivals;
  const auto reading = reader.TryRead(WantOf(storage, {1}), arrivals.Done());
  ASSERT_TRUE(WaitUntil([&] { return storage.waiting_ == 1; }));
  clock.Advance(absl::Seconds(61));
  EXPECT_THAT(arrivals.Wait()[0]->status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("only 123 bytes have come")));
}

TEST(BlockReaderTest, OtherDatasetsAreReadWhileWantsOfAHangingDatasetFailAtOnce) {
  Storage dead("dead");
  dead.open_ = false;
  dead.heeds_ = false;
  const Storage alive("alive");
  HandClock clock;
  BlockReader reader({.requests = 4, .now = clock.Clock()});
  Arrivals arrivals;
  const auto hanging = reader.TryRead(WantOf(dead, {0, 1, 2, 3, 4}, 7), arrivals.Done());
  ASSERT_TRUE(WaitUntil([&] { return dead.waiting_ == 3; }));
  EXPECT_EQ(ReadNow(reader, WantOf(alive, {1, 2, 3}, 8))[2]->bytes(), alive.Bytes(3));
  clock.Advance(absl::Seconds(61));
  const std::vector<BlockPtr> failed = arrivals.Wait();
  for (const BlockPtr& block : failed) {
    EXPECT_THAT(block->status(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("\"dead\"")));
  }
  const BlockReading next = reader.TryRead(WantOf(dead, {1}, 7), [](auto) { FAIL(); });
  EXPECT_EQ(next.state, BlockReading::State::kReady);
  EXPECT_THAT(next.blocks[0]->status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(": not read: ")));
  EXPECT_EQ(ReadNow(reader, WantOf(alive, {4, 5, 6}, 8))[2]->bytes(), alive.Bytes(6));
  EXPECT_EQ(dead.reads_, 3);
  dead.open_ = true;
}

TEST(BlockReaderTest, TheOwnerOfAWantLivesUntilItsReadsReturn) {
  Storage storage;
  storage.open_ = false;
  storage.heeds_ = false;
  BlockReader reader({});
  BlockWant want = WantOf(storage, {1});
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = owner;
  want.owner = std::move(owner);
  auto reading = reader.TryRead(std::move(want), [](auto) {});
  ASSERT_TRUE(WaitUntil([&] { return storage.waiting_ == 1; }));
  reading.ticket.reset();
  EXPECT_FALSE(watched.expired());
  storage.open_ = true;
  ASSERT_TRUE(WaitUntil([&] { return watched.expired(); }));
}

TEST(BlockReaderTest, StopReturnsFalseWhileAReadRunsAndNoCallbackFollowsIt) {
  Storage storage;
  storage.open_ = false;
  storage.heeds_ = false;
  BlockReader reader({.room = [] { FAIL(); }});
  const auto reading = reader.TryRead(WantOf(storage, {1}), [](auto) { FAIL(); });
  ASSERT_TRUE(WaitUntil([&] { return storage.waiting_ == 1; }));
  EXPECT_FALSE(reader.Stop(absl::ZeroDuration()));
  EXPECT_EQ(reader.TryRead(WantOf(storage, {2}), [](auto) {}).state, BlockReading::State::kNoRoom);
  storage.open_ = true;
  EXPECT_TRUE(reader.Stop(absl::InfiniteDuration()));
}

TEST(BlockReaderTest, StopInterruptsReads) {
  Storage storage;
  storage.open_ = false;
  BlockReader reader({});
  const auto reading = reader.TryRead(WantOf(storage, {1, 2, 3}), [](auto) { FAIL(); });
  ASSERT_TRUE(WaitUntil([&] { return storage.waiting_ == 3; }));
  EXPECT_TRUE(reader.Stop(absl::InfiniteDuration()));
}

TEST(BlockReaderTest, BlocksOnDiskOutliveTheReader) {
  const TempFolder folder;
  const Storage storage;
  for (int i = 0; i < 2; ++i) {
    std::shared_ptr<DiskStore> disk = *DiskStore::Open(folder / "disk", 1 << 20);
    BlockReader reader({.disk = disk});
    EXPECT_EQ(ReadNow(reader, WantOf(storage, {1, 2}))[0]->bytes(), storage.Bytes(1));
    ASSERT_TRUE(WaitUntil([&] { return reader.GetStats().reads_under_way == 0; }));
    EXPECT_EQ(reader.GetStats().bytes_from_disk, i * 2000);
  }
  EXPECT_EQ(storage.reads_, 2);
}

TEST(BlockReaderTest, BlockBytesBeginOneDiskEntryHeaderAfterAPageBoundary) {
  const Storage storage;
  BlockReader reader({});
  for (const BlockPtr& block : ReadNow(reader, WantOf(storage, {1, 2, 3}))) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->bytes().data()) % kFilePageBytes,
              kDiskEntryHeaderBytes);
  }
}

TEST(BlockReaderTest, BlocksFromSourcesWithANewOrEmptyIdentityAreNotServedFromDisk) {
  const TempFolder folder;
  std::shared_ptr<DiskStore> disk = *DiskStore::Open(folder / "disk", 1 << 20);
  for (const std::string identity : {"v1", "v2", "", ""}) {
    const Storage storage("shard-1", identity);
    BlockReader reader({.disk = disk});
    ReadNow(reader, WantOf(storage, {1}));
    EXPECT_EQ(storage.reads_, 1);
    ASSERT_TRUE(WaitUntil([&] { return reader.GetStats().reads_under_way == 0; }));
  }
  EXPECT_EQ(disk->used_bytes(), 2 * 4096);
}

}  // namespace
}  // namespace systole
