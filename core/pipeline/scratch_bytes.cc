#include "core/pipeline/scratch_bytes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/pipeline/feed_plan.h"
#include "core/tensor/dtype.h"

namespace systole {
namespace {

// Two examples are made at a time.
constexpr int64_t kLanes = 2;
// Of a resizer, for each value of an output row: tables of 28 bytes, and lines of 16.
constexpr int64_t kBytesPerRowValue = 48;
// For each output row.
constexpr int64_t kBytesPerRow = 16;
// What a JPEG's coefficients run ahead (JpegDecoderOptions.huffman_decoder), with its lookups.
constexpr int64_t kBytesPerJpeg = (int64_t{1} << 20) + (int64_t{64} << 10);

}  // namespace

ScratchBytes ScratchBytesOf(const FeedPlan& plan) {
  using Source = OutputPlan::Source;
  ScratchBytes bytes;
  for (const OutputPlan& output : plan.outputs()) {
    const SliceTensor& tensor = plan.layout().tensors()[static_cast<size_t>(output.tensor)];
    const int64_t example_bytes = tensor.spec.num_bytes() / tensor.per_core_batch();
    const int64_t elements = example_bytes / DTypeBytes(output.dtype);
    int64_t example = output.layout == v1::NHWC ? 0 : example_bytes;
    example += output.program.scratch_bytes;
    if (output.is_image()) {
      // An interpreted program has neither tables nor decoders that last.
      const BilinearResizerOptions& image = output.program.image.output;
      bytes.tables += kLanes * (int64_t{image.width} * image.channels * kBytesPerRowValue +
                                int64_t{image.height} * kBytesPerRow);
      if (output.program.way == LoweredProgram::Way::kJpeg) {
        bytes.decoders += kLanes * kBytesPerJpeg;
      }
    } else if (output.source == Source::kInt64List) {
      example += elements * static_cast<int64_t>(sizeof(int64_t));
    } else if (output.source == Source::kFloatList) {
      example += elements * static_cast<int64_t>(sizeof(float));
    }
    bytes.example = std::max(bytes.example, example);  // One output after the other.
  }
  return bytes;
}

absl::Status CheckScratchBytes(const FeedPlan& plan) {
  const ScratchBytes bytes = ScratchBytesOf(plan);
  if (bytes.sum() <= kMaxScratchBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("to make an example a thread needs about ", bytes.sum(),
                   " bytes beside it, want at most ", kMaxScratchBytes, ": ", bytes.decoders,
                   " for decode_jpeg, ", bytes.tables, " to resize, and ", bytes.example,
                   " for an example that is not made in its place (layout NCHW or HWCN, transforms "
                   "after round_to_uint8 or "
                   "brightness, lists); "
                   "ask for fewer or smaller outputs"));
}

}  // namespace systole
