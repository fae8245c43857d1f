#include "core/image/huffman_decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/status/check.h"

namespace systole {
namespace {

// More make larger tables, which each image with codes of its own has to build, fewer more long
// codes.
constexpr int kLookupBits = 10;
constexpr int kLookupSize = 1 << kLookupBits;
// A code and a value in a lookup. Three such entries fit in what Refill() brings.
constexpr int kMaxEntryBits = 18;
constexpr int kEntriesPerRefill = 3;
// Runs that are none.
constexpr int kEndOfBlock = 64;
constexpr int kLong = 128;  // Not in the lookup.

// An MCU has at most 10 blocks of 64 coefficients, each of a code and a value of at most 16 bits.
constexpr int64_t kMaxMcuBytes = int64_t{HuffmanScan::kMaxBlocks} * 64 * (16 + 16) / 8;
constexpr int64_t kWindowBytes = sizeof(uint64_t);
// Small enough to stay in the first-level cache beside the tables.
constexpr int64_t kBufferBytes = 8192;

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
constexpr std::array<uint8_t, 64> kNaturalOrder = MakeNaturalOrder();

uint64_t LoadBigEndian(const uint8_t* bytes) {
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
int RunOf(int symbol) { return (symbol >> 4) + 1; }  // With the value.
int SizeOf(int symbol) { return symbol & 15; }
// Size 0 is 16 zeros or, with any other run, the end: T.81 knows one such symbol, libjpeg takes
// all.
bool IsEndOfBlock(int symbol) { return SizeOf(symbol) == 0 && symbol != 0xf0; }

// What the next kLookupBits bits begin with, packed: the compiler keeps it in a register.
//   one symbol whose value follows its code,
//   the same and the end of the block, or
//   two symbols, values and all.
class AcEntry {
 public:
  AcEntry() = default;
  static AcEntry Long() { return AcEntry(uint64_t{kLong} << 16); }
  static AcEntry One(int symbol, int code_bits) {
    const bool end = IsEndOfBlock(symbol);
    return AcEntry(Field(code_bits + SizeOf(symbol), 0) | Field(end ? 0 : RunOf(symbol), 8) |
                   Field(end ? kEndOfBlock : 0, 16) | Field(code_bits, 24) |
                   Field(SizeOf(symbol), 32));
  }
  AcEntry WithEnd(AcEntry end) const {
    return AcEntry(packed_ + Field(end.bits(), 0) + Field(kEndOfBlock, 16));
  }
  static AcEntry Two(AcEntry a, AcEntry b, int first, int second) {
    return AcEntry(Field(a.bits() + b.bits(), 0) | Field(a.first_run(), 8) |
                   Field(b.first_run(), 16) | Field(first, 40) | Field(second, 48));
  }

  int bits() const { return static_cast<int>(packed_ & 63); }  // Of all of it.
  // From the coefficient before to the first: 1 to 16; 0 if there is none.
  int first_run() const { return static_cast<int>(packed_ >> 8 & 255); }
  // From the first to the second: 1 to 16; 0 if there is none, kEndOfBlock, or kLong.
  int second_run() const { return static_cast<int>(packed_ >> 16 & 255); }
  int code_bits() const { return static_cast<int>(packed_ >> 24 & 255); }
  int size() const { return static_cast<int>(packed_ >> 32 & 255); }
  // The values, `window` being the bits that the entry was found with.
  int first(uint64_t window) const { return Value(window, packed_ >> 40); }
  int second(uint64_t window) const { return Value(window, packed_ >> 48); }

 private:
  explicit AcEntry(uint64_t packed) : packed_(packed) {}
  static uint64_t Field(int value, int shift) {
    return static_cast<uint64_t>(static_cast<uint8_t>(value)) << shift;
  }
  int Value(uint64_t window, uint64_t stored) const {
    const int is_stored = (size() - 1) >> 31;  // All ones or zero.
    return (static_cast<int8_t>(stored) & is_stored) |
           (ValueAt(window, code_bits(), size()) & ~is_stored);
  }

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
  for (int n = 1; n <= 16; ++n) {
    if (top < limit[n]) {
      return {n, codes.symbols[static_cast<int32_t>(top >> (16 - n)) + offset[n]]};
    }
  }
  return {};
}

// Sets every entry of `lookup` whose index begins with a code, and not the others.
template <typename Entry, typename MakeEntry>
void ForCodes(const HuffmanCodes& codes, std::array<Entry, kLookupSize>& lookup, MakeEntry make) {
  Entry* out = lookup.data();
  const uint8_t* symbol = codes.symbols;
  for (int n = 1; n <= kLookupBits; ++n) {
    for (int i = 0; i < codes.counts[n]; ++i) {
      out = std::fill_n(out, 1 << (kLookupBits - n), make(*symbol++, n));
    }
  }
}

}  // namespace

// The next `count` bits, at least, at the top of `window`; then those at `next`.
class HuffmanDecoder::Bits {
 public:
  explicit Bits(HuffmanDecoder& decoder)
      : window_(decoder.window_), count_(decoder.window_bits_), next_(decoder.next_) {}
  void Store(HuffmanDecoder& decoder) const {
    decoder.window_ = window_;
    decoder.window_bits_ = count_;
    decoder.next_ = next_;
  }

  uint64_t window() const { return window_; }
  size_t index() const { return window_ >> (64 - kLookupBits); }
  // There are 56 bits or more afterwards.
  void Refill() {
    window_ |= LoadBigEndian(next_) >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= 56;
  }
  void Drop(int n) {
    window_ <<= n;
    count_ -= n;
  }

 private:
  uint64_t window_;
  int count_;
  const uint8_t* next_;
};

struct HuffmanDecoder::DcTable {
  explicit DcTable(const HuffmanCodes& codes);
  // False if there is no such code. Adds the difference to `*predictor`.
  bool Take(Bits& bits, int* predictor) const;

  LongCodes long_codes;
  std::array<DcEntry, kLookupSize> lookup;
};

HuffmanDecoder::DcTable::DcTable(const HuffmanCodes& codes) : long_codes(codes), lookup{} {
  ForCodes(codes, lookup, [](uint8_t size, int code_bits) {
    return DcEntry{static_cast<uint8_t>(code_bits + size), static_cast<uint8_t>(code_bits), size};
  });
}

inline bool HuffmanDecoder::DcTable::Take(Bits& bits, int* predictor) const {
  bits.Refill();
  DcEntry entry = lookup[bits.index()];
  if (entry.bits == 0) [[unlikely]] {
    const LongCodes::Code code = long_codes.Find(bits.window());
    if (code.bits == 0) return false;
    entry = {static_cast<uint8_t>(code.bits + code.symbol), static_cast<uint8_t>(code.bits),
             static_cast<uint8_t>(code.symbol)};
  }
  *predictor += ValueAt(bits.window(), entry.code_bits, entry.size);
  bits.Drop(entry.bits);
  return *predictor == static_cast<int16_t>(*predictor);
}

struct HuffmanDecoder::AcTable {
  explicit AcTable(const HuffmanCodes& codes);
  // The coefficients after the first, to `block` if they are to be stored.
  template <bool kStore>
  bool Take(Bits& bits, int16_t* block) const;

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

HuffmanDecoder::AcTable::AcTable(const HuffmanCodes& codes) : long_codes(codes) {
  std::array<AcEntry, kLookupSize> one;
  one.fill(AcEntry::Long());
  ForCodes(codes, one, [](uint8_t symbol, int code_bits) {
    return code_bits + SizeOf(symbol) > kMaxEntryBits ? AcEntry::Long()
                                                      : AcEntry::One(symbol, code_bits);
  });
  // The symbol after the first `used` bits of index i, kLong if its code is not all there.
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
               static_cast<uint8_t>(entry.first_run() + entry.second_run())};
    if (entry.second_run() != 0) continue;
    const AcEntry second = following(i, entry.bits());
    if (second.second_run() == kEndOfBlock) {
      entry = entry.WithEnd(second);
    } else if (second.second_run() == 0 && entry.bits() + second.bits() <= kLookupBits) {
      const uint64_t window = static_cast<uint64_t>(i) << (64 - kLookupBits);
      entry =
          AcEntry::Two(entry, second, entry.first(window), second.first(window << entry.bits()));
    }
    while (skipped.run < kEndOfBlock) {
      const AcEntry next = following(i, skipped.bits);
      if (next.second_run() == kLong || skipped.bits + next.bits() > kMaxEntryBits ||
          skipped.run + next.first_run() >= kEndOfBlock) {
        break;
      }
      skipped.bits = static_cast<uint8_t>(skipped.bits + next.bits());
      skipped.run = static_cast<uint8_t>(skipped.run + next.first_run() + next.second_run());
    }
  }
}

HuffmanDecoder::AcTable::Symbol HuffmanDecoder::AcTable::Find(uint64_t window) const {
  const LongCodes::Code code = long_codes.Find(window);
  if (code.bits == 0) return {};
  if (IsEndOfBlock(code.symbol)) return {code.bits, kEndOfBlock, 0};
  const int size = SizeOf(code.symbol);
  return {code.bits + size, RunOf(code.symbol), ValueAt(window, code.bits, size)};
}

template <bool kStore>
inline bool HuffmanDecoder::AcTable::Take(Bits& bits, int16_t* block) const {
  int k = 0;  // The last coefficient so far.
  while (true) {
    bits.Refill();
    for (int i = 0; i < kEntriesPerRefill; ++i) {
      if constexpr (kStore) {
        const AcEntry entry = lookup[bits.index()];
        const int first = k + entry.first_run();
        const int second = first + entry.second_run();
        if (second < 63) [[likely]] {
          block[kNaturalOrder[first]] = static_cast<int16_t>(entry.first(bits.window()));
          block[kNaturalOrder[second]] = static_cast<int16_t>(entry.second(bits.window()));
          bits.Drop(entry.bits());
          k = second;
          continue;
        }
        if (entry.second_run() == kEndOfBlock && first < 63) {
          if (entry.first_run() != 0) {
            block[kNaturalOrder[first]] = static_cast<int16_t>(entry.first(bits.window()));
          }
          bits.Drop(entry.bits());
          return true;
        }
      } else {
        const SkipEntry entry = skip[bits.index()];
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
      // A long symbol, or the block becomes full, perhaps in the middle of the entry.
      bits.Refill();
      const Symbol symbol = Find(bits.window());
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

HuffmanDecoder::HuffmanDecoder() : buffer_(kBufferBytes + kMaxMcuBytes + kWindowBytes) {}
HuffmanDecoder::~HuffmanDecoder() = default;

namespace {

template <typename Table>
void Build(const HuffmanCodes& codes, std::unique_ptr<Table>& table) {
  if (table != nullptr && std::memcmp(&codes, &table->long_codes.codes, sizeof(codes)) == 0) return;
  table = std::make_unique<Table>(codes);
}

}  // namespace

void HuffmanDecoder::Start(const HuffmanScan& scan) {
  SYSTOLE_CHECK(scan.num_blocks >= 1 && scan.num_blocks <= HuffmanScan::kMaxBlocks);
  scan_ = scan;
  for (int i = 0; i < scan.num_blocks; ++i) {
    const HuffmanScan::Block& block = scan.blocks[i];
    Build(scan.dc_codes[block.dc_table], dc_tables_[block.dc_table]);
    Build(scan.ac_codes[block.ac_table], ac_tables_[block.ac_table]);
  }
  next_byte_ = 0;
  next_restart_ = 0;
  StartInterval();
}

void HuffmanDecoder::StartInterval() {
  at_marker_ = false;
  at_end_ = false;
  buffer_end_ = buffer_.data();
  window_ = 0;
  window_bits_ = 0;
  next_ = buffer_end_;
  std::fill(std::begin(dc_predictors_), std::end(dc_predictors_), 0);
  mcus_to_restart_ = scan_.restart_interval;
}

// Moves what is not yet read to the front and appends entropy-coded bytes without the zeros stuffed
// after 255 (T.81, B.1.1.5).
void HuffmanDecoder::Fill() {
  const size_t unread = static_cast<size_t>(buffer_end_ - next_);
  std::memmove(buffer_.data(), next_, unread);
  next_ = buffer_.data();
  uint8_t* out = buffer_.data() + unread;
  uint8_t* const full = buffer_.data() + kBufferBytes;
  const absl::string_view bytes = scan_.bytes;
  while (out < full && !at_marker_ && !at_end_) {
    const absl::string_view rest = bytes.substr(next_byte_, static_cast<size_t>(full - out));
    const size_t plain = std::min(rest.find('\xff'), rest.size());
    std::memcpy(out, rest.data(), plain);
    out += plain;
    next_byte_ += plain;
    if (next_byte_ + 1 >= bytes.size()) {
      at_end_ = true;
    } else if (plain < rest.size()) {
      at_marker_ = bytes[next_byte_ + 1] != 0;
      if (at_marker_) break;
      *out++ = 0xff;
      next_byte_ += 2;
    }
  }
  buffer_end_ = out;
  if (at_marker_ || at_end_) std::memset(out, 0, kMaxMcuBytes + kWindowBytes);
}

inline int64_t HuffmanDecoder::BitsLeft() const { return (buffer_end_ - next_) * 8 + window_bits_; }

bool HuffmanDecoder::Restart() {
  if (!at_marker_ || BitsLeft() >= 8) return false;
  if (static_cast<uint8_t>(scan_.bytes[next_byte_ + 1]) != 0xd0 + next_restart_) return false;
  next_byte_ += 2;
  next_restart_ = (next_restart_ + 1) % 8;
  StartInterval();
  return true;
}

// Afterwards the buffer holds a whole MCU, or all bytes before a marker and zeros for the rest of
// an MCU. Where the bytes end without a marker libjpeg's word depends on how far it reads ahead.
inline bool HuffmanDecoder::BeginMcu() {
  if (scan_.restart_interval != 0) {
    if (mcus_to_restart_ == 0 && !Restart()) return false;
    --mcus_to_restart_;
  }
  if (buffer_end_ - next_ >= kMaxMcuBytes || at_marker_) return true;
  if (!at_end_) Fill();
  return buffer_end_ - next_ >= kMaxMcuBytes || at_marker_;
}

template <bool kStore>
bool HuffmanDecoder::TakeMcu(int16_t (*const* blocks)[64]) {
  if (!BeginMcu()) return false;
  Bits bits(*this);
  for (int i = 0; i < scan_.num_blocks; ++i) {
    const HuffmanScan::Block& block = scan_.blocks[i];
    int& dc = dc_predictors_[block.component];
    if (!dc_tables_[block.dc_table]->Take(bits, &dc)) return false;
    const AcTable& ac_table = *ac_tables_[block.ac_table];
    if (kStore && block.wanted) {
      (*blocks[i])[0] = static_cast<int16_t>(dc);
      if (!ac_table.Take<true>(bits, *blocks[i])) return false;
    } else if (!ac_table.Take<false>(bits, nullptr)) {
      return false;
    }
  }
  bits.Store(*this);
  return BitsLeft() >= 0;
}

bool HuffmanDecoder::Decode(int16_t (*const* blocks)[64]) { return TakeMcu<true>(blocks); }
bool HuffmanDecoder::Skip() { return TakeMcu<false>(nullptr); }

std::optional<size_t> HuffmanDecoder::End() {
  if (!at_marker_ && !at_end_) Fill();
  if (!at_marker_ || BitsLeft() >= 8) return std::nullopt;
  return next_byte_;
}

}  // namespace systole
