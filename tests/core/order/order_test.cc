#include "core/order/order.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

OrderSpec Global(int64_t num_records, int64_t global_batch, Tail tail = Tail::kDrop) {
  return {.seed = 1, .num_records = num_records, .global_batch = global_batch, .tail = tail};
}

OrderSpec Window(int64_t num_records, int64_t block_records, int64_t window_records) {
  return {.seed = 1,
          .mode = ShuffleMode::kWindow,
          .block_records = block_records,
          .window_records = window_records,
          .num_records = num_records,
          .global_batch = 1};
}

Order Make(const OrderSpec& spec) {
  absl::StatusOr<Order> order = Order::Create(spec);
  EXPECT_THAT(order, IsOk());
  return *order;
}

std::vector<int64_t> Epoch(const Order& order, int64_t epoch) {
  std::vector<int64_t> records(order.spec().num_records);
  for (int64_t p = 0; p < order.spec().num_records; ++p) records[p] = order.RecordAt(epoch, p);
  return records;
}

bool IsPermutation(const std::vector<int64_t>& records) {
  std::vector<bool> seen(records.size());
  for (const int64_t r : records) {
    if (r < 0 || r >= static_cast<int64_t>(records.size()) || seen[r]) return false;
    seen[r] = true;
  }
  return true;
}

TEST(OrderTest, ShuffleModeNoneKeepsTheOrderOfTheRecords) {
  OrderSpec spec = Global(5, 1);
  spec.mode = ShuffleMode::kNone;
  EXPECT_EQ(Epoch(Make(spec), 3), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(OrderTest, GlobalIsAPermutationForEverySizeUpTo5000) {
  for (int64_t size = 1; size <= 5000; ++size) {
    ASSERT_TRUE(IsPermutation(Epoch(Make(Global(size, 1)), size % 7))) << "size " << size;
  }
}

TEST(OrderTest, GlobalIsAPermutationForLargeSizes) {
  for (const int64_t size : {65535, 65536, 65537, 300000}) {
    ASSERT_TRUE(IsPermutation(Epoch(Make(Global(size, 1)), 2))) << "size " << size;
  }
}

TEST(OrderTest, WindowIsAPermutationForEverySizeUpTo1000) {
  for (int64_t size = 1; size <= 1000; ++size) {
    ASSERT_TRUE(IsPermutation(Epoch(Make(Window(size, 16, 50)), size % 7))) << "size " << size;
  }
}

TEST(OrderTest, WindowIsAPermutationForEveryBlockAndWindow) {
  for (const int64_t size : {1, 2, 31, 32, 33, 100}) {
    for (int64_t block = 1; block <= size + 1; ++block) {
      for (int64_t window = 1; window <= size + 1; window += 3) {
        ASSERT_TRUE(IsPermutation(Epoch(Make(Window(size, block, window)), 5)))
            << "size " << size << " block " << block << " window " << window;
      }
    }
  }
}

TEST(OrderTest, WindowIsAPermutationForLargeSizes) {
  ASSERT_TRUE(IsPermutation(Epoch(Make(Window(300007, 1024, 4096)), 1)));
  ASSERT_TRUE(IsPermutation(Epoch(Make(Window(1000, kMaxInt64 / 2, kMaxInt64 / 2)), 1)));
}

// With windows of one record, only whole blocks move. The records of a block stay together, also
// those of the last block, which is shorter than the others.
TEST(OrderTest, BlocksStayTogetherAndTheShortLastBlockMoves) {
  const Order order = Make(Window(/*num_records=*/10, /*block_records=*/4, /*window_records=*/1));
  std::set<int64_t> places_of_short_block;
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    const std::vector<int64_t> records = Epoch(order, epoch);
    for (size_t p = 0; p + 1 < records.size(); ++p) {
      const bool block_ends = records[p] % 4 == 3 || records[p] == 9;
      if (block_ends) continue;
      ASSERT_EQ(records[p + 1], records[p] + 1) << "epoch " << epoch;
    }
    places_of_short_block.insert(std::find(records.begin(), records.end(), 8) - records.begin());
  }
  EXPECT_EQ(places_of_short_block, (std::set<int64_t>{0, 4, 8}));
}

// The purpose of mode WINDOW: a window of W positions uses at most W / block + 2 blocks.
TEST(OrderTest, WindowTouchesFewBlocks) {
  const int64_t block = 64, window = 256;
  const std::vector<int64_t> records = Epoch(Make(Window(10000, block, window)), 0);
  for (int64_t begin = 0; begin < 10000; begin += window) {
    std::set<int64_t> blocks;
    for (int64_t p = begin; p < std::min<int64_t>(begin + window, 10000); ++p) {
      blocks.insert(records[p] / block);
    }
    EXPECT_LE(blocks.size(), window / block + 2);
  }
}

TEST(OrderTest, DropLeavesOutTheRemainder) {
  const Order order = Make(Global(103, 10, Tail::kDrop));
  EXPECT_EQ(order.steps_per_epoch(), 10);
  std::set<int64_t> seen;
  for (int64_t step = 10; step < 20; ++step) {
    for (int64_t slot = 0; slot < 10; ++slot) {
      const Place place = order.PlaceOf(step, slot);
      EXPECT_EQ(place.epoch, 1);
      EXPECT_EQ(place.position, (step - 10) * 10 + slot);
      ASSERT_TRUE(place.record.has_value());
      EXPECT_EQ(*place.record, order.RecordAt(1, place.position));
      EXPECT_TRUE(seen.insert(*place.record).second);
    }
  }
  EXPECT_EQ(seen.size(), 100);
}

TEST(OrderTest, PadDeliversEachRecordOnceAndThenEmptyPlaces) {
  const Order order = Make(Global(103, 10, Tail::kPad));
  EXPECT_EQ(order.steps_per_epoch(), 11);
  std::set<int64_t> seen;
  for (int64_t step = 0; step < 11; ++step) {
    EXPECT_EQ(order.RecordsIn(step), step < 10 ? 10 : 3);
    EXPECT_EQ(order.RecordsIn(step + 11), order.RecordsIn(step));  // A step of the next epoch.
    for (int64_t slot = 0; slot < 10; ++slot) {
      const Place place = order.PlaceOf(step, slot);
      EXPECT_EQ(place.epoch, 0);
      EXPECT_EQ(place.record.has_value(), step * 10 + slot < 103);
      if (place.record) {
        EXPECT_TRUE(seen.insert(*place.record).second);
      }
    }
  }
  EXPECT_EQ(seen.size(), 103);
  EXPECT_EQ(order.PlaceOf(11, 0).epoch, 1);
}

TEST(OrderTest, PadFillsABatchLargerThanTheDataset) {
  const Order order = Make(Global(3, 8, Tail::kPad));
  EXPECT_EQ(order.steps_per_epoch(), 1);
  for (int64_t slot = 0; slot < 8; ++slot) {
    EXPECT_EQ(order.PlaceOf(7, slot).record.has_value(), slot < 3);
  }
}

TEST(OrderTest, ExactFitHasNeitherRemainderNorPadding) {
  for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
    const Order order = Make(Global(40, 10, tail));
    EXPECT_EQ(order.steps_per_epoch(), 4);
    EXPECT_TRUE(order.PlaceOf(3, 9).record.has_value());
  }
}

TEST(OrderTest, TotalStepsCoverAllEpochsUnlessEndless) {
  OrderSpec spec = Global(103, 10);
  spec.epochs = 7;
  EXPECT_EQ(Make(spec).total_steps(), 70);
  spec.epochs = 0;
  EXPECT_EQ(Make(spec).total_steps(), std::nullopt);
}

TEST(OrderTest, HugeStepNumbersHaveTheRightPlaces) {
  const Order order = Make(Global(1281167, 1024));  // 1251 steps per epoch.
  const Place place = order.PlaceOf(1000000000, 1023);
  EXPECT_EQ(place.epoch, 1000000000 / 1251);
  EXPECT_EQ(place.position, (1000000000 % 1251) * 1024 + 1023);
  EXPECT_EQ(place.record, order.RecordAt(place.epoch, place.position));

  const Place last = order.PlaceOf(kMaxInt64, 0);
  EXPECT_EQ(last.epoch, kMaxInt64 / 1251);
  EXPECT_TRUE(last.record.has_value());
}

TEST(OrderTest, PlacesOfEqualsPlaceOfForEachSlot) {
  OrderSpec none = Global(50, 16, Tail::kPad), window = Window(50, 4, 12);
  none.mode = ShuffleMode::kNone;
  window.global_batch = 16;
  window.tail = Tail::kPad;
  for (const OrderSpec& spec : {none, Global(50, 16, Tail::kPad), window}) {
    const Order order = Make(spec);
    for (const int64_t step : {0, 3, 4, 11}) {  // An epoch's last step is padded.
      for (const int64_t first_slot : {0, 5, 16}) {
        std::vector<Place> places(static_cast<size_t>(16 - first_slot));
        order.PlacesOf(step, first_slot, absl::MakeSpan(places));
        for (size_t i = 0; i < places.size(); ++i) {
          const Place one = order.PlaceOf(step, first_slot + static_cast<int64_t>(i));
          EXPECT_EQ(places[i].epoch, one.epoch);
          EXPECT_EQ(places[i].position, one.position);
          EXPECT_EQ(places[i].record, one.record);
          EXPECT_EQ(places[i].position, step % 4 * 16 + first_slot + static_cast<int64_t>(i));
          EXPECT_EQ(places[i].record.has_value(), places[i].position < 50);
        }
      }
    }
  }
}

TEST(OrderTest, LargestNumbersDoNotOverflow) {
  const int64_t max = int64_t{1} << 62;
  for (const OrderSpec& spec : {Global(max, max - 1, Tail::kPad), Global(max, max, Tail::kPad)}) {
    const Order order = Make(spec);
    const Place last = order.PlaceOf(order.steps_per_epoch() - 1, spec.global_batch - 1);
    EXPECT_EQ(last.position, order.steps_per_epoch() * spec.global_batch - 1);
    EXPECT_EQ(last.record.has_value(), last.position < max);
  }
  OrderSpec window = Window(max, max - 1, max - 1);
  for (const int64_t position : {int64_t{0}, max / 2, max - 2, max - 1}) {
    const int64_t record = Make(window).RecordAt(0, position);
    EXPECT_GE(record, 0);
    EXPECT_LT(record, max);
  }
}

TEST(OrderTest, EndlessFeedsHaveTheOrderOfFiniteFeeds) {
  OrderSpec counted = Global(100, 10), endless = Global(100, 10);
  counted.epochs = 5;
  endless.epochs = 0;
  EXPECT_EQ(Epoch(Make(counted), 4), Epoch(Make(endless), 4));
}

TEST(OrderTest, BatchAndTailDoNotMoveRecords) {
  EXPECT_EQ(Epoch(Make(Global(100, 10)), 4), Epoch(Make(Global(100, 7, Tail::kPad)), 4));
}

TEST(OrderTest, ValuesArePinned) {  // A change of a value needs a new content version.
  EXPECT_EQ(Epoch(Make(Global(10, 1)), 0), (std::vector<int64_t>{6, 2, 3, 0, 8, 4, 7, 9, 5, 1}));
  EXPECT_EQ(Epoch(Make(Window(10, 4, 5)), 0), (std::vector<int64_t>{6, 5, 4, 9, 8, 0, 1, 7, 3, 2}));
  EXPECT_EQ(Make(Global(10, 1)).Fingerprint(42), 12719154191687781840u);
}

TEST(OrderFingerprintTest, CoversWhatDecidesTheOrderAndNothingElse) {
  const OrderSpec base = Window(1000, 16, 64);
  const uint64_t fingerprint = Make(base).Fingerprint(7);
  EXPECT_EQ(Make(base).Fingerprint(7), fingerprint);
  EXPECT_NE(Make(base).Fingerprint(8), fingerprint);

  const auto changed = [&](auto change) {
    OrderSpec spec = base;
    change(spec);
    return Make(spec).Fingerprint(7);
  };
  std::set<uint64_t> different = {
      fingerprint,
      changed([](OrderSpec& s) { s.seed = 2; }),
      changed([](OrderSpec& s) { s.mode = ShuffleMode::kGlobal; }),
      changed([](OrderSpec& s) { s.mode = ShuffleMode::kNone; }),
      changed([](OrderSpec& s) { s.block_records = 17; }),
      changed([](OrderSpec& s) { s.window_records = 65; }),
      changed([](OrderSpec& s) { s.num_records = 1001; }),
      changed([](OrderSpec& s) { s.tail = Tail::kPad; }),
  };
  EXPECT_EQ(different.size(), 8);
  EXPECT_EQ(changed([](OrderSpec& s) { s.global_batch = 2; }), fingerprint);
  EXPECT_EQ(changed([](OrderSpec& s) { s.epochs = 9; }), fingerprint);
}

TEST(OrderFingerprintTest, IgnoresWhatTheModeIgnores) {
  OrderSpec plain = Global(100, 10), stray = Global(100, 10);
  stray.block_records = 3;
  stray.window_records = 4;
  EXPECT_EQ(Make(plain).Fingerprint(1), Make(stray).Fingerprint(1));
}

TEST(OrderCreateTest, DropIsRefusedWithARemedyIfNoBatchCanBeFilled) {
  EXPECT_THAT(Order::Create(Global(9, 10, Tail::kDrop)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("global_batch is 10"), HasSubstr("only 9 records"),
                             HasSubstr("tail: PAD"), HasSubstr("at most 9"))));
}

TEST(OrderCreateTest, NumbersOutOfRangeAreRefusedByName) {
  const auto error = [](auto change) {
    OrderSpec spec = Window(1000, 16, 64);
    change(spec);
    return Order::Create(spec);
  };
  const auto invalid = [](const char* what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  const int64_t too_many = (int64_t{1} << 62) + 1;
  EXPECT_THAT(error([](OrderSpec& s) { s.num_records = 0; }), invalid("number of records is 0"));
  EXPECT_THAT(error([](OrderSpec& s) { s.num_records = -5; }), invalid("number of records is -5"));
  EXPECT_THAT(error([&](OrderSpec& s) { s.num_records = too_many; }), invalid("want 1 to 2^62"));
  EXPECT_THAT(error([](OrderSpec& s) { s.global_batch = 0; }), invalid("global_batch is 0"));
  EXPECT_THAT(error([&](OrderSpec& s) { s.global_batch = too_many; }),
              invalid("global_batch is 4"));
  EXPECT_THAT(error([](OrderSpec& s) { s.block_records = 0; }), invalid("block_records is 0"));
  EXPECT_THAT(error([](OrderSpec& s) { s.window_records = -1; }), invalid("window_records is -1"));
  EXPECT_THAT(error([](OrderSpec& s) { s.epochs = -1; }), invalid("epochs is -1"));
}

TEST(OrderCreateTest, MoreStepsThanInt64AreRefused) {
  OrderSpec spec = Global(1000, 1);
  spec.epochs = kMaxInt64 / 1000;
  EXPECT_EQ(Make(spec).total_steps(), kMaxInt64 / 1000 * 1000);
  ++spec.epochs;
  EXPECT_THAT(Order::Create(spec),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("say epochs: 0")));
}

TEST(OrderDeathTest, PlacesOutOfRangeAreTheCallersBug) {
  const Order order = Make(Global(100, 10));
  EXPECT_DEATH(order.RecordAt(0, 100), "position");
  EXPECT_DEATH(order.RecordAt(-1, 0), "epoch");
  EXPECT_DEATH(order.PlaceOf(-1, 0), "step");
  EXPECT_DEATH(order.PlaceOf(0, 10), "slot");
  std::vector<Place> eleven(11);
  EXPECT_DEATH(order.PlacesOf(0, 0, absl::MakeSpan(eleven)), "slot");
}

}  // namespace
}  // namespace systole
