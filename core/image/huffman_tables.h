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

#include "core/image/huffman_decoder.h"
#include "hwy/base.h"

namespace systole::huffman {

// More make larger tables, which each image with codes of its own has to build, fewer more long
// codes.
constexpr int kLookupBits = 10;
constexpr int kLookupSize = 1 << kLookupBits;
// A code and a value in a lookup.
constexpr int kMaxEntryBits = 15;
constexpr int kEntriesPerRefill = 3;
// Runs that no block has.
constexpr int kEndOfBlock = 64;
constexpr int kLong = 128;  // Not in the lookup.

// Natural position of the i-th coefficient in zigzag order (T.81, figure 5).
constexpr std::array<uint8_t, 64> MakeNaturalOrder() {
  std::array<uint8_t, 64> order = {};
  int row = 0;
  int column = 0;
  for (uint8_t& position : order) {
    position = static_cast<uint8_t>(row * 8 + column);
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
inline constexpr std::array<uint8_t, 64> kNaturalOrder = MakeNaturalOrder();

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

// What the next kLookupBits bits begin with, packed so that it stays in a register:
//   one symbol and the value after its code,
//   two symbols, values and all,
//   either and the end of the block, or
//   the end of the block alone, which stores a zero where there is one.
class AcEntry {
 public:
  AcEntry() = default;
  static AcEntry Long() { return AcEntry(At(kLong, kFirstRun)); }
  static AcEntry End(int bits) {
    return AcEntry(At(bits, kBits) | kEnds | At(1, kFirstRun) | At(64 - bits, kShift) |
                   At(bits, kCodeBits));
  }
  // `index` begins with the code.
  static AcEntry One(int index, int symbol, int code_bits) {
    const int size = SizeOf(symbol);
    const int bits = code_bits + size;
    // The sign must be there, the value's first bit.
    if (bits > kMaxEntryBits || (size > 0 && code_bits == kLookupBits)) return Long();
    const bool negative = size > 0 && (index >> (kLookupBits - 1 - code_bits) & 1) == 0;
    return AcEntry(At(bits, kBits) | At(RunOf(symbol), kFirstRun) | At(64 - bits, kShift) |
                   At(size, kSize) | AtFirst(negative ? 1 - (1 << size) : 0) |
                   At(code_bits, kCodeBits));
  }
  // REQUIRES: bits() of both together at most kLookupBits, |second| <= 127.
  static AcEntry Two(AcEntry a, AcEntry b, int first, int second) {
    return AcEntry(At(a.bits() + b.bits(), kBits) | At(a.first_run(), kFirstRun) |
                   At(b.first_run(), kSecondRun) | At(64 - a.bits(), kShift) | AtFirst(first) |
                   At(second, kSecond));
  }
  AcEntry WithEnd(AcEntry end) const { return AcEntry((packed_ + At(end.bits(), kBits)) | kEnds); }

  int bits() const { return static_cast<int>(packed_ & 63); }  // Of all of it.
  int first_bits() const { return 64 - Get(kShift); }          // Of the first symbol alone.
  bool ends_block() const { return (packed_ & kEnds) != 0; }
  bool is_long() const { return first_run() == kLong; }
  int first_run() const { return Get(kFirstRun); }    // From the coefficient before, or kLong.
  int second_run() const { return Get(kSecondRun); }  // From the first; 0 if there is no second.
  int code_bits() const { return Get(kCodeBits); }    // Not of Two().
  // The values, `window` being the bits that the entry was found with.
  int16_t first(uint64_t window) const {
    const uint64_t bits = window >> Get(kShift) & ((uint64_t{1} << Get(kSize)) - 1);
    return static_cast<int16_t>(bits + (packed_ >> kFirst));
  }
  int16_t second() const { return static_cast<int8_t>(Get(kSecond)); }

 private:
  // Where a byte of `packed_` begins. kFirst has two of them, the first value less its last kSize
  // bits, which kShift moves down: all of it if they are none. kBits has a flag above the number.
  enum Place {
    kBits = 0,
    kFirstRun = 8,
    kSecondRun = 16,
    kShift = 24,
    kSize = 32,
    kFirst = 40,
    kSecond = 56,
    kCodeBits = kSecond,  // Of one symbol; its second() is worth nothing.
  };
  static constexpr uint64_t kEnds = 128;

  explicit AcEntry(uint64_t packed) : packed_(packed) {}
  static uint64_t At(int value, Place place) {
    return static_cast<uint64_t>(static_cast<uint8_t>(value)) << place;
  }
  static uint64_t AtFirst(int value) {
    return static_cast<uint64_t>(static_cast<uint16_t>(value)) << kFirst;
  }
  int Get(Place place) const { return static_cast<uint8_t>(packed_ >> place); }

  uint64_t packed_ = 0;
};

// As many symbols as there are codes for in the bits: how many bits they take, values included, and
// their runs, with kEndOfBlock added, or kLong.
struct SkipEntry {
  uint8_t bits = 0;
  uint8_t run = 0;
};

struct DcEntry {
  uint8_t bits = 0;  // Of code and value; 0 if not in the lookup.
  uint8_t code_bits = 0;
  uint8_t size = 0;
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

  LongCodes long_codes;
  std::array<DcEntry, kLookupSize> lookup;
};

struct AcTable {
  explicit AcTable(const HuffmanCodes& codes);
  // The coefficients after the first, to `block` if they are to be stored. False: invalid.
  template <bool kStore>
  bool Take(BitReader& bits, int16_t* block) const;

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
  const size_t index = bits.index();
  bits.Refill();
  DcEntry entry = lookup[index];
  if (entry.bits == 0) [[unlikely]] {
    const LongCodes::Code code = long_codes.Find(bits.window);
    if (code.bits == 0) return false;
    entry = {static_cast<uint8_t>(code.bits + code.symbol), static_cast<uint8_t>(code.bits),
             static_cast<uint8_t>(code.symbol)};
  }
  *predictor += ValueAt(bits.window, entry.code_bits, entry.size);
  bits.Drop(entry.bits);
  return *predictor == static_cast<int16_t>(*predictor);
}

template <bool kStore>
HWY_INLINE bool AcTable::Take(BitReader& bits, int16_t* block) const {
  int k = 0;  // The last coefficient so far.
  while (true) {
    for (int i = 0; i < kEntriesPerRefill; ++i) {
      const size_t index = bits.index();
      // Once what is to be looked up is known: nobody waits for these bits.
      if (i == 0) bits.Refill();
      if constexpr (!kStore) {
        const SkipEntry entry = skip[index];
        const int last = k + entry.run;
        if (last < 63) [[likely]] {
          bits.Drop(entry.bits);
          k = last;
          continue;
        }
        if (entry.run >= kEndOfBlock && entry.run < kLong && last < 63 + kEndOfBlock) {
          bits.Drop(entry.bits);
          return true;
        }
      }
      const AcEntry entry = lookup[index];
      const int first = k + entry.first_run();
      if constexpr (kStore) {
        const int second = first + entry.second_run();
        if (second < 63) [[likely]] {
          // In this order: where there is no second, it is overwritten.
          block[kNaturalOrder[second]] = entry.second();
          block[kNaturalOrder[first]] = entry.first(bits.window);
          bits.Drop(entry.bits());
          if (entry.ends_block()) return true;
          k = second;
          continue;
        }
      }
      if (first <= 63) {
        // The block becomes full, and what follows in the entry may be another's.
        if constexpr (kStore) block[kNaturalOrder[first]] = entry.first(bits.window);
        bits.Drop(entry.first_bits());
        if (first == 63) return true;
        k = first;
        continue;
      }
      bits.Refill();
      const Symbol symbol = Find(bits.window);
      if (symbol.bits == 0) return false;
      bits.Drop(symbol.bits);
      if (symbol.run == kEndOfBlock) return true;
      k += symbol.run;
      if (k > 63) return false;
      if constexpr (kStore) block[kNaturalOrder[k]] = static_cast<int16_t>(symbol.value);
      if (k == 63) return true;
      break;
    }
  }
}

}  // namespace systole::huffman

#endif  // SYSTOLE_CORE_IMAGE_HUFFMAN_TABLES_H_
