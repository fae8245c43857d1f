#include "core/image/huffman_decoder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "core/numeric/simd_target.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using Block = std::array<int16_t, 64>;  // Natural order.
using Mcu = std::vector<Block>;

// Natural position of the i-th coefficient, copied from T.81, figure A.6.
constexpr int kZigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                             12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                             35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                             58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
constexpr int kEnd = 0x00;
constexpr int kSixteenZeros = 0xf0;

// Writes a scan as T.81, annex F.1.2, describes it, the plain way.
class ScanWriter {
 public:
  // Codes of `lengths[i]` bits, ascending, for symbols[i].
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

  // The rest of the byte with ones, then a marker.
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

// Codes for all of `symbols` in random order: short ones for the first, 16 bits for the last, so
// that every length there is gets used.
HuffmanCodes RandomCodes(std::vector<int> symbols, CounterRng& rng) {
  for (size_t i = symbols.size() - 1; i > 0; --i) {
    std::swap(symbols[i],
              symbols[static_cast<size_t>(rng.UniformInt(0, static_cast<int64_t>(i) + 1))]);
  }
  std::vector<int> lengths;
  int free = 1;  // Codes left of the length.
  size_t left = symbols.size();
  for (int n = 1; n <= 16; ++n) {
    free *= 2;
    // As many as leave room for the rest at 16 bits, and the code of all ones to nobody.
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

// From empty blocks to full ones, from small values to the greatest.
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

// `mcus`, each of the blocks that `scan` lists, and the marker at the end.
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

// Nothing if the decoder gave up.
std::optional<Mcu> Decode(HuffmanDecoder& decoder, int num_blocks) {
  Mcu mcu(static_cast<size_t>(num_blocks), Block{});
  std::vector<int16_t(*)[64]> pointers;
  for (Block& block : mcu) pointers.push_back(reinterpret_cast<int16_t(*)[64]>(block.data()));
  if (!decoder.Decode(pointers.data())) return std::nullopt;
  return mcu;
}

// A grey scan: DC sizes 0 to 3, AC 0/1, 0/2, 15/1, ZRL and the end, of 2 or 3 bits; 111 is no code.
HuffmanScan SmallScan(const std::string& bytes) {
  HuffmanScan scan;
  scan.num_blocks = 1;
  scan.dc_codes[0] = ScanWriter::Codes({2, 2, 2, 3}, {0, 1, 2, 3});
  scan.ac_codes[0] = ScanWriter::Codes({2, 2, 3, 3, 3}, {kEnd, 0x01, 0x02, 0xf1, kSixteenZeros});
  scan.bytes = bytes;
  return scan;
}

// A block that the codes of SmallScan() have symbols for.
Block Small() {
  Block block = {};
  for (int k = 0; k < 3; ++k) block[kZigzag[k]] = 1;
  return block;
}

TEST(HuffmanDecoderTest, WhatIsWrittenIsReadOnEverySimdTarget) {
  const std::vector<std::string> targets = SupportedSimdTargets();
  HuffmanDecoder decoder;  // One for all: tables must not outlive their codes.
  for (int round = 0; round < 60; ++round) {
    const std::string& target = targets[static_cast<size_t>(round) % targets.size()];
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    CounterRng rng = Rng(round);
    HuffmanScan scan;
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
    if (round % 3 == 0) scan.restart_interval = rng.UniformInt(1, 9);
    std::vector<Mcu> mcus(static_cast<size_t>(rng.UniformInt(1, 60)));
    for (Mcu& mcu : mcus) {
      for (int b = 0; b < scan.num_blocks; ++b) mcu.push_back(RandomBlock(rng));
    }
    const std::string bytes = Write(mcus, scan);
    scan.bytes = bytes;
    decoder.Start(scan);
    for (size_t m = 0; m < mcus.size(); ++m) {
      ASSERT_EQ(Decode(decoder, scan.num_blocks), mcus[m]) << "round " << round << ", MCU " << m;
    }
    EXPECT_EQ(decoder.End(), bytes.size() - 2);

    // The same with some skipped and a component that nobody wants.
    for (HuffmanScan::Block& block : scan.blocks) block.wanted = block.component != 1;
    decoder.Start(scan);
    for (size_t m = 0; m < mcus.size(); ++m) {
      if (rng.UniformInt(0, 2) == 0) {
        ASSERT_TRUE(decoder.Skip()) << "round " << round << ", MCU " << m;
        continue;
      }
      Mcu expected = mcus[m];
      for (int b = 0; b < scan.num_blocks; ++b) {
        if (!scan.blocks[b].wanted) expected[static_cast<size_t>(b)] = {};
      }
      ASSERT_EQ(Decode(decoder, scan.num_blocks), expected) << "round " << round << ", MCU " << m;
    }
    EXPECT_EQ(decoder.End(), bytes.size() - 2);
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// With codes of one bit a lookup may hold a run of zeros and a value of eight bits.
TEST(HuffmanDecoderTest, LargeValuesAfterShortCodesAreRead) {
  HuffmanScan scan;
  scan.num_blocks = 1;
  scan.dc_codes[0] = ScanWriter::Codes({1}, {0});
  scan.ac_codes[0] = ScanWriter::Codes({1, 1}, {kSixteenZeros, 0x08});
  for (const int value : {128, 255, -128, -129, -255}) {
    Block block = {};
    for (int k = 49; k < 64; ++k) block[kZigzag[k]] = static_cast<int16_t>(value);
    const std::string bytes = Write({{block}}, scan);
    scan.bytes = bytes;
    HuffmanDecoder decoder;
    decoder.Start(scan);
    EXPECT_EQ(Decode(decoder, 1), Mcu{block}) << value;
  }
}

TEST(HuffmanDecoderTest, ABlockMayBeFullInTheMiddleOfALookup) {
  // The last coefficient and the next block's first symbols lie within a few bits.
  for (int first = 1; first < 64; ++first) {
    Block full = {};
    for (int k = first; k < 64; ++k) full[kZigzag[k]] = 1;
    Block last = {};
    last[63] = -1;
    HuffmanScan scan = SmallScan("");
    CounterRng rng = Rng(first);
    scan.ac_codes[0] = RandomCodes(AcSymbols(), rng);
    const std::vector<Mcu> mcus = {{full}, {full}, {last}, {full}};
    const std::string bytes = Write(mcus, scan);
    scan.bytes = bytes;
    HuffmanDecoder decoder;
    decoder.Start(scan);
    for (const Mcu& mcu : mcus) ASSERT_EQ(Decode(decoder, 1), mcu) << first;
    EXPECT_TRUE(decoder.End().has_value());
    decoder.Start(scan);
    for (size_t m = 0; m < mcus.size(); ++m) ASSERT_TRUE(decoder.Skip()) << first;
    EXPECT_TRUE(decoder.End().has_value());
  }
}

// Both ways of reading one MCU of `bytes` after another say the same; how many they get.
int McusOf(const HuffmanScan& scan, int most) {
  HuffmanDecoder decoder, skipper;
  decoder.Start(scan);
  skipper.Start(scan);
  for (int m = 0; m < most; ++m) {
    const bool decoded = Decode(decoder, scan.num_blocks).has_value();
    EXPECT_EQ(skipper.Skip(), decoded);
    if (!decoded) return m;
  }
  EXPECT_EQ(decoder.End(), skipper.End());
  return most;
}

// A skipped block that is full may be followed by bits that would be its end.
TEST(HuffmanDecoderTest, ASkippedFullBlockLeavesTheNextBlocksCode) {
  HuffmanScan scan = SmallScan("");  // 00 is the end of a block and no difference.
  Block full = {};
  for (int k = 1; k < 64; ++k) full[kZigzag[k]] = 1;
  const std::string bytes = Write({{full}, {full}}, scan);
  scan.bytes = bytes;
  EXPECT_EQ(McusOf(scan, 2), 2);
}

// Entries of as many bits as they may have, one behind another, use up what a refill brings.
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

TEST(HuffmanDecoderTest, AnInvalidCodeIsGivenUp) {
  EXPECT_EQ(McusOf(SmallScan("\x0f\xff\xd9"), 1), 1);  // 00 00: no difference, the end.
  EXPECT_EQ(McusOf(SmallScan(std::string("\x3f\xff\x00\xff\xd9", 5)), 1), 0);  // 00 111: AC.
  EXPECT_EQ(McusOf(SmallScan(std::string("\xf0\x00\x00\xff\xd9", 5)), 1), 0);  // 111: DC.
}

TEST(HuffmanDecoderTest, ARunBeyondTheBlockIsGivenUp) {
  ScanWriter writer;
  const HuffmanScan codes = SmallScan("");
  writer.Code(codes.dc_codes[0], 0);
  for (int i = 0; i < 4; ++i) writer.Code(codes.ac_codes[0], kSixteenZeros);
  writer.Code(codes.ac_codes[0], kEnd);
  writer.Marker(0xd9);
  EXPECT_EQ(McusOf(SmallScan(writer.bytes()), 1), 0);
}

TEST(HuffmanDecoderTest, AMarkerBeforeTheLastMcuIsGivenUp) {
  for (const int marker : {0xd9, 0xd0, 0xc4}) {
    const HuffmanScan codes = SmallScan("");
    ScanWriter writer;
    int predictor = 0;
    const Block block = Small();
    for (int i = 0; i < 3; ++i) writer.Add(block, &predictor, codes.dc_codes[0], codes.ac_codes[0]);
    writer.Marker(marker);
    std::string bytes = writer.bytes();
    bytes.append(5000, '\0');  // As good as blocks, if one read on.
    // The ones that fill the last byte are no code.
    EXPECT_EQ(McusOf(SmallScan(bytes), 4), 3) << marker;
  }
}

TEST(HuffmanDecoderTest, AWrongOrMissingRestartIsGivenUp) {
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
  scan.bytes = whole;
  scan.restart_interval = 3;
  EXPECT_LT(McusOf(scan, 20), 4);
}

TEST(HuffmanDecoderTest, AnEndThatDoesNotFollowTheLastMcuIsNone) {
  const auto end = [](const std::string& bytes) {
    HuffmanDecoder decoder;
    decoder.Start(SmallScan(bytes));
    EXPECT_TRUE(decoder.Skip());
    return decoder.End();
  };
  EXPECT_EQ(end(std::string("\x0f\xff\xd9", 3)), 1u);
  EXPECT_EQ(end(std::string("\x0f\x00\xff\xd9", 4)), std::nullopt);    // A byte too many.
  EXPECT_EQ(end(std::string(9000, '\0') + "\xff\xd9"), std::nullopt);  // A buffer too many.
}

TEST(HuffmanDecoderTest, BytesWithoutAMarkerAreGivenUp) {
  EXPECT_EQ(McusOf(SmallScan(""), 1), 0);
  EXPECT_EQ(McusOf(SmallScan(std::string("\x0f", 1)), 1), 0);
  EXPECT_EQ(McusOf(SmallScan(std::string("\x0f\xff", 2)), 1), 0);
}

TEST(HuffmanDecoderTest, ADcThatNoSampleHasIsGivenUp) {
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

TEST(HuffmanDecoderTest, AnyBytesAreReadWithinBounds) {
  for (int round = 0; round < 400; ++round) {
    CounterRng rng = Rng(1000 + round);
    HuffmanScan scan = SmallScan("");
    scan.num_blocks = static_cast<int>(rng.UniformInt(1, 11));
    scan.dc_codes[0] = RandomCodes(DcSymbols(), rng);
    scan.ac_codes[0] = RandomCodes(AcSymbols(), rng);
    scan.restart_interval = rng.UniformInt(0, 3);
    std::string bytes(static_cast<size_t>(rng.UniformInt(0, 20000)), '\0');
    const uint32_t mask = round % 4 == 0 ? 0xffffffff : 0x7f7f7f7f;  // With and without markers.
    for (char& byte : bytes) byte = static_cast<char>(rng.NextU32() & mask);
    scan.bytes = bytes;
    EXPECT_LE(McusOf(scan, 300), 300);
  }
}

}  // namespace
}  // namespace systole
