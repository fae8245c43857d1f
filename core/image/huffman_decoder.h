// The Huffman-coded coefficients of a JPEG's only scan (baseline or extended sequential, 8 bits:
// ITU-T T.81, annex F.2). This step is three quarters of what libjpeg-turbo does for a crop. Here
// it takes two symbols at a time, values without a branch, and only counts the bits of blocks that
// nobody looks at: about twice as fast, and more with another image beside it.
//
// It decodes clean scans. At the first oddity (an invalid code, a missing, wrong or early marker,
// bytes that no block needs) it gives up, and the caller decodes the image anew with libjpeg: what
// becomes of a damaged image is libjpeg's decision alone.
//
// It runs ahead of whoever takes the coefficients. A symbol waits for the one before, so two scans
// decoded together take far less time than one after the other: each fills the other's waits.
//
// Single-thread. Reusable: lookups are kept from image to image while the codes are the same.
#ifndef SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_H_
#define SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/image/huffman_scan.h"

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
  // REQUIRES: codes as libjpeg accepts them (complete or not, but prefix-free; DC symbols up to
  // 15), 1 to kMaxBlocks blocks, at least one MCU.
  void Start(const HuffmanScan& scan);

  // Decodes two scans together, until one of them is as far ahead as it can be: up to its end_row,
  // its memory full, or given up. Only time depends on whether this is called.
  static void DecodeAhead(HuffmanDecoder& a, HuffmanDecoder& b);
  bool is_ahead() const;

  // The next MCU in the scan's order. Sets `*blocks` to its num_blocks blocks, valid until the next
  // call, or to null if it is not wanted; blocks that are not wanted are zeros. False: see above;
  // the scan is worth nothing any more.
  bool Take(const Block** blocks);

  // After the last MCU: where in `scan.bytes` the marker stands that ends the scan; none if it does
  // not follow the last MCU.
  std::optional<size_t> End();

 private:
  std::unique_ptr<huffman::ScanState> state_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_H_
