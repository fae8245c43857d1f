#include "core/image/huffman_tables.h"

#include <cstdlib>

#include "core/status/check.h"

namespace systole::huffman {
namespace {

// Sets every entry of `lookup` whose index begins with a code, and not the others.
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

LongCodes::Code LongCodes::Find(uint64_t window) const {
  const uint32_t top = static_cast<uint32_t>(window >> 48);
  int n = 1;
  for (int shorter = 1; shorter <= 16; ++shorter) n += top >= limit[shorter] ? 1 : 0;
  if (n > 16) return {};
  return {n, codes.symbols[static_cast<int32_t>(top >> (16 - n)) + offset[n]]};
}

DcTable::DcTable(const HuffmanCodes& codes) : long_codes(codes), lookup{} {
  ForCodes(codes, lookup, [](int, uint8_t size, int code_bits) {
    return DcEntry{static_cast<uint8_t>(code_bits + size), static_cast<uint8_t>(code_bits), size};
  });
}

AcTable::AcTable(const HuffmanCodes& codes) : long_codes(codes) {
  std::array<AcEntry, kLookupSize> one;
  one.fill(AcEntry::Long());
  ForCodes(codes, one, [](int index, uint8_t symbol, int code_bits) {
    return IsEndOfBlock(symbol) ? AcEntry::End(code_bits) : AcEntry::One(index, symbol, code_bits);
  });
  // The symbol after the first `used` bits of index i, long if its code is not all there.
  const auto following = [&one](int i, int used) {
    if (used >= kLookupBits) return AcEntry::Long();
    const AcEntry next = one[(i << used) & (kLookupSize - 1)];
    return used + next.code_bits() > kLookupBits ? AcEntry::Long() : next;
  };
  for (int i = 0; i < kLookupSize; ++i) {
    AcEntry& entry = lookup[i];
    SkipEntry& skipped = skip[i];
    entry = one[i];
    skipped = {static_cast<uint8_t>(entry.bits()),
               static_cast<uint8_t>(entry.ends_block() ? kEndOfBlock : entry.first_run())};
    if (entry.is_long() || entry.ends_block()) continue;
    AcEntry next = following(i, entry.bits());
    const uint64_t window = static_cast<uint64_t>(i) << (64 - kLookupBits);
    const int second = next.first(window << entry.bits());
    if (!next.is_long() && !next.ends_block() && entry.bits() + next.bits() <= kLookupBits &&
        std::abs(second) < 128) {
      entry = AcEntry::Two(entry, next, entry.first(window), second);
      next = following(i, entry.bits());
    }
    if (next.ends_block()) entry = entry.WithEnd(next);
    while (skipped.run < kEndOfBlock) {
      next = following(i, skipped.bits);
      const int run = next.ends_block() ? kEndOfBlock : next.first_run();
      if (next.is_long() || skipped.bits + next.bits() > kMaxEntryBits ||
          (run < kEndOfBlock && skipped.run + run >= kEndOfBlock)) {
        break;
      }
      skipped.bits = static_cast<uint8_t>(skipped.bits + next.bits());
      skipped.run = static_cast<uint8_t>(skipped.run + run);
    }
    // What BitReader counts on.
    SYSTOLE_CHECK(entry.bits() <= kMaxEntryBits && skipped.bits <= kMaxEntryBits);
  }
}

AcTable::Symbol AcTable::Find(uint64_t window) const {
  const LongCodes::Code code = long_codes.Find(window);
  if (code.bits == 0) return {};
  if (IsEndOfBlock(code.symbol)) return {code.bits, kEndOfBlock, 0};
  const int size = SizeOf(code.symbol);
  return {code.bits + size, RunOf(code.symbol), ValueAt(window, code.bits, size)};
}

}  // namespace systole::huffman
