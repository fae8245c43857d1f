// Splits a program in two: the part that the fused paths of core/image and core/numeric do in one
// pass, and the rest, which the operations do with code of their own. In this file, "the references
// do a step" means that the step's operation does it: by itself (Operation::Run), or together with
// its neighbours (Operation::ChangeOf).
//
//   steps        decode_jpeg  random_crop  resize  random_flip  normalize | brightness  random_crop
//                '-------------- one pass: ImageTransformer -------------'   '- the references -'
//
// The fused part is the longest beginning that the rules in lowered_program.cc accept. No rule
// changes a byte of the result.
//
// In two cases the fused pass only decodes the window to memory. The window is the part of the
// image that the crops keep.
//
// 1. The record decides the size of the fused part's result:
//
//   steps        decode_jpeg  central_crop  random_flip | contrast  resize
//                '----- one pass makes the window -----'   '- references -'
//
// 2. A resize has other options than the default, and the record decides the size of the window. If
// resamples_rows(), a second pass does the steps after the window, row by row:
//
//   steps        decode_jpeg  random_resized_crop { antialias: true }  random_flip  normalize
//                '---- one pass makes the window, and a second pass does the other steps ----'
//
// Thread-compatible; immutable once made.
#ifndef SYSTOLE_CORE_OPERATIONS_LOWERED_PROGRAM_H_
#define SYSTOLE_CORE_OPERATIONS_LOWERED_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/image/image_transformer.h"
#include "core/numeric/normalise.h"
#include "core/operations/ops/image_window.h"
#include "core/operations/program.h"
#include "core/tensor/dtype.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// A window's memory is kept for the next example if it has at most this size, which is enough for a
// colour image of 640 x 500 pixels. Memory that is not kept comes from the kernel again for each
// example, and the kernel zeroes it.
inline constexpr int64_t kMaxKeptWindowBytes = int64_t{1} << 20;

struct LoweredProgram {
  enum class Way {
    kJpeg,    // One pass decodes a JPEG, cuts, resizes, mirrors, normalises and casts.
    kPixels,  // One pass cuts, resizes, mirrors, normalises and casts raw pixels.
    kValues,  // One pass normalises and casts raw bytes.
    kFloats,  // One pass normalises and casts floats.
    kWindow,  // One pass decodes the window of a JPEG to uint8. If resamples_rows(), a second pass
              // resamples, mirrors, normalises and casts. Otherwise the whole window is resampled
              // if `resample` is set. The references do the other steps.
    // The references do everything, because the values are int64, or because no JPEG is decoded and
    // no size is fixed.
    kInterpreter,
  };

  std::shared_ptr<const Program> program;
  DType dtype = DType::kUint8;  // The type of the final result.
  Way way = Way::kInterpreter;

  // For kJpeg, kPixels and kWindow. For kWindow, `image.output` is not made. Its height and width
  // are 1.
  ImageTransformerOptions image;
  std::vector<Move> moves;  // In the order of the program.
  // For kWindow: the resample after the moves. If resamples_rows(), `mirrors` and `finish` come
  // next.
  std::optional<ResamplePart> resample;
  std::vector<Move> mirrors;

  // Whether the fused pass makes uint8, and a second pass normalises and casts.
  bool rounds = false;
  // The factors for kValues, kFloats and a second pass.
  NormaliseFactors finish = {.scale = {1.0f}, .bias = {0.0f}};
  // The type that the fused passes write. They write the final values, or the values from which the
  // references continue.
  PixelType made = PixelType::kUint8;

  // The steps before number `rest` are fused; for kInterpreter, `rest` is 0. The references do the
  // other steps, except the last step if `last` is set. This step then runs in one pass with the
  // cast, and `last` has its factors.
  size_t rest = 0;
  std::optional<NormaliseFactors> last;

  // Whether an example begins with a JPEG, which ProgramRunner::Begin() starts to decode.
  bool decodes_jpeg() const { return way == Way::kJpeg || way == Way::kWindow; }
  // Whether a kWindow program has a second pass.
  bool resamples_rows() const { return resample.has_value() && resample->gives_rows; }
  bool has_rest() const { return rest < program->steps().size(); }
  size_t rest_end() const { return program->steps().size() - (last.has_value() ? 1 : 0); }

  int pass_part = -1;  // The result of PassPartOf() for the fused part.

  // The memory that a thread needs besides the memory of ImageTransformer. `rounded_bytes` is for
  // rounded values that are not yet normalised, or for a window that is kept for the next example.
  // `rest_bytes` is for the references' values.
  int64_t rounded_bytes = 0;
  int64_t rest_bytes = 0;
  // `rest_bytes` without images whose size depends on the record. These images are counted once
  // their size is known.
  int64_t known_rest_bytes = 0;
  // How many elements the references make for an example, as a measure of their time.
  int64_t interpreted_elements = 0;
};

// `read_soon` is BilinearResizerOptions::read_soon. REQUIRES: the program's output has a size. If
// the output is uint8 or float32, `dtype` is kUint8 or a type of floats. If the output is int64,
// `dtype` is kInt64 or kInt32.
LoweredProgram Lower(std::shared_ptr<const Program> program, DType dtype, bool read_soon);

// How each step of the program runs.
std::vector<v1::TransformRun> RunsOf(const LoweredProgram& lowered);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_LOWERED_PROGRAM_H_
