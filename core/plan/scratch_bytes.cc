#include "core/plan/scratch_bytes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/image/paired_decoding.h"

namespace systole {
namespace {

// A resizer's bytes for each value of an output row: about 28 for tables and 16 for lines.
constexpr int64_t kBytesPerRowValue = 48;
// A resizer's bytes for each output row.
constexpr int64_t kBytesPerRow = 16;
// A decoder's bytes for one JPEG: the coefficients that are decoded ahead
// (JpegDecoderOptions.huffman_decoder), and look-up tables.
constexpr int64_t kBytesPerJpeg = (int64_t{1} << 20) + (int64_t{64} << 10);

}  // namespace

ScratchBytes ScratchBytesOf(absl::Span<const OutputPlan> outputs, const SliceLayout& slice) {
  using Source = OutputPlan::Source;
  using Way = LoweredProgram::Way;
  ScratchBytes bytes;
  // For each kind of memory, the most that any output needs.
  int64_t layout = 0, ints = 0, floats = 0, rounded = 0, rest = 0, known_rest = 0;
  for (const OutputPlan& output : outputs) {
    const SliceTensor& tensor = slice.tensors()[static_cast<size_t>(output.tensor)];
    if (output.layout != v1::NHWC) {
      layout = std::max(layout, tensor.example_bytes());
    }
    if (output.source == Source::kInt64List) {
      ints = std::max(ints, output.stored_elements * int64_t{sizeof(int64_t)});
    }
    if (output.source == Source::kFloatList) {
      floats = std::max(floats, output.stored_elements * int64_t{sizeof(float)});
    }
    rounded = std::max(rounded, output.program.rounded_bytes);
    rest = std::max(rest, output.program.rest_bytes);
    known_rest = std::max(known_rest, output.program.known_rest_bytes);
    if (output.cache.has_value()) {
      for (const KeptForm& form : output.cache->forms) {
        known_rest = std::max(known_rest, form.known_rest_bytes);
      }
    }
    if (!output.is_image()) continue;
    // An interpreted program has no tables. It has a decoder only while it runs.
    const BilinearResizerOptions& image = output.program.image.output;
    bytes.tables +=
        PairedDecoding::kLanes * (int64_t{image.width} * image.channels * kBytesPerRowValue +
                                  int64_t{image.height} * kBytesPerRow);
    if (output.program.decodes_jpeg()) {
      const auto kept =
          static_cast<int64_t>(output.program.image.scaled ? JpegDecoder::kMaxKeptBytes : 0);
      bytes.decoders += PairedDecoding::kLanes * (kBytesPerJpeg + kept);
    }
    if (output.program.way == Way::kInterpreter) bytes.decoders += kBytesPerJpeg;
  }
  bytes.example = layout + ints + floats + rounded + rest;
  bytes.known_example = layout + ints + floats + rounded + known_rest;
  return bytes;
}

absl::Status CheckScratchBytes(const ScratchBytes& bytes) {
  if (bytes.sum() <= kMaxScratchBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "to make an example, a thread needs about ", bytes.sum(),
      " bytes of working memory, want at most ", kMaxScratchBytes, ": ", bytes.decoders,
      " for decode_jpeg, ", bytes.tables, " to resize, and ", bytes.example,
      " for an example before it is copied to its place (a layout other than NHWC, lists, "
      "round_to_uint8, transforms outside the fused pass); "
      "ask for fewer or smaller outputs"));
}

}  // namespace systole
