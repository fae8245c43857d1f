// The input of HuffmanDecoder: the only scan of a JPEG, as the file's headers describe it.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_SCAN_H_
#define SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_SCAN_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace systole {

// A DHT segment's content: counts[n] codes of n bits, n = 1 to 16, and the symbols in the order of
// their codes.
struct HuffmanCodes {
  uint8_t counts[17] = {};
  uint8_t symbols[256] = {};
};

struct HuffmanScan {
  static constexpr int kMaxBlocks = 10;  // The most blocks of an MCU (T.81, B.2.3).
  static constexpr int kMaxTables = 4;
  struct Block {
    int component = 0;  // 0 to 3.
    int dc_table = 0;   // 0 to 3.
    int ac_table = 0;
    bool wanted = true;    // False if the component is not used.
    bool dc_only = false;  // Only the first coefficient of the block is wanted.
  };

  int num_blocks = 0;  // In an MCU.
  Block blocks[kMaxBlocks];
  int columns = 0;  // MCUs in a row.
  int rows = 0;     // Rows of MCUs.
  // The MCUs whose coefficients are wanted: in the rows from `first_row` on, the columns
  // [first_column, end_column).
  int first_row = 0;
  int first_column = 0;
  int end_column = 0;
  int end_row = 0;  // Hint: rows from here on are not decoded ahead.
  // Hint: the wanted MCUs of at most this many rows are decoded ahead. 0: as many as there is
  // memory for.
  int rows_ahead = 0;
  HuffmanCodes dc_codes[kMaxTables];  // Set for the tables that blocks name.
  HuffmanCodes ac_codes[kMaxTables];
  int64_t restart_interval = 0;  // MCUs between two restart markers, 0 if there are none.
  absl::string_view bytes;       // The file from its first entropy-coded byte on.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_SCAN_H_
