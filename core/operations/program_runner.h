// Makes examples with a lowered program, on one thread. An example from a JPEG is made in two
// halves. Between the halves, its image can be decoded together with the image of another example:
//
//   Begin(bytes, example)      reads the header, chooses the window, starts the image
//   ..                         PairedDecoding may decode the image beside another runner's image
//   Run(input, example, out)   makes the rest of the example, or the whole example if Begin()
//                              returned null
//
// Single-thread. The output depends on the arguments alone.
#ifndef SYSTOLE_CORE_OPERATIONS_PROGRAM_RUNNER_H_
#define SYSTOLE_CORE_OPERATIONS_PROGRAM_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/image/image_transformer.h"
#include "core/image/jpeg/huffman_decoder.h"
#include "core/operations/lowered_program.h"

namespace systole {

class ProgramRunner {
 public:
  // The input of a program. A program whose input is float32 reads `floats`. A program whose input
  // is int64 reads `int64s`. Any other program reads `bytes`. If the program's input is uint8,
  // `bytes` are the pixels of an image of `shape`.
  struct Input {
    absl::string_view bytes;
    absl::Span<const int64_t> shape;
    absl::Span<const float> floats;
    absl::Span<const int64_t> int64s;
  };

  // Every later call must pass a program that equals `program`. `decoder` is used only if
  // program.decodes_jpeg().
  //   InvalidArgument  a factor of normalize is beyond the resizer's limit (1e30).
  static absl::StatusOr<ProgramRunner> Create(const LoweredProgram& program,
                                              std::shared_ptr<HuffmanDecoder> decoder);

  // First half. Returns the image that was started, or null if program.decodes_jpeg() is false.
  // `bytes` must not change until Run returns.
  //   DataLoss, ResourceExhausted, Unavailable  as ImageTransformer::ReadHeader() and WindowOf().
  //   ResourceExhausted  the window of a kWindow program takes more than kMaxValueBytes.
  absl::StatusOr<ImageTransformer*> Begin(const LoweredProgram& program, absl::string_view bytes,
                                          const ExampleKey& example);

  // The size of the image that Begin() started. REQUIRES: Begin() did not return null.
  const ImageInfo& info() const { return transformer_->info(); }

  // Abandons the example that Begin() started, and frees its memory. Do not call Run() for this
  // example afterwards.
  void Drop();

  // Second half. Writes the example to `out`, in elements of program.dtype. `pixels` is scratch.
  // REQUIRES: Begin() was OK for the same program, bytes and example. If the program's input type
  // has a size, `input` has as many values as this type.
  absl::Status Run(const LoweredProgram& program, const Input& input, const ExampleKey& example,
                   std::vector<uint8_t>& pixels, absl::Span<uint8_t> out);

  // Makes the example from `value`, the result of the steps before step `first`. Writes it to
  // `out`, in elements of program.dtype. REQUIRES: 0 < first, and the program has a step `first`.
  static absl::Status RunFrom(const LoweredProgram& program, Value value, const ExampleKey& example,
                              size_t first, absl::Span<uint8_t> out);

 private:
  explicit ProgramRunner(std::optional<ImageTransformer> transformer)
      : transformer_(std::move(transformer)) {}

  // Runs the fused passes. Writes elements of program.made.
  absl::Status RunFused(const LoweredProgram& program, const Input& input,
                        const ExampleKey& example, std::vector<uint8_t>& pixels,
                        absl::Span<uint8_t> out);
  absl::Status Transform(const LoweredProgram& program, const Input& input,
                         const ExampleKey& example, absl::Span<uint8_t> out);
  // For kWindow: decodes the window. The result takes over `memory` for its pixels.
  absl::StatusOr<Value> DecodeWindow(const LoweredProgram& program, std::vector<uint8_t> memory);
  // For kWindow without resamples_rows(): decodes the window, and resamples it if program.resample
  // is set.
  absl::StatusOr<Value> MakeWindow(const LoweredProgram& program);
  // For kWindow with resamples_rows(): decodes the window to `pixels`. Then resamples, mirrors,
  // normalises and casts the window to `out`, row by row.
  absl::Status ResampleWindow(const LoweredProgram& program, const ExampleKey& example,
                              std::vector<uint8_t>& pixels, absl::Span<uint8_t> out);

  std::optional<ImageTransformer> transformer_;  // For kJpeg, kPixels and kWindow.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_PROGRAM_RUNNER_H_
