// The inner part of HuffmanDecoder: its position in a scan, and the loops over symbols, which are
// compiled once for each SIMD target. Only HuffmanDecoder uses this file.
//
// Single-thread.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_LOOPS_H_
#define SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_LOOPS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/image/jpeg/huffman_scan.h"
#include "core/image/jpeg/huffman_tables.h"
#include "core/memory/aligned_vector.h"

namespace systole::huffman {

// An MCU (JPEG's unit of coded blocks) has at most 10 blocks of 64 coefficients. A coefficient has
// a code of at most 16 bits and a value of at most 15 bits. One spare bit for each coefficient
// leaves room for what BitReader reads beyond an MCU's end.
inline constexpr int64_t kMaxMcuBytes = int64_t{HuffmanScan::kMaxBlocks} * 64 * (16 + 16) / 8;
inline constexpr int64_t kWindowBytes = sizeof(uint64_t);
static_assert(kMaxMcuBytes >= HuffmanScan::kMaxBlocks * 64 * (16 + 15) / 8 + 2 * kWindowBytes);
// A buffer of this size stays in the first-level cache beside the tables.
inline constexpr int64_t kBufferBytes = 8192;

inline constexpr size_t kBlockValues = 64;

// The position of an MCU, in a scan's order.
struct Position {
  int row = 0;
  int column = 0;

  void Advance(int columns) {
    if (++column < columns) return;
    column = 0;
    ++row;
  }
  bool operator==(const Position& other) const {
    return row == other.row && column == other.column;
  }
};

// What a loop does with the blocks of an MCU. Each mode has a loop of its own. Changing the loop
// costs as much as several symbols.
enum class Mode : uint8_t {
  kSkip,   // Only counts the bits of the blocks.
  kStore,  // Stores the blocks.
  kMixed,  // Decides for each block: only the first coefficient of some blocks is wanted.
};

// The position inside a block. The loops keep it in registers.
struct Cursor {
  BitReader bits;
  bool stores = false;  // In kMixed: whether the block is stored.
  size_t k = 0;         // The index of the last coefficient so far.
  int16_t* block = nullptr;
  const AcTable* table = nullptr;
};

struct ScanState {
  // Goes on to the next MCU. Returns false, and clears `active`, if the decoding of that MCU must
  // not begin.
  bool NextMcu();
  void StartInterval();
  bool Restart();
  void Fill();
  void GiveUp() {
    failed = true;
    active = false;
  }
  int64_t BitsLeft() const { return (buffer_end - cursor.bits.next) * 8 + cursor.bits.count; }
  bool IsWanted(const Position& mcu) const {
    return mcu.row >= scan.first_row && mcu.column >= scan.first_column &&
           mcu.column < scan.end_column;
  }
  size_t mcu_values() const { return scan.num_blocks * kBlockValues; }

  // The mode for a block of the MCU at `decoded`.
  Mode ModeOf(const HuffmanScan::Block& block) const {
    if (!wanted) return Mode::kSkip;
    if (has_dc_only) return Mode::kMixed;
    return block.wanted ? Mode::kStore : Mode::kSkip;
  }

  HuffmanScan scan;
  bool has_dc_only = false;  // A block of the scan is marked dc_only.
  // Neighbouring blocks of an MCU that must be set to zeros before coefficients are stored in them.
  // Blocks marked dc_only are not among these. The first coefficient of such a block is written,
  // and its other coefficients are never read.
  struct ZeroedBlocks {
    size_t first = 0;
    size_t count = 0;
  };
  std::array<ZeroedBlocks, HuffmanScan::kMaxBlocks> zeroed;
  size_t num_zeroed = 0;
  std::array<std::unique_ptr<DcTable>, HuffmanScan::kMaxTables> dc_tables;
  std::array<std::unique_ptr<AcTable>, HuffmanScan::kMaxTables> ac_tables;
  size_t next_byte = 0;    // The index in scan.bytes of the first byte not yet buffered.
  bool at_marker = false;  // There is a marker at next_byte.
  bool at_end = false;     // The bytes end, or this decoder gives up, at next_byte.
  // Entropy-coded bytes without stuffing, followed by zeros.
  std::vector<uint8_t> buffer = std::vector<uint8_t>(kBufferBytes + kMaxMcuBytes + kWindowBytes);
  const uint8_t* buffer_end = nullptr;  // End of the bytes in `buffer`.
  int dc_predictors[4] = {};
  int64_t mcus_to_restart = 0;
  int next_restart = 0;

  bool active = false;      // Decoding can go on: before end_row, with memory left, not failed.
  bool failed = false;      // The decoder gave up in the MCU at `decoded`.
  Position decoded;         // The MCU that is being decoded, or the next one.
  Position taken;           // The next MCU to be taken.
  int end_row = 0;          // The row of MCUs where decoding stops.
  bool in_mcu = false;      // Decoding is inside the MCU at `decoded`.
  bool wanted = false;      // The MCU at `decoded` is wanted.
  int next_block = 0;       // The first block of the MCU at `decoded` that has not begun.
  bool in_block = false;    // Decoding is inside the block before next_block.
  Mode mode = Mode::kSkip;  // The mode of the block being decoded, or of the next one.
  Cursor cursor;

  // Coefficients of wanted MCUs that were not taken yet, with zeros where nothing was stored.
  AlignedVector<int16_t> values;
  size_t values_begin = 0;
  size_t values_end = 0;
  size_t max_values = 0;  // The largest values_end allowed.
};

// Decodes until the scan is no longer active.
void DecodeAlone(ScanState& state);
// Decodes both scans until one of them is no longer active.
void DecodeTogether(ScanState& a, ScanState& b);

// Copies the bytes before the first byte of 255, or all bytes if there is none. Returns the number
// of bytes copied. May write anything to the rest of `to`, which has room for `size` bytes.
size_t CopyPlain(const uint8_t* from, size_t size, uint8_t* to);

}  // namespace systole::huffman

#endif  // SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_LOOPS_H_
