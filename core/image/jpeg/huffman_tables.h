// The lookup tables of HuffmanDecoder: one lookup yields several symbols. Only HuffmanDecoder uses
// this file. Its functions run for every symbol, inlined into the loops of each SIMD target.
//
// Thread-compatible: a table does not change.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_TABLES_H_
#define SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_TABLES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/image/jpeg/huffman_scan.h"
#include "hwy/base.h"

namespace systole::huffman {

// The bits of a table's index. With more bits the tables are larger, and must be made anew for each
// image that has its own codes. With fewer bits more codes are too long for the tables.
constexpr int kLookupBits = 10;
constexpr int kLookupSize = 1 << kLookupBits;
// The codes and values of an entry together have at most this many bits.
constexpr int kMaxEntryBits = 15;
constexpr int kEntriesPerRefill = 3;
// Special values of `run`, which are larger than any run in a block. If k is the index of the last
// coefficient so far (at most 62), k + run says what the entry does:
//   below 63                       the block continues,
//   63 or more, bit kBeyond clear  the block ends,
//   63 or more, bit kBeyond set    the entry has a symbol beyond the block's end, or has no symbol.
constexpr int kBeyond = 64;
constexpr int kLong = kBeyond + 1;            // Too long for the lookup.
constexpr int kEndOfBlock = 2 * kBeyond + 1;  // Added to the runs before it.

// Elements i and i + kEndOfBlock both have the natural position of the i-th coefficient in zigzag
// order (T.81, figure 5).
constexpr std::array<uint8_t, 64 + kEndOfBlock> MakeNaturalOrder() {
  std::array<uint8_t, 64 + kEndOfBlock> order = {};
  int row = 0;
  int column = 0;
  for (size_t i = 0; i < 64; ++i) {
    order[i] = order[i + kEndOfBlock] = static_cast<uint8_t>(row * 8 + column);
    const bool up = (row + column) % 2 == 0;
    if (up ? column == 7 : row != 7 && column == 0) {
      ++row;
    } else if (up ? row == 0 : row == 7) {
      ++column;
    } else {
      row += up ? -1 : 1;
      column += up ? 1 : -1;
    }
  }
  return order;
}
inline constexpr std::array<uint8_t, 64 + kEndOfBlock> kNaturalOrder = MakeNaturalOrder();

inline uint64_t LoadBigEndian(const uint8_t* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

// The value in the `size` bits that follow the first `code_bits` bits of `window` (T.81, F.2.2.1,
// EXTEND). The function does not branch on the value, because a processor cannot predict the values
// of a photograph.
inline int ValueAt(uint64_t window, int code_bits, int size) {
  const uint64_t rest = window << code_bits;
  const int bits = static_cast<int>((rest >> 1) >> (63 - size));
  const int negative = static_cast<int>(~rest >> 63);  // The value's first bit is 0.
  return bits - (negative << size) + negative;
}

// An AC symbol is a run of zeros and the size of the value after them (T.81, F.1.2.2.1).
inline int RunOf(int symbol) { return (symbol >> 4) + 1; }  // Counts the zeros and the value.
inline int SizeOf(int symbol) { return symbol & 15; }
// Size 0 means 16 zeros if the symbol's upper half is 15, else the end of the block. T.81 has one
// symbol for the end, but libjpeg accepts every symbol of size 0 whose upper half is not 15.
inline bool IsEndOfBlock(int symbol) { return SizeOf(symbol) == 0 && symbol != 0xf0; }

// The next bits of a scan. The first of these bits are the highest bits of `window`, and the others
// follow at `next`. At every lookup, `window` holds at least kLookupBits bits.
struct BitReader {
  uint64_t window = 0;
  int count = 0;  // Bits of `window` from before `next`. It may also have bits from `next` on.
  const uint8_t* next = nullptr;

  size_t index() const { return window >> (64 - kLookupBits); }
  // Leaves 56 bits or more in `window`. Does not change index().
  HWY_INLINE void Refill() {
    window |= LoadBigEndian(next) >> count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  HWY_INLINE void Drop(int n) {
    window <<= n;
    count -= n;
  }
};
static_assert(kEntriesPerRefill * kMaxEntryBits + kLookupBits <= 56);

// What a scan has at the position of a lookup. An entry is one of:
//   one symbol and its value,
//   two symbols and their values,
//   one or two symbols with their values, and the end of the block, or
//   the end of the block alone, with a first value of 0 that is stored over a zero.
struct AcEntry {
  uint8_t bits = 0;         // Bits of all symbols and values together.
  uint8_t first_run = 0;    // The first symbol's run, or kLong.
  uint8_t run = 0;          // The sum of all runs, plus kEndOfBlock if the block ends; or kLong.
  uint8_t first_shift = 0;  // 64 minus the bits of the first symbol and its value.
  uint16_t first = 0;       // See first_value().
  uint8_t second = 0;       // The second symbol's value, if there are two symbols.
  uint8_t code_bits = 0;    // Bits of the first symbol's code.

  int first_bits() const { return 64 - first_shift; }
  int16_t second_value() const { return static_cast<int8_t>(second); }
  // The first symbol's value: the bits of its code and value, read as a number, plus `first`,
  // modulo 65536. `window` begins with the bits that the entry was found with.
  int16_t first_value(uint64_t window) const {
    return static_cast<int16_t>((window >> (first_shift & 63)) + first);
  }
};
static_assert(sizeof(AcEntry) == sizeof(uint64_t));

// All symbols whose codes lie within the bits of the index. `bits` is how many bits these codes and
// their values take. `run` is the sum of the symbols' runs, plus kEndOfBlock if the block ends; or
// kLong.
struct SkipEntry {
  uint8_t bits = 0;
  uint8_t run = 0;
};

struct DcEntry {
  uint8_t bits = 0;    // Bits of code and value; 0 if the code is not in the lookup.
  uint16_t value = 0;  // The DC value is the first `bits` bits plus `value`, modulo 65536.
};

// Codes by length, for codes that are not in a lookup.
struct LongCodes {
  HuffmanCodes codes;
  uint32_t limit[17] = {};  // 16 bits that begin with a code of at most n bits are below limit[n].
  int32_t offset[17] = {};  // Code c of n bits means symbols[c + offset[n]].

  explicit LongCodes(const HuffmanCodes& codes);
  struct Code {
    int bits = 0;  // 0 if there is no such code.
    int symbol = 0;
  };
  Code Find(uint64_t window) const;
};

struct DcTable {
  explicit DcTable(const HuffmanCodes& codes);
  // Takes a DC symbol and adds its difference to `*predictor`. False if there is no such code.
  bool Take(BitReader& bits, int* predictor) const;
  // `window` begins with the code and has at least the first bit of the value.
  static DcEntry EntryOf(uint64_t window, int code_bits, int size);

  LongCodes long_codes;
  std::array<DcEntry, kLookupSize> lookup;
};

struct AcTable {
  explicit AcTable(const HuffmanCodes& codes);

  // One symbol of any length.
  struct Symbol {
    int bits = 0;  // 0 if there is no such code.
    int run = 0;   // kEndOfBlock if the block ends.
    int value = 0;
  };
  Symbol Find(uint64_t window) const;

  LongCodes long_codes;
  std::array<AcEntry, kLookupSize> lookup;
  std::array<SkipEntry, kLookupSize> skip;
};

HWY_INLINE LongCodes::Code LongCodes::Find(uint64_t window) const {
  const uint32_t top = static_cast<uint32_t>(window >> 48);
  int n = 0;
  if (top >= limit[kLookupBits]) [[likely]] {
    n = kLookupBits + 1;
    for (int shorter = n; shorter <= 16; ++shorter) n += top >= limit[shorter] ? 1 : 0;
    if (n > 16) return {};
  } else {  // The code fits into an index, but the code and its value do not fit into an entry.
    n = 1;
    for (int shorter = 1; shorter < kLookupBits; ++shorter) n += top >= limit[shorter] ? 1 : 0;
  }
  return {n, codes.symbols[static_cast<int32_t>(top >> (16 - n)) + offset[n]]};
}

HWY_INLINE bool DcTable::Take(BitReader& bits, int* predictor) const {
  DcEntry entry = lookup[bits.index()];
  // Refills after the index is known, so that the lookup does not wait for the refill.
  bits.Refill();
  if (entry.bits == 0) [[unlikely]] {
    const LongCodes::Code code = long_codes.Find(bits.window);
    if (code.bits == 0) return false;
    entry = EntryOf(bits.window, code.bits, code.symbol);
  }
  *predictor += static_cast<int16_t>((bits.window >> (64 - entry.bits)) + entry.value);
  bits.Drop(entry.bits);
  return *predictor == static_cast<int16_t>(*predictor);
}

HWY_INLINE AcTable::Symbol AcTable::Find(uint64_t window) const {
  const LongCodes::Code code = long_codes.Find(window);
  if (code.bits == 0) return {};
  if (IsEndOfBlock(code.symbol)) return {code.bits, kEndOfBlock, 0};
  const int size = SizeOf(code.symbol);
  return {code.bits + size, RunOf(code.symbol), ValueAt(window, code.bits, size)};
}

}  // namespace systole::huffman

#endif  // SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_TABLES_H_
