#include "core/image/jpeg/huffman_decoder.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/numeric/simd_target.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using Block = std::array<int16_t, 64>;  // In natural order, not in zigzag.
using Mcu = std::vector<Block>;

// The natural position of the i-th coefficient, copied from T.81, figure A.6.
constexpr int kZigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                             12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                             35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                             58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
constexpr int kEnd = 0x00;
constexpr int kSixteenZeros = 0xf0;

// Writes a scan as T.81, annex F.1.2, describes it, without any optimisation.
class ScanWriter {
 public:
  // symbols[i] gets a code of lengths[i] bits. REQUIRES: the lengths ascend.
  static HuffmanCodes Codes(const std::vector<int>& lengths, const std::vector<int>& symbols) {
    HuffmanCodes codes;
    for (size_t i = 0; i < symbols.size(); ++i) {
      ++codes.counts[lengths[i]];
      codes.symbols[i] = static_cast<uint8_t>(symbols[i]);
    }
    return codes;
  }

  void Code(const HuffmanCodes& codes, int symbol) {
    int code = 0;
    int i = 0;
    for (int n = 1; n <= 16; ++n, code <<= 1) {
      for (int c = 0; c < codes.counts[n]; ++c, ++code, ++i) {
        if (codes.symbols[i] == symbol) return Bits(code, n);
      }
    }
    ADD_FAILURE() << "no code for symbol " << symbol;
  }

  void Bits(int value, int n) {
    for (int i = n - 1; i >= 0; --i) {
      byte_ = byte_ << 1 | (value >> i & 1);
      if (++bits_ == 8) Byte();
    }
  }

  void Value(int value, int size) { Bits(value < 0 ? value + (1 << size) - 1 : value, size); }

  static int SizeOf(int value) {
    int size = 0;
    for (int rest = std::abs(value); rest != 0; rest >>= 1) ++size;
    return size;
  }

  void Add(const Block& block, int* predictor, const HuffmanCodes& dc, const HuffmanCodes& ac) {
    const int difference = block[0] - *predictor;
    *predictor = block[0];
    Code(dc, SizeOf(difference));
    Value(difference, SizeOf(difference));
    int zeros = 0;
    for (int k = 1; k < 64; ++k) {
      const int value = block[kZigzag[k]];
      if (value == 0) {
        ++zeros;
        continue;
      }
      for (; zeros >= 16; zeros -= 16) Code(ac, kSixteenZeros);
      Code(ac, zeros << 4 | SizeOf(value));
      Value(value, SizeOf(value));
      zeros = 0;
    }
    if (zeros > 0) Code(ac, kEnd);
  }

  // Fills the rest of the byte with ones, then writes a marker.
  void Marker(int code) {
    while (bits_ != 0) Bits(1, 1);
    bytes_ += '\xff';
    bytes_ += static_cast<char>(code);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void Byte() {
    bytes_ += static_cast<char>(byte_);
    if ((byte_ & 255) == 255) bytes_ += '\0';
    byte_ = bits_ = 0;
  }

  int byte_ = 0;
  int bits_ = 0;
  std::string bytes_;
};

CounterRng Rng(int64_t i) { return CounterRng(/*seed=*/11, /*epoch=*/0, i, /*purpose=*/1); }

// Makes codes for all of `symbols` in random order. The first symbols get short codes and the last
// symbols get 16 bits, so that every length is used.
HuffmanCodes RandomCodes(std::vector<int> symbols, CounterRng& rng) {
  for (size_t i = symbols.size() - 1; i > 0; --i) {
    std::swap(symbols[i],
              symbols[static_cast<size_t>(rng.UniformInt(0, static_cast<int64_t>(i) + 1))]);
  }
  std::vector<int> lengths;
  int free = 1;  // The number of codes of the current length that are still free.
  size_t left = symbols.size();
  for (int n = 1; n <= 16; ++n) {
    free *= 2;
    // Leaves enough 16-bit codes for the other symbols, and never uses the code of all ones.
    int taken = 0;
    while (left > 0 && (n == 16 || taken < 1 + static_cast<int>(rng.UniformInt(0, 3))) &&
           (free - 1) * (1 << (16 - n)) > static_cast<int>(left)) {
      lengths.push_back(n);
      --free, --left, ++taken;
    }
  }
  EXPECT_EQ(left, 0u);
  return ScanWriter::Codes(lengths, symbols);
}

std::vector<int> DcSymbols() {
  std::vector<int> symbols;
  for (int size = 0; size <= 11; ++size) symbols.push_back(size);
  return symbols;
}

std::vector<int> AcSymbols() {
  std::vector<int> symbols = {kEnd, kSixteenZeros};
  for (int run = 0; run < 16; ++run) {
    for (int size = 1; size <= 10; ++size) symbols.push_back(run << 4 | size);
  }
  return symbols;
}

// Draws a block. The share of zeros and the range of the values are random.
Block RandomBlock(CounterRng& rng) {
  Block block = {};
  const int range = 1 << rng.UniformInt(0, 10);
  block[0] = static_cast<int16_t>(rng.UniformInt(-1023, 1024));
  const int64_t one_in = int64_t{1} << rng.UniformInt(0, 7);
  for (int k = 1; k < 64; ++k) {
    if (rng.UniformInt(0, one_in) == 0) {
      block[k] = static_cast<int16_t>(rng.UniformInt(-range, range + 1));
    }
  }
  return block;
}

// Writes `mcus`, each with the blocks that `scan` lists, and the marker at the end.
std::string Write(const std::vector<Mcu>& mcus, const HuffmanScan& scan) {
  ScanWriter writer;
  int predictors[4] = {};
  for (size_t m = 0; m < mcus.size(); ++m) {
    if (scan.restart_interval > 0 && m > 0 && m % static_cast<size_t>(scan.restart_interval) == 0) {
      const size_t restarts = m / static_cast<size_t>(scan.restart_interval) - 1;
      writer.Marker(0xd0 + static_cast<int>(restarts % 8));
      std::fill(std::begin(predictors), std::end(predictors), 0);
    }
    for (int b = 0; b < scan.num_blocks; ++b) {
      const HuffmanScan::Block& block = scan.blocks[b];
      writer.Add(mcus[m][static_cast<size_t>(b)], &predictors[block.component],
                 scan.dc_codes[block.dc_table], scan.ac_codes[block.ac_table]);
    }
  }
  writer.Marker(0xd9);
  return writer.bytes();
}

// Returns `scan` with this many MCUs, all of them wanted.
HuffmanScan Sized(HuffmanScan scan, int columns, int rows) {
  scan.columns = scan.end_column = columns;
  scan.rows = scan.end_row = rows;
  return scan;
}

// Takes the next MCU. In blocks that are not wanted, all values are 0. Returns nothing if the
// decoder gave up.
std::optional<Mcu> Take(HuffmanDecoder& decoder, int num_blocks) {
  const HuffmanDecoder::Block* blocks = nullptr;
  if (!decoder.Take(&blocks)) return std::nullopt;
  Mcu mcu(static_cast<size_t>(num_blocks), Block{});
  for (int b = 0; b < num_blocks && blocks != nullptr; ++b) {
    std::copy(std::begin(blocks[b]), std::end(blocks[b]), mcu[static_cast<size_t>(b)].begin());
  }
  return mcu;
}

// A scan and its content.
struct Written {
  HuffmanScan scan;  // Without `bytes`.
  std::vector<Mcu> mcus;
  std::string bytes;

  void Start(HuffmanDecoder& decoder) const {
    HuffmanScan whole = scan;
    whole.bytes = bytes;
    decoder.Start(whole);
  }

  // MCU m as the decoder must give it.
  Mcu Expected(int m) const {
    Mcu mcu = mcus[static_cast<size_t>(m)];
    const int row = m / scan.columns;
    const int column = m % scan.columns;
    const bool wanted =
        row >= scan.first_row && column >= scan.first_column && column < scan.end_column;
    for (int b = 0; b < scan.num_blocks; ++b) {
      if (!wanted || !scan.blocks[b].wanted) mcu[static_cast<size_t>(b)] = {};
    }
    return mcu;
  }

  void ExpectAllIsRead(HuffmanDecoder& decoder) const {
    for (int m = 0; m < scan.columns * scan.rows; ++m) {
      ASSERT_EQ(Take(decoder, scan.num_blocks), Expected(m)) << "MCU " << m;
    }
    EXPECT_EQ(decoder.End(), bytes.size() - 2);
  }
};

Written RandomScan(CounterRng& rng) {
  Written written;
  HuffmanScan& scan = written.scan;
  scan.num_blocks = static_cast<int>(rng.UniformInt(1, 11));
  for (int b = 0; b < scan.num_blocks; ++b) {
    scan.blocks[b] = {.component = static_cast<int>(rng.UniformInt(0, 4)),
                      .dc_table = static_cast<int>(rng.UniformInt(0, 4)),
                      .ac_table = static_cast<int>(rng.UniformInt(0, 4))};
  }
  for (int t = 0; t < HuffmanScan::kMaxTables; ++t) {
    scan.dc_codes[t] = RandomCodes(DcSymbols(), rng);
    scan.ac_codes[t] = RandomCodes(AcSymbols(), rng);
  }
  if (rng.UniformInt(0, 3) == 0) scan.restart_interval = rng.UniformInt(1, 9);
  scan =
      Sized(scan, static_cast<int>(rng.UniformInt(1, 10)), static_cast<int>(rng.UniformInt(1, 8)));
  for (int m = 0; m < scan.columns * scan.rows; ++m) {
    Mcu mcu;
    for (int b = 0; b < scan.num_blocks; ++b) mcu.push_back(RandomBlock(rng));
    written.mcus.push_back(mcu);
  }
  written.bytes = Write(written.mcus, scan);
  return written;
}

// Marks only some of the MCUs and some of the components as wanted.
void WantPart(HuffmanScan& scan, CounterRng& rng) {
  scan.first_row = static_cast<int>(rng.UniformInt(0, scan.rows));
  scan.end_row = static_cast<int>(rng.UniformInt(0, scan.rows + 2));
  scan.first_column = static_cast<int>(rng.UniformInt(0, scan.columns));
  scan.end_column = static_cast<int>(rng.UniformInt(scan.first_column, scan.columns + 1));
  for (int b = 0; b < scan.num_blocks; ++b) scan.blocks[b].wanted = scan.blocks[b].component != 1;
}

// A grey scan with codes of 2 or 3 bits. The DC code has the sizes 0 to 3. The AC code has three
// symbols of a run of zeros and a size (0/1, 0/2 and 15/1), ZRL (16 zeros), and the end of a block.
// The bits 111 are no code, neither in the DC code nor in the AC code.
HuffmanScan SmallScan(absl::string_view bytes) {
  HuffmanScan scan;
  scan.num_blocks = 1;
  scan.dc_codes[0] = ScanWriter::Codes({2, 2, 2, 3}, {0, 1, 2, 3});
  scan.ac_codes[0] = ScanWriter::Codes({2, 2, 3, 3, 3}, {kEnd, 0x01, 0x02, 0xf1, kSixteenZeros});
  scan.bytes = bytes;
  return scan;
}

// A block that the codes of SmallScan() can write.
Block Small() {
  Block block = {};
  for (int k = 0; k < 3; ++k) block[kZigzag[k]] = 1;
  return block;
}

TEST(HuffmanDecoderTest, RandomScansAreDecodedExactlyOnEverySimdTarget) {
  const std::vector<std::string> targets = SupportedSimdTargets();
  HuffmanDecoder decoder;  // One for all rounds: no round may use old tables.
  for (int round = 0; round < 60; ++round) {
    const std::string& target = targets[static_cast<size_t>(round) % targets.size()];
    SCOPED_TRACE(absl::StrCat(target, ", round ", round));
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    CounterRng rng = Rng(round);
    Written written = RandomScan(rng);
    written.Start(decoder);
    written.ExpectAllIsRead(decoder);
    WantPart(written.scan, rng);
    written.Start(decoder);
    written.ExpectAllIsRead(decoder);
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// The scans change as in a feed. A decoder that is done with its scan starts a new scan. This new
// scan is decoded together with the rest of the other decoder's scan.
TEST(HuffmanDecoderTest, ScansDecodedTogetherAreReadAsAloneOnEverySimdTarget) {
  const std::vector<std::string> targets = SupportedSimdTargets();
  HuffmanDecoder decoders[2];
  for (size_t t = 0; t < targets.size(); ++t) {
    SCOPED_TRACE(targets[t]);
    ASSERT_THAT(ForceSimdTarget(targets[t]), IsOk());
    CounterRng rng = Rng(500 + static_cast<int64_t>(t));
    Written scans[2];
    const auto start = [&](int i) {
      scans[i] = RandomScan(rng);
      if (rng.UniformInt(0, 2) == 0) WantPart(scans[i].scan, rng);
      scans[i].Start(decoders[i]);
    };
    start(0);
    start(1);
    for (int i = 0; i < 40; ++i) {
      while (!decoders[0].is_ahead() && !decoders[1].is_ahead()) {
        HuffmanDecoder::DecodeAhead(decoders[0], decoders[1]);
      }
      // Mostly reads the scan of the decoder that is ahead. Sometimes reads the other scan, whose
      // decoder then goes on alone.
      const int done = decoders[0].is_ahead() != (rng.UniformInt(0, 4) == 0) ? 0 : 1;
      scans[done].ExpectAllIsRead(decoders[done]);
      start(done);
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

TEST(HuffmanDecoderTest, AScanDecodedAheadIsReadAfterItsBytesAreOverwritten) {
  Written scans[2];
  HuffmanDecoder decoders[2];
  for (int i = 0; i < 2; ++i) {
    CounterRng rng = Rng(3000 + i);
    Written& written = scans[i];
    written.scan = Sized({.num_blocks = 1}, 20, 20);
    written.scan.dc_codes[0] = RandomCodes(DcSymbols(), rng);
    written.scan.ac_codes[0] = RandomCodes(AcSymbols(), rng);
    for (int m = 0; m < 20 * 20; ++m) written.mcus.push_back({RandomBlock(rng)});
    written.bytes = Write(written.mcus, written.scan);
    ASSERT_GT(written.bytes.size(), 10000u);  // More than fit into the decoder's buffer.
    written.Start(decoders[i]);
  }
  HuffmanDecoder::DecodeAhead(decoders[0], decoders[1]);
  const int ahead = decoders[0].is_ahead() ? 0 : 1;
  ASSERT_TRUE(decoders[ahead].is_ahead());
  scans[ahead].bytes.replace(0, scans[ahead].bytes.size(), scans[ahead].bytes.size(), '\x55');
  for (int m = 0; m < 20 * 20; ++m) {
    ASSERT_EQ(Take(decoders[ahead], 1), scans[ahead].Expected(m)) << "MCU " << m;
  }
  scans[1 - ahead].ExpectAllIsRead(decoders[1 - ahead]);
}

TEST(HuffmanDecoderTest, AScanLeavesNoStateForTheNextScanHoweverItEnds) {
  CounterRng rng = Rng(4000);
  const Written next = RandomScan(rng);
  const std::string plain(5000, '\0');  // Empty blocks.
  const std::string ends[] = {
      "",
      plain,
      plain + "\xff",
      plain + "\xff\xd0",
      plain + "\x3f\xff\xd9",  // Ends inside a block, with an invalid code.
  };
  for (const std::string& bytes : ends) {
    for (const int64_t restart_interval : {0, 7}) {
      for (const int taken : {0, 1, 5, 1000000}) {
        SCOPED_TRACE(absl::StrCat(bytes.size(), " bytes, ", restart_interval, ", ", taken));
        HuffmanDecoder decoder, beside;
        HuffmanScan scan = Sized(SmallScan(bytes), 300, 300);
        scan.restart_interval = restart_interval;
        decoder.Start(scan);
        next.Start(beside);
        HuffmanDecoder::DecodeAhead(decoder, beside);  // Until one of them is ahead.
        for (int m = 0; m < taken && Take(decoder, 1).has_value(); ++m) {
        }
        next.Start(decoder);
        next.ExpectAllIsRead(decoder);
      }
    }
  }
}

// A decoder is ahead as soon as its memory is full. The rest is then decoded row by row.
TEST(HuffmanDecoderTest, ScansLargerThanTheDecodeAheadMemoryAreRead) {
  Written scans[2];
  HuffmanDecoder decoders[2];
  for (int i = 0; i < 2; ++i) {
    scans[i].scan = Sized(SmallScan(""), 200 + i, 100);
    CounterRng rng = Rng(i);
    for (int m = 0; m < (200 + i) * 100; ++m) {
      Block block = Small();
      block[0] = static_cast<int16_t>(rng.UniformInt(-3, 4));
      scans[i].mcus.push_back({block});
    }
    scans[i].bytes = Write(scans[i].mcus, scans[i].scan);
    scans[i].Start(decoders[i]);
  }
  HuffmanDecoder::DecodeAhead(decoders[0], decoders[1]);
  EXPECT_TRUE(decoders[0].is_ahead() || decoders[1].is_ahead());
  for (int i = 0; i < 2; ++i) scans[i].ExpectAllIsRead(decoders[i]);
}

// mallinfo2 does not see AddressSanitizer's memory. But under AddressSanitizer, an allocation of
// the claimed size would end the test.
TEST(HuffmanDecoderTest, MemoryDoesNotGrowWithTheClaimedSize) {
  const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  HuffmanDecoder decoder;
  HuffmanScan scan = Sized(SmallScan("\xff\xd9"), 1 << 20, 1 << 20);
  scan.num_blocks = HuffmanScan::kMaxBlocks;
  const size_t before = used();
  decoder.Start(scan);
  EXPECT_LT(used(), before + (3 << 20));
  EXPECT_EQ(Take(decoder, scan.num_blocks), std::nullopt);
}

// With codes of one bit, one lookup may yield a run of zeros and a value of eight bits.
TEST(HuffmanDecoderTest, LargeValuesAfterShortCodesAreRead) {
  for (const int value : {128, 255, -128, -129, -255}) {
    Written written;
    written.scan = Sized({.num_blocks = 1}, 1, 1);
    written.scan.dc_codes[0] = ScanWriter::Codes({1}, {0});
    written.scan.ac_codes[0] = ScanWriter::Codes({1, 1}, {kSixteenZeros, 0x08});
    Block block = {};
    for (int k = 49; k < 64; ++k) block[kZigzag[k]] = static_cast<int16_t>(value);
    written.mcus = {{block}};
    written.bytes = Write(written.mcus, written.scan);
    HuffmanDecoder decoder;
    written.Start(decoder);
    written.ExpectAllIsRead(decoder);
  }
}

TEST(HuffmanDecoderTest, ABlockMayBeFullInTheMiddleOfALookup) {
  // Together, the last coefficient and the next block's first symbols take only a few bits.
  for (int first = 1; first < 64; ++first) {
    Block full = {};
    for (int k = first; k < 64; ++k) full[kZigzag[k]] = 1;
    Block last = {};
    last[63] = -1;
    Written written;
    written.scan = Sized(SmallScan(""), 2, 2);
    CounterRng rng = Rng(first);
    written.scan.ac_codes[0] = RandomCodes(AcSymbols(), rng);
    written.mcus = {{full}, {full}, {last}, {full}};
    written.bytes = Write(written.mcus, written.scan);
    for (const bool wanted : {true, false}) {
      SCOPED_TRACE(absl::StrCat(wanted ? "stored" : "skipped", " from ", first));
      written.scan.blocks[0].wanted = wanted;
      HuffmanDecoder decoder;
      written.Start(decoder);
      written.ExpectAllIsRead(decoder);
    }
  }
}

// Returns how many of the first `most` MCUs of `scan` can be read. Checks that the number is the
// same in four ways of reading: the MCUs are stored or skipped, and the decoder works alone or
// beside another decoder.
int McusOf(HuffmanScan scan, int most) {
  scan = Sized(scan, 1, most);
  const std::string other_bytes = Write(std::vector<Mcu>(50, {Small()}), SmallScan(""));
  HuffmanScan other = Sized(SmallScan(other_bytes), 10, 5);
  int first = -1;
  std::optional<size_t> first_end;
  for (int way = 0; way < 4; ++way) {
    scan.first_row = way % 2 == 0 ? 0 : most;
    HuffmanDecoder decoder, beside;
    decoder.Start(scan);
    beside.Start(other);
    if (way >= 2)
      HuffmanDecoder::DecodeAhead(way == 2 ? decoder : beside, way == 2 ? beside : decoder);
    int mcus = 0;
    while (mcus < most && Take(decoder, scan.num_blocks).has_value()) ++mcus;
    const std::optional<size_t> end = mcus == most ? decoder.End() : std::nullopt;
    if (way == 0) {
      first = mcus;
      first_end = end;
    }
    EXPECT_EQ(mcus, first) << "way " << way;
    EXPECT_EQ(end, first_end) << "way " << way;
    for (int m = 0; m < 50; ++m) EXPECT_EQ(Take(beside, 1), Mcu{Small()});
  }
  return first;
}

// The bits after a skipped full block may look like the code of a block's end.
TEST(HuffmanDecoderTest, SkippingAFullBlockDoesNotConsumeTheNextBlocksCode) {
  HuffmanScan scan = SmallScan("");  // 00 is both the end of a block and a difference of 0.
  Block full = {};
  for (int k = 1; k < 64; ++k) full[kZigzag[k]] = 1;
  const std::string bytes = Write({{full}, {full}}, scan);
  scan.bytes = bytes;
  EXPECT_EQ(McusOf(scan, 2), 2);
}

// Lookup entries with as many bits as possible follow each other and use up all bits of a refill.
TEST(HuffmanDecoderTest, LargeValuesInARowAreReadAndSkipped) {
  HuffmanScan scan;
  scan.num_blocks = 1;
  scan.dc_codes[0] = ScanWriter::Codes({1}, {0});
  scan.ac_codes[0] = ScanWriter::Codes({1, 2, 3}, {0x07, 0x0d, kEnd});
  Block block = {};
  for (int k = 1; k < 63; ++k) block[kZigzag[k]] = static_cast<int16_t>(k % 2 == 1 ? -100 : 5001);
  const std::string bytes = Write({{block}, {block}}, scan);
  scan.bytes = bytes;
  EXPECT_EQ(McusOf(scan, 2), 2);
}

// Codes that take up to 31 bits with their values, before and after lookup entries with as many
// bits as possible.
TEST(HuffmanDecoderTest, LongCodesOfTheLargestValuesAreReadAndSkipped) {
  Written written;
  written.scan = Sized({.num_blocks = 1}, 10, 10);
  written.scan.dc_codes[0] = ScanWriter::Codes({15, 16}, {0, 15});
  written.scan.ac_codes[0] = ScanWriter::Codes({2, 3, 16}, {0x0d, kEnd, 0x0f});
  CounterRng rng = Rng(2000);
  for (int m = 0; m < 100; ++m) {
    Block block = {};
    block[0] = m % 2 == 0 ? -16385 : 16382;  // Differences of 15 bits.
    for (int k = 1; k < 60; ++k) block[kZigzag[k]] = rng.UniformInt(0, 2) == 0 ? 5001 : -32767;
    written.mcus.push_back({block});
  }
  written.bytes = Write(written.mcus, written.scan);
  for (const bool wanted : {true, false}) {
    SCOPED_TRACE(wanted ? "stored" : "skipped");
    written.scan.blocks[0].wanted = wanted;
    HuffmanDecoder decoder;
    written.Start(decoder);
    written.ExpectAllIsRead(decoder);
  }
}

// T.81 has one code for the end of a block. libjpeg takes every symbol without a value as the end,
// except the symbol for 16 zeros.
TEST(HuffmanDecoderTest, AnySymbolWithoutAValueEndsABlock) {
  for (const int length : {3, 13}) {  // Only the short code fits into a lookup.
    for (int end = 0x00; end < kSixteenZeros; end += 0x10) {
      SCOPED_TRACE(absl::StrCat("symbol ", end, " of ", length, " bits"));
      Written written;
      written.scan = Sized({.num_blocks = 1}, 2, 2);
      written.scan.dc_codes[0] = ScanWriter::Codes({2, 2}, {0, 1});
      written.scan.ac_codes[0] = ScanWriter::Codes({2, length}, {0x01, end});
      written.mcus.assign(4, {Small()});
      ScanWriter writer;
      for (int m = 0; m < 4; ++m) {
        writer.Code(written.scan.dc_codes[0], m == 0 ? 1 : 0);
        if (m == 0) writer.Value(1, 1);
        for (int k = 1; k < 3; ++k) {
          writer.Code(written.scan.ac_codes[0], 0x01);
          writer.Value(1, 1);
        }
        writer.Code(written.scan.ac_codes[0], end);
      }
      writer.Marker(0xd9);
      written.bytes = writer.bytes();
      for (const bool wanted : {true, false}) {
        written.scan.blocks[0].wanted = wanted;
        HuffmanDecoder decoder;
        written.Start(decoder);
        written.ExpectAllIsRead(decoder);
      }
    }
  }
}

TEST(HuffmanDecoderTest, AnInvalidCodeStopsDecoding) {
  EXPECT_EQ(McusOf(SmallScan("\x0f\xff\xd9"), 1), 1);  // 00 00: no difference, end of block.
  // 00 111: no AC code.
  EXPECT_EQ(McusOf(SmallScan(std::string("\x3f\xff\x00\xff\xd9", 5)), 1), 0);
  EXPECT_EQ(McusOf(SmallScan(std::string("\xf0\x00\x00\xff\xd9", 5)), 1), 0);  // 111: no DC code.
}

TEST(HuffmanDecoderTest, ARunOfZerosBeyondTheBlockStopsDecoding) {
  ScanWriter writer;
  const HuffmanScan codes = SmallScan("");
  writer.Code(codes.dc_codes[0], 0);
  for (int i = 0; i < 4; ++i) writer.Code(codes.ac_codes[0], kSixteenZeros);
  writer.Code(codes.ac_codes[0], kEnd);
  writer.Marker(0xd9);
  EXPECT_EQ(McusOf(SmallScan(writer.bytes()), 1), 0);
}

// Ten codes of a bit each, for 160 zeros, would fit into one lookup.
TEST(HuffmanDecoderTest, ARunOfZerosFarBeyondTheBlockStopsDecoding) {
  HuffmanScan scan = SmallScan("");
  scan.ac_codes[0] = ScanWriter::Codes({1, 2}, {kSixteenZeros, kEnd});
  ScanWriter writer;
  writer.Code(scan.dc_codes[0], 0);
  for (int i = 0; i < 40; ++i) writer.Code(scan.ac_codes[0], kSixteenZeros);
  writer.Code(scan.ac_codes[0], kEnd);
  writer.Marker(0xd9);
  scan.bytes = writer.bytes();
  EXPECT_EQ(McusOf(scan, 1), 0);
}

TEST(HuffmanDecoderTest, AMarkerBeforeTheLastMcuStopsDecoding) {
  for (const int marker : {0xd9, 0xd0, 0xc4}) {
    const HuffmanScan codes = SmallScan("");
    ScanWriter writer;
    int predictor = 0;
    const Block block = Small();
    for (int i = 0; i < 3; ++i) writer.Add(block, &predictor, codes.dc_codes[0], codes.ac_codes[0]);
    writer.Marker(marker);
    std::string bytes = writer.bytes();
    bytes.append(5000, '\0');  // A decoder that read past the marker would find blocks here.
    // The last byte before the marker is filled up with ones, which are no code.
    EXPECT_EQ(McusOf(SmallScan(bytes), 4), 3) << marker;
  }
}

TEST(HuffmanDecoderTest, AWrongOrMissingRestartMarkerStopsDecoding) {
  HuffmanScan scan = SmallScan("");
  scan.restart_interval = 2;
  const std::vector<Mcu> mcus(20, Mcu{Small()});
  const std::string whole = Write(mcus, scan);
  scan.bytes = whole;
  EXPECT_EQ(McusOf(scan, 20), 20);
  std::string wrong = whole;
  wrong[wrong.find("\xff\xd3") + 1] = '\xd4';
  scan.bytes = wrong;
  EXPECT_EQ(McusOf(scan, 20), 8);
  std::string longer = whole;
  longer.insert(longer.find("\xff\xd3"), 1, '\0');
  scan.bytes = longer;
  EXPECT_EQ(McusOf(scan, 20), 8);
  std::string filled = whole;
  filled.insert(filled.find("\xff\xd3"), 5, '\xff');
  scan.bytes = filled;  // Fill bytes before a marker are allowed.
  EXPECT_EQ(McusOf(scan, 20), 20);
  scan.bytes = whole;
  scan.restart_interval = 3;
  EXPECT_LT(McusOf(scan, 20), 4);
}

TEST(HuffmanDecoderTest, NoEndIsFoundIfExtraDataFollowTheLastMcu) {
  // Returns what End() says after the only MCU. Expects the same from a decoder that works alone
  // and from one that decodes ahead as far as possible. Decoding ahead ends after the last MCU,
  // whatever `end_row` says.
  const auto end = [](const std::string& bytes) {
    HuffmanScan scan = Sized(SmallScan(bytes), 1, 1);
    scan.end_row = 3;
    HuffmanDecoder alone, ahead, beside;
    alone.Start(scan);
    EXPECT_TRUE(Take(alone, 1).has_value());
    const std::optional<size_t> end = alone.End();
    const std::string other = Write(std::vector<Mcu>(50, {Small()}), SmallScan(""));
    beside.Start(Sized(SmallScan(other), 10, 5));
    ahead.Start(scan);
    HuffmanDecoder::DecodeAhead(ahead, beside);
    EXPECT_TRUE(ahead.is_ahead());
    EXPECT_TRUE(Take(ahead, 1).has_value());
    EXPECT_EQ(ahead.End(), end);
    return end;
  };
  EXPECT_EQ(end(std::string("\x0f\xff\xd9", 3)), 1u);
  EXPECT_EQ(end(std::string("\x0f\xff\xff\xff\xd9", 5)), 3u);        // Fill before the marker.
  EXPECT_EQ(end(std::string("\x0f\x00\xff\xd9", 4)), std::nullopt);  // A byte too many.
  EXPECT_EQ(end(std::string("\x00\x0f\xff\xd9", 4)), std::nullopt);  // Two blocks too many.
  EXPECT_EQ(end(absl::StrCat(std::string(9000, '\0'), "\xff\xd9")), std::nullopt);  // Far too many.
}

TEST(HuffmanDecoderTest, AMissingMarkerAfterTheDataStopsDecoding) {
  EXPECT_EQ(McusOf(SmallScan(""), 1), 0);
  EXPECT_EQ(McusOf(SmallScan(std::string("\x0f", 1)), 1), 0);
  for (const size_t fill : {1, 2, 3, 9000}) {
    std::string bytes(1 + fill, '\xff');
    bytes[0] = '\x0f';
    EXPECT_EQ(McusOf(SmallScan(bytes), 1), 0) << fill;
  }
  EXPECT_EQ(McusOf(SmallScan(std::string("\x0f\xff\xff\x00\xff\xd9", 6)), 1), 0);
}

TEST(HuffmanDecoderTest, AnOutOfRangeDcValueStopsDecoding) {
  HuffmanScan scan = SmallScan("");
  scan.dc_codes[0] = ScanWriter::Codes({1}, {15});
  ScanWriter writer;
  for (int i = 0; i < 2; ++i) {
    writer.Code(scan.dc_codes[0], 15);
    writer.Value(30000, 15);
    writer.Code(scan.ac_codes[0], kEnd);
  }
  writer.Marker(0xd9);
  scan.bytes = writer.bytes();
  EXPECT_EQ(McusOf(scan, 2), 1);
}

TEST(HuffmanDecoderTest, AllWaysOfReadingRandomBytesAgree) {
  int all = 0;
  int some = 0;
  for (int round = 0; round < 400; ++round) {
    CounterRng rng = Rng(1000 + round);
    HuffmanScan scan = SmallScan("");
    scan.num_blocks = static_cast<int>(rng.UniformInt(1, 11));
    scan.dc_codes[0] = RandomCodes(DcSymbols(), rng);
    std::vector<int> symbols = AcSymbols();
    // Most random bytes end with a run of zeros beyond their first block. Without runs, more blocks
    // are read.
    if (round % 3 != 0) std::erase_if(symbols, [](int symbol) { return symbol >= 0x10; });
    scan.ac_codes[0] = RandomCodes(symbols, rng);
    scan.restart_interval = rng.UniformInt(0, 3);
    std::string bytes(static_cast<size_t>(rng.UniformInt(0, 20000)), '\0');
    const uint32_t mask = round % 4 == 0 ? 0xffffffff : 0x7f7f7f7f;  // With and without markers.
    for (char& byte : bytes) byte = static_cast<char>(rng.NextU32() & mask);
    scan.bytes = bytes;
    const int mcus = McusOf(scan, 300);  // Checks that the ways agree.
    all += mcus == 300 ? 1 : 0;
    some += mcus > 0 && mcus < 300 ? 1 : 0;
  }
  EXPECT_GT(all, 0);
  EXPECT_GT(some, 150);
}

}  // namespace
}  // namespace systole
