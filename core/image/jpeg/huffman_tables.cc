#include "core/image/jpeg/huffman_tables.h"

#include <cstdlib>

#include "core/status/check.h"

namespace systole::huffman {
namespace {

// Sets every entry of `lookup` whose index begins with a code. The other entries stay as they are.
template <typename Entry, typename MakeEntry>
void ForCodes(const HuffmanCodes& codes, std::array<Entry, kLookupSize>& lookup, MakeEntry make) {
  int index = 0;
  const uint8_t* symbol = codes.symbols;
  for (int n = 1; n <= kLookupBits; ++n) {
    for (int i = 0; i < codes.counts[n]; ++i, ++symbol) {
      const int end = index + (1 << (kLookupBits - n));
      for (; index < end; ++index) lookup[index] = make(index, *symbol, n);
    }
  }
}

// The bits that were looked up with `index`.
uint64_t WindowOf(int index) { return static_cast<uint64_t>(index) << (64 - kLookupBits); }

// Returns `value` minus the first `bits` bits of `window`, modulo 2^16.
uint16_t LessBits(int value, uint64_t window, int bits) {
  return static_cast<uint16_t>(static_cast<uint64_t>(value) - (window >> (64 - bits)));
}

constexpr AcEntry kLongEntry = {.first_run = kLong, .run = kLong};

bool IsEnd(const AcEntry& entry) { return entry.run == kEndOfBlock + 1; }

// The entry for the first symbol alone, for an index that begins with the symbol's code.
AcEntry OneSymbol(int index, uint8_t symbol, int code_bits) {
  const bool end = IsEndOfBlock(symbol);
  const int size = end ? 0 : SizeOf(symbol);
  const int bits = code_bits + size;
  // The index must have the value's first bit, which is its sign.
  if (bits > kMaxEntryBits || (size > 0 && code_bits == kLookupBits)) return kLongEntry;
  const int run = end ? 1 : RunOf(symbol);
  const uint64_t window = WindowOf(index);
  return {.bits = static_cast<uint8_t>(bits),
          .first_run = static_cast<uint8_t>(run),
          .run = static_cast<uint8_t>(run + (end ? kEndOfBlock : 0)),
          .first_shift = static_cast<uint8_t>(64 - bits),
          .first = LessBits(ValueAt(window, code_bits, size), window, bits),
          .second = 0,
          .code_bits = static_cast<uint8_t>(code_bits)};
}

}  // namespace

LongCodes::LongCodes(const HuffmanCodes& codes) : codes(codes) {
  uint32_t code = 0;
  int32_t symbol = 0;
  for (int n = 1; n <= 16; ++n) {
    offset[n] = symbol - static_cast<int32_t>(code);
    code += codes.counts[n];
    symbol += codes.counts[n];
    limit[n] = code << (16 - n);
    code <<= 1;
  }
}

DcTable::DcTable(const HuffmanCodes& codes) : long_codes(codes), lookup{} {
  ForCodes(codes, lookup, [](int index, uint8_t size, int code_bits) {
    // The index must have the value's first bit, which is its sign.
    return code_bits == kLookupBits ? DcEntry{} : EntryOf(WindowOf(index), code_bits, size);
  });
}

DcEntry DcTable::EntryOf(uint64_t window, int code_bits, int size) {
  const int bits = code_bits + size;
  return {static_cast<uint8_t>(bits), LessBits(ValueAt(window, code_bits, size), window, bits)};
}

AcTable::AcTable(const HuffmanCodes& codes) : long_codes(codes) {
  std::array<AcEntry, kLookupSize> one;
  one.fill(kLongEntry);
  ForCodes(codes, one, OneSymbol);
  // The entry for the symbol after the first `used` bits of index i. kLongEntry if the index does
  // not hold the symbol's whole code.
  const auto following = [&one](int i, int used) {
    if (used >= kLookupBits) return kLongEntry;
    const AcEntry& next = one[(i << used) & (kLookupSize - 1)];
    return used + next.code_bits > kLookupBits ? kLongEntry : next;
  };
  for (int i = 0; i < kLookupSize; ++i) {
    AcEntry& entry = lookup[i];
    SkipEntry& skipped = skip[i];
    entry = one[i];
    skipped = {entry.bits, IsEnd(entry) ? static_cast<uint8_t>(kEndOfBlock) : entry.run};
    if (entry.run >= kLong) continue;
    AcEntry next = following(i, entry.bits);
    const int second = next.first_value(WindowOf(i) << entry.bits);
    if (next.run < kLong && entry.bits + next.bits <= kLookupBits && std::abs(second) < 128) {
      entry.second = static_cast<uint8_t>(second);
      entry.run = static_cast<uint8_t>(entry.run + next.run);
      entry.bits = static_cast<uint8_t>(entry.bits + next.bits);
      next = following(i, entry.bits);
    }
    if (IsEnd(next)) {
      entry.run = static_cast<uint8_t>(entry.run + kEndOfBlock);
      entry.bits = static_cast<uint8_t>(entry.bits + next.bits);
    }
    while (skipped.run < kLong) {
      next = following(i, skipped.bits);
      const int run = IsEnd(next) ? kEndOfBlock : next.run;
      if (next.run == kLong || skipped.bits + next.bits > kMaxEntryBits ||
          (!IsEnd(next) && skipped.run + run >= kBeyond)) {
        break;
      }
      skipped.bits = static_cast<uint8_t>(skipped.bits + next.bits);
      skipped.run = static_cast<uint8_t>(skipped.run + run);
    }
    // BitReader relies on this.
    SYSTOLE_CHECK(entry.bits <= kMaxEntryBits && skipped.bits <= kMaxEntryBits);
  }
}

}  // namespace systole::huffman
