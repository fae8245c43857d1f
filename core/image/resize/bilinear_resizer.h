// Resizes bilinearly as tf.image.resize does (v2: half-pixel centres, no antialiasing), and in the
// same pass mirrors, normalises and casts. Takes input rows, and writes finished rows to the
// caller's memory. Holds only a few lines of floats, which stay in the cache.
//   source = (i + 0.5) * (extent / out) + (begin - 0.5)         all in f32, every operation rounded
//   value  = lerp(lerp(top left, top right), lerp(bottom left, bottom right)); a + (b - a) * t
//   out    = Cast(value * scale[c] + bias[c])
// `extent` is the input's size and `begin` is 0, unless the caller gives Start() a part of the
// image (crop.h, SourceSide). The operations have TensorFlow's order, and no multiply-add is fused.
// So the bytes are the same on every CPU.
//
// Single-thread. Reusable; tables are kept while sizes stay the same.
#ifndef SYSTOLE_CORE_IMAGE_RESIZE_BILINEAR_RESIZER_H_
#define SYSTOLE_CORE_IMAGE_RESIZE_BILINEAR_RESIZER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/image/window/crop.h"
#include "core/memory/aligned_vector.h"
#include "core/numeric/normalise.h"

namespace systole {

struct BilinearResizerOptions {
  // The size of the output in pixels, 1 to 16384 each.
  int height = 0;
  int width = 0;
  // The number of interleaved channels, 1 or 3, in the input and in the output.
  int channels = 3;
  // `scale` and `bias` have 1 or `channels` entries each, from -1e30 to 1e30.
  std::vector<float> scale = {1.0f};
  std::vector<float> bias = {0.0f};
  // kUint8 rounds half to even. (TensorFlow's resize gives floats only.)
  PixelType type = PixelType::kUint8;
  // True if the caller reads the output at once. The output then always goes through the caches.
  bool read_soon = false;
};

class BilinearResizer {
 public:
  // The rows that AddRows() gets must be readable this many bytes beyond their end.
  static constexpr size_t kRowPaddingBytes = 16;

  // InvalidArgument if an option is out of range.
  static absl::StatusOr<BilinearResizer> Create(BilinearResizerOptions options);

  // The bytes of [height, width, channels] values.
  int64_t output_bytes() const { return output_bytes_; }

  // Begins an image of in_height x in_width pixels (1 to 65535 each). If `flip`, the *result* is
  // mirrored left to right, which equals flipping after resizing. `out` must exist until the last
  // row is written.
  //   InvalidArgument  a size out of range, or out.size() < output_bytes().
  absl::Status Start(int in_height, int in_width, bool flip, absl::Span<uint8_t> out) {
    return Start(WholeSide(in_height), WholeSide(in_width), flip, out);
  }
  // As above, but the output shows only the part of the image that `in_rows` and `in_columns`
  // describe.
  absl::Status Start(const SourceSide& in_rows, const SourceSide& in_columns, bool flip,
                     absl::Span<uint8_t> out);

  // Takes the next `count` input rows, each [in_width, channels] uint8, `stride_bytes` apart. The
  // rows are read before AddRows() returns. Rows that no output row needs cost nothing. Other rows
  // cost least if they come in pairs. REQUIRES: Start was called and not done().
  void AddRows(const uint8_t* rows, size_t stride_bytes, int count);
  void AddRow(const uint8_t* row) { AddRows(row, 0, 1); }

  // Whether the output is complete. It may be complete before the last input rows are added.
  bool done() const { return next_out_ == options_.height; }

  // Gives up an image that is not complete: done() becomes true without the last rows. To give an
  // image up, call this before another thread may use `out`. A complete image needs no call.
  void Finish();

 private:
  // The two source coordinates from which an output coordinate is made, and the weight of `upper`.
  struct Tap {
    int lower;
    int upper;
    float weight;
  };
  static void FillTaps(const SourceSide& in, int out, std::vector<Tap>* taps);

  explicit BilinearResizer(BilinearResizerOptions options);
  void BuildColumns(const SourceSide& in_columns, bool flip);
  void BuildRows(const SourceSide& in_rows);
  void MakeLines(const uint8_t* row, const uint8_t* next_row);
  void WriteRow(const Tap& tap);
  uint8_t* OutputRow(int row) const;
  void PrefetchRow(int out_row) const;

  BilinearResizerOptions options_;
  int64_t output_bytes_ = 0;
  size_t values_ = 0;         // width * channels.
  size_t padded_values_ = 0;  // Rounded up to whole kernel blocks.

  // Horizontal tables, per value of an output row; rebuilt when (in_columns, flip) changes.
  SourceSide in_columns_;
  bool flip_ = false;
  // Whether the sources of every 4 values lie within 16 bytes, so that the fast kernel can run.
  bool windows_fit_ = false;
  std::vector<Tap> columns_;
  AlignedVector<int32_t> lower_offset_;  // Per value: where Tap::lower's byte is in the row.
  AlignedVector<int32_t> upper_offset_;  // Per value: where Tap::upper's byte is in the row.
  AlignedVector<float> weight_;
  AlignedVector<int32_t> window_;  // Per 4 values: where their window of 16 bytes begins.
  // Per value: the byte shuffle of its window that widens the source byte to 32 bits.
  AlignedVector<uint32_t> lower_shuffle_;
  AlignedVector<uint32_t> upper_shuffle_;

  // Vertical tables; rebuilt when in_rows changes.
  SourceSide in_rows_;
  std::vector<int> line_rows_;  // The input rows that output rows need; each becomes a line.
  std::vector<Tap> rows_;       // Per output row: a tap whose coordinates are line numbers.

  std::vector<float> scale_pattern_;  // Per-channel factors repeated to whole vectors.
  std::vector<float> bias_pattern_;
  // The last lines. A line is an input row that was resized horizontally. Line n is at index n mod
  // kLines. Two more lines can be made without overwriting a line that an output row still needs.
  static constexpr int kLines = 4;
  AlignedVector<float> lines_[kLines];

  int next_in_ = 0;    // The next input row.
  int next_line_ = 0;  // The next line to be made.
  int next_out_ = 0;   // The next output row.
  absl::Span<uint8_t> out_;
  bool stream_ = false;  // Whether `out_` is written past the caches.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_IMAGE_RESIZE_BILINEAR_RESIZER_H_
