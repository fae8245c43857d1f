#include "core/image/jpeg/huffman_loops.h"

// Only CopyPlain uses vectors. The other functions are compiled for each target because they shift
// by numbers of bits that are in registers. Such shifts are cheap on targets from AVX2 on (BMI2).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/image/jpeg/huffman_loops.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace systole::huffman {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

enum class Progress { kInBlock, kBlockEnds, kInvalid };

// Takes the symbols of kEntriesPerRefill lookups, for which the bits of one refill suffice.
template <bool kStore>
HWY_INLINE Progress TakeSymbols(Cursor& cursor) {
  BitReader& bits = cursor.bits;
  const AcTable& table = *cursor.table;
  const uint8_t* const natural_order = kNaturalOrder.data();
  int16_t* const block = cursor.block;
  size_t k = cursor.k;
  for (int i = 0; i < kEntriesPerRefill; ++i) {
    const size_t index = bits.index();
    // Refills after the index is read, so that the lookup does not wait for the refill.
    if (i == 0) bits.Refill();
    if constexpr (!kStore) {
      const SkipEntry entry = table.skip[index];
      const size_t last = k + entry.run;
      if (last < 63 || (last & kBeyond) == 0) {
        bits.Drop(entry.bits);
        if (last >= 63) return Progress::kBlockEnds;
        k = last;
        continue;
      }
    }
    const AcEntry& entry = table.lookup[index];
    const size_t first = k + entry.first_run;
    if constexpr (kStore) {
      const size_t last = k + entry.run;
      if (last < 63 || (last & kBeyond) == 0) {
        // The order of the two stores matters: if there is no second value, the first store writes
        // a zero, and the second store overwrites this zero.
        block[natural_order[last]] = entry.second_value();
        block[natural_order[first]] = entry.first_value(bits.window);
        bits.Drop(entry.bits);
        if (last >= 63) return Progress::kBlockEnds;
        k = last;
        continue;
      }
    }
    if (first <= 63) {
      // Takes only the entry's first symbol. This symbol may fill the block, so that the entry's
      // second symbol belongs to the next block.
      if constexpr (kStore) block[natural_order[first]] = entry.first_value(bits.window);
      bits.Drop(entry.first_bits());
      if (first == 63) return Progress::kBlockEnds;
      k = first;
      continue;
    }
    bits.Refill();
    const AcTable::Symbol symbol = table.Find(bits.window);
    if (symbol.bits == 0) return Progress::kInvalid;
    bits.Drop(symbol.bits);
    if (symbol.run == kEndOfBlock) return Progress::kBlockEnds;
    k += static_cast<size_t>(symbol.run);
    if (k > 63) return Progress::kInvalid;
    if constexpr (kStore) block[natural_order[k]] = static_cast<int16_t>(symbol.value);
    if (k == 63) return Progress::kBlockEnds;
    break;
  }
  cursor.k = k;
  return Progress::kInBlock;
}

template <Mode kMode>
HWY_INLINE Progress TakeSymbolsAs(Cursor& cursor) {
  if constexpr (kMode == Mode::kSkip) return TakeSymbols<false>(cursor);
  if constexpr (kMode == Mode::kStore) return TakeSymbols<true>(cursor);
  // Every MCU has the same blocks in the same order, so the CPU can predict this branch.
  return cursor.stores ? TakeSymbols<true>(cursor) : TakeSymbols<false>(cursor);
}

// Returns false if this loop must end, because the next block has another mode or the scan is no
// longer active.
template <Mode kMode>
HWY_INLINE bool BeginBlock(ScanState& state, Cursor& cursor) {
  state.in_block = false;
  if (state.next_block == state.scan.num_blocks) {
    state.cursor.bits = cursor.bits;
    const bool begun = state.NextMcu();
    cursor.bits = state.cursor.bits;
    if (!begun) return false;
    cursor.bits.Refill();
  }
  const HuffmanScan::Block& block = state.scan.blocks[state.next_block];
  state.mode = state.ModeOf(block);
  if (state.mode != kMode) return false;
  int& dc = state.dc_predictors[block.component];
  if (!state.dc_tables[block.dc_table]->Take(cursor.bits, &dc)) {
    state.GiveUp();
    return false;
  }
  if constexpr (kMode != Mode::kSkip) {
    cursor.block = state.values.data() + state.values_end +
                   kBlockValues * static_cast<size_t>(state.next_block);
    // In kStore every block is wanted. In kMixed unwanted blocks stay zeros.
    if (kMode == Mode::kStore || block.wanted) cursor.block[0] = static_cast<int16_t>(dc);
    cursor.stores = kMode == Mode::kStore || (block.wanted && !block.dc_only);
  }
  cursor.table = state.ac_tables[block.ac_table].get();
  cursor.k = 0;
  ++state.next_block;
  state.in_block = true;
  return true;
}

template <Mode kMode>
HWY_INLINE bool Begin(ScanState& state, Cursor& cursor) {
  cursor = state.cursor;
  return state.in_block || BeginBlock<kMode>(state, cursor);
}

template <Mode kMode>
HWY_INLINE bool Advance(ScanState& state, Cursor& cursor) {
  const Progress progress = TakeSymbolsAs<kMode>(cursor);
  if (progress == Progress::kInBlock) [[likely]]
    return true;
  if (progress == Progress::kBlockEnds) return BeginBlock<kMode>(state, cursor);
  state.GiveUp();
  return false;
}

// DecodeOne and DecodeTwo return when a scan changes its mode or is no longer active.
template <Mode kMode>
HWY_NOINLINE void DecodeOne(ScanState& state) {
  Cursor cursor;
  if (Begin<kMode>(state, cursor)) {
    while (Advance<kMode>(state, cursor)) {
    }
  }
  state.cursor = cursor;
}

template <Mode kModeA, Mode kModeB>
HWY_NOINLINE void DecodeTwo(ScanState& a, ScanState& b) {
  Cursor cursor_a, cursor_b;
  // Both scans must begin, even if Begin() returns false for the first one.
  const bool begun_a = Begin<kModeA>(a, cursor_a);
  const bool begun_b = Begin<kModeB>(b, cursor_b);
  if (begun_a && begun_b) {
    while (Advance<kModeA>(a, cursor_a) && Advance<kModeB>(b, cursor_b)) {
    }
  }
  a.cursor = cursor_a;
  b.cursor = cursor_b;
}

void DecodeAlone(ScanState& state) {
  while (state.active) {
    switch (state.mode) {
      case Mode::kSkip:
        DecodeOne<Mode::kSkip>(state);
        break;
      case Mode::kStore:
        DecodeOne<Mode::kStore>(state);
        break;
      case Mode::kMixed:
        DecodeOne<Mode::kMixed>(state);
    }
  }
}

// Decodes both scans. kMode is the mode of `a`. REQUIRES: the mode of `b` is not above kMode. So
// one loop is enough for each pair of modes.
template <Mode kMode>
void DecodeBeside(ScanState& a, ScanState& b) {
  switch (b.mode) {
    case Mode::kSkip:
      return DecodeTwo<kMode, Mode::kSkip>(a, b);
    case Mode::kStore:
      if constexpr (kMode >= Mode::kStore) return DecodeTwo<kMode, Mode::kStore>(a, b);
      return;
    case Mode::kMixed:
      if constexpr (kMode >= Mode::kMixed) return DecodeTwo<kMode, Mode::kMixed>(a, b);
  }
}

void DecodeTogether(ScanState& first, ScanState& second) {
  while (first.active && second.active) {
    const bool in_order = first.mode >= second.mode;
    ScanState& a = in_order ? first : second;
    ScanState& b = in_order ? second : first;
    switch (a.mode) {
      case Mode::kSkip:
        DecodeBeside<Mode::kSkip>(a, b);
        break;
      case Mode::kStore:
        DecodeBeside<Mode::kStore>(a, b);
        break;
      case Mode::kMixed:
        DecodeBeside<Mode::kMixed>(a, b);
    }
  }
}

size_t CopyPlain(const uint8_t* from, size_t size, uint8_t* to) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto bytes = hn::LoadU(d, from + i);
    hn::StoreU(bytes, d, to + i);
    const intptr_t at = hn::FindFirstTrue(d, hn::Eq(bytes, hn::Set(d, 255)));
    if (at >= 0) return i + static_cast<size_t>(at);
  }
  for (; i < size && from[i] != 255; ++i) to[i] = from[i];
  return i;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole::huffman
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::huffman {
namespace {

HWY_EXPORT(DecodeAlone);
HWY_EXPORT(DecodeTogether);
HWY_EXPORT(CopyPlain);

}  // namespace

void DecodeAlone(ScanState& state) { HWY_DYNAMIC_DISPATCH(DecodeAlone)(state); }

void DecodeTogether(ScanState& a, ScanState& b) { HWY_DYNAMIC_DISPATCH(DecodeTogether)(a, b); }

size_t CopyPlain(const uint8_t* from, size_t size, uint8_t* to) {
  return HWY_DYNAMIC_DISPATCH(CopyPlain)(from, size, to);
}

}  // namespace systole::huffman
#endif  // HWY_ONCE
