// Decodes the Huffman-coded coefficients of a JPEG that has one scan (baseline or extended
// sequential, 8 bits: ITU-T T.81, annex F.2). This step takes three quarters of libjpeg-turbo's
// time for a crop. HuffmanDecoder is about twice as fast: it takes two symbols at a time, needs no
// branch for a value, and only counts the bits of unwanted blocks. Decoding two images together is
// still faster.
//
// The decoder decodes clean scans only. It gives up at the first oddity, such as an invalid code, a
// missing, wrong or early marker, or bytes that no block needs. The caller then decodes the image
// anew with libjpeg, so libjpeg alone decides how a damaged image is handled.
//
// DecodeAhead() decodes two scans together, before the caller takes their coefficients. In a scan,
// each symbol must wait for the symbol before it. While a symbol of one scan waits, the processor
// decodes the other scan. So two scans together take far less time than one after the other.
//
// Single-thread. Reusable: lookup tables are kept from image to image while the codes are the same.
#ifndef SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_DECODER_H_
#define SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/image/jpeg/huffman_scan.h"

namespace systole {

namespace huffman {
struct ScanState;
}

class HuffmanDecoder {
 public:
  using Block = int16_t[64];  // Coefficients in natural (row-major) order.

  HuffmanDecoder();
  ~HuffmanDecoder();

  // `scan.bytes` must outlive the decoding.
  // REQUIRES: codes that libjpeg accepts (complete or not, but prefix-free; DC symbols up to 15), 1
  // to kMaxBlocks blocks, at least one MCU.
  void Start(const HuffmanScan& scan);

  // Decodes two scans together until one of them is_ahead(): it has reached its end_row, filled its
  // memory or given up. The call changes only the time that Take() needs, not the result.
  static void DecodeAhead(HuffmanDecoder& a, HuffmanDecoder& b);
  bool is_ahead() const;
  // The number of rows of MCUs (JPEG's groups of blocks) that were decoded to their end.
  int decoded_rows() const;
  // Makes is_ahead() false again if Take() has freed memory and rows before end_row are not decoded
  // yet. REQUIRES: is_ahead().
  void GoFurtherAhead();

  // Takes the next MCU in the scan's order. If the MCU is wanted, sets `*blocks` to its num_blocks
  // blocks, which are valid until the next call. Otherwise sets `*blocks` to null. Blocks of a
  // component that is not wanted are zeros. Blocks marked dc_only may have any values after the
  // first coefficient. Returns false if the decoder gave up. Then all blocks of this scan must be
  // discarded.
  bool Take(const Block** blocks);

  // Call it after the last MCU. Returns the position in `scan.bytes` of the marker that ends the
  // scan, or none if the marker does not directly follow the last MCU.
  std::optional<size_t> End();

 private:
  std::unique_ptr<huffman::ScanState> state_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_JPEG_HUFFMAN_DECODER_H_
