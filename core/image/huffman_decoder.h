// The Huffman-coded coefficients of a JPEG's only scan (baseline or extended sequential, 8 bits:
// ITU-T T.81, annex F.2). This step is three quarters of what libjpeg-turbo does for a crop. Here
// it takes two symbols at a time, values without a branch, and only counts the bits of blocks that
// nobody looks at: about twice as fast.
//
// It decodes clean scans. At the first oddity (an invalid code, a missing, wrong or early marker,
// bytes that no block needs) it gives up, and the caller decodes the image anew with libjpeg: what
// becomes of a damaged image is libjpeg's decision alone.
//
// Single-thread. Reusable: lookups are kept from image to image while the codes are the same.
#ifndef SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_H_
#define SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/string_view.h"

namespace systole {

// A DHT segment's content: counts[n] codes of n bits, n = 1 to 16, and their symbols in order of
// code.
struct HuffmanCodes {
  uint8_t counts[17] = {};
  uint8_t symbols[256] = {};
};

struct HuffmanScan {
  static constexpr int kMaxBlocks = 10;  // Of an MCU: T.81, B.2.3.
  static constexpr int kMaxTables = 4;
  struct Block {
    int component = 0;  // 0 to 3.
    int dc_table = 0;   // 0 to 3.
    int ac_table = 0;
    bool wanted = true;  // False: nobody looks at this component.
  };

  int num_blocks = 0;  // Of an MCU.
  Block blocks[kMaxBlocks];
  HuffmanCodes dc_codes[kMaxTables];  // Those that a block names.
  HuffmanCodes ac_codes[kMaxTables];
  int64_t restart_interval = 0;  // MCUs from restart marker to restart marker, 0 if there are none.
  absl::string_view bytes;       // From the first entropy-coded byte on, with all that follows.
};

class HuffmanDecoder {
 public:
  HuffmanDecoder();
  ~HuffmanDecoder();

  // `scan.bytes` must outlive the decoding.
  // REQUIRES: codes as libjpeg accepts them (complete or not, but prefix-free; DC symbols up to
  // 15), 1 to kMaxBlocks blocks.
  void Start(const HuffmanScan& scan);

  // Adds the next MCU's coefficients to `blocks`, pointers to zeroes, in the scan's order of blocks
  // and the natural (row-major) order of coefficients. False: see above; the decoder and what was
  // written are worth nothing then.
  bool Decode(int16_t (*const* blocks)[64]);
  // The same without storing.
  bool Skip();

  // After the last MCU: where in `scan.bytes` the marker stands that ends the scan; none if it does
  // not follow the last MCU.
  std::optional<size_t> End();

  struct State;  // Of huffman_decoder.cc.

 private:
  std::unique_ptr<State> state_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_H_
