// Huffman codes as HuffmanDecoder looks them up, several symbols at a time. For it alone: what is
// here runs for every symbol and is inlined into its loops, once for each SIMD target.
//
// Thread-compatible: a table does not change.
#ifndef SYSTOLE_CORE_IMAGE_HUFFMAN_TABLES_H_
#define SYSTOLE_CORE_IMAGE_HUFFMAN_TABLES_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/image/huffman_scan.h"
#include "hwy/base.h"

namespace systole::huffman {

// More make larger tables, which each image with codes of its own has to build, fewer more long
// codes.
constexpr int kLookupBits = 10;
constexpr int kLookupSize = 1 << kLookupBits;
// A code and a value in a lookup.
constexpr int kMaxEntryBits = 15;
constexpr int kEntriesPerRefill = 3;
// Runs that no block has. With k <= 62, the coefficient before, k + run tells what becomes of the
// block: below 63 it goes on, otherwise it ends there if the bit kBeyond is not set (63 and all
// that end before, in this encoding). If it is, the entry says too much or nothing.
constexpr int kBeyond = 64;
constexpr int kLong = kBeyond + 1;            // Not in the lookup.
constexpr int kEndOfBlock = 2 * kBeyond + 1;  // Added to the run before it.

// Natural position of the i-th coefficient in zigzag order (T.81, figure 5), at i and at
// i + kEndOfBlock.
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

// The value of the `size` bits after the first `code_bits` (T.81, F.2.2.1, EXTEND), without a
// branch: what a photograph holds cannot be predicted.
inline int ValueAt(uint64_t window, int code_bits, int size) {
  const uint64_t rest = window << code_bits;
  const int bits = static_cast<int>((rest >> 1) >> (63 - size));
  const int negative = static_cast<int>(~rest >> 63);  // Its first bit is 0.
  return bits - (negative << size) + negative;
}

// An AC symbol is a run of zeros and the size of the value after them (T.81, F.1.2.2.1).
inline int RunOf(int symbol) { return (symbol >> 4) + 1; }  // With the value.
inline int SizeOf(int symbol) { return symbol & 15; }
// Size 0 is 16 zeros or, with any other run, the end: T.81 knows one such symbol, libjpeg takes
// all.
inline bool IsEndOfBlock(int symbol) { return SizeOf(symbol) == 0 && symbol != 0xf0; }

// The next bits of a scan at the top of `window`, at least kLookupBits whenever one looks; then
// those at `next`.
struct BitReader {
  uint64_t window = 0;
  int count = 0;  // Of the bits in `window`; there may be more.
  const uint8_t* next = nullptr;

  size_t index() const { return window >> (64 - kLookupBits); }
  // There are 56 bits or more afterwards. The index stays.
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

// What the next kLookupBits bits begin with:
//   one symbol and the value after its code,
//   two symbols, values and all,
//   either and the end of the block, or
//   the end of the block alone, which stores a zero where there is one.
struct AcEntry {
  uint8_t bits = 0;         // Of all of it.
  uint8_t first_run = 0;    // Of the first symbol, or kLong.
  uint8_t run = 0;          // Of both, with kEndOfBlock added if the block ends, or kLong.
  uint8_t first_shift = 0;  // 64 less the bits of the first symbol alone.
  uint16_t first = 0;       // To be added to these bits for its value, modulo 65536.
  uint8_t second = 0;       // The value of the last symbol, if there are two.
  uint8_t code_bits = 0;    // Of the first symbol.

  int first_bits() const { return 64 - first_shift; }
  int16_t second_value() const { return static_cast<int8_t>(second); }
  // `window` being the bits that the entry was found with.
  int16_t first_value(uint64_t window) const {
    return static_cast<int16_t>((window >> (first_shift & 63)) + first);
  }
};
static_assert(sizeof(AcEntry) == sizeof(uint64_t));

// As many symbols as there are codes for in the bits: how many bits they take, values included, and
// their runs, with kEndOfBlock added if the block ends, or kLong.
struct SkipEntry {
  uint8_t bits = 0;
  uint8_t run = 0;
};

struct DcEntry {
  uint8_t bits = 0;    // Of code and value; 0 if not in the lookup.
  uint16_t value = 0;  // To be added to these bits for the value, modulo 65536.
};

// Codes by length, for those that are not in a lookup.
struct LongCodes {
  HuffmanCodes codes;
  uint32_t limit[17] = {};  // 16 bits that begin with a code of at most n bits are below limit[n].
  int32_t offset[17] = {};  // Code c of n bits stands for symbols[c + offset[n]].

  explicit LongCodes(const HuffmanCodes& codes);
  struct Code {
    int bits = 0;  // 0 if there is no such code.
    int symbol = 0;
  };
  Code Find(uint64_t window) const;
};

struct DcTable {
  explicit DcTable(const HuffmanCodes& codes);
  // False if there is no such code. Adds the difference to `*predictor`.
  bool Take(BitReader& bits, int* predictor) const;
  // `window` begins with the code and has the first bit of the value.
  static DcEntry EntryOf(uint64_t window, int code_bits, int size);

  LongCodes long_codes;
  std::array<DcEntry, kLookupSize> lookup;
};

struct AcTable {
  explicit AcTable(const HuffmanCodes& codes);

  // One symbol, however long.
  struct Symbol {
    int bits = 0;  // 0 if there is no such code.
    int run = 0;   // Or kEndOfBlock.
    int value = 0;
  };
  Symbol Find(uint64_t window) const;

  LongCodes long_codes;
  std::array<AcEntry, kLookupSize> lookup;
  std::array<SkipEntry, kLookupSize> skip;
};

HWY_INLINE bool DcTable::Take(BitReader& bits, int* predictor) const {
  DcEntry entry = lookup[bits.index()];
  // Once what is to be looked up is known: nobody waits for these bits.
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

}  // namespace systole::huffman

#endif  // SYSTOLE_CORE_IMAGE_HUFFMAN_TABLES_H_
