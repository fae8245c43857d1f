// A program with its decisions taken: how much of it the fused paths of core/image and core/numeric
// do in one pass, and what is left to the references.
//
//   steps        decode_jpeg  random_crop  resize  random_flip  normalize | brightness  random_crop
//                '-------------- one pass: ImageTransformer -------------'   '- the references -'
//
// The fused part is the longest beginning that the rules in lowered_program.cc take; all of them
// keep every byte.
//
// Thread-compatible; immutable once made.
#ifndef SYSTOLE_CORE_OPERATIONS_LOWERED_PROGRAM_H_
#define SYSTOLE_CORE_OPERATIONS_LOWERED_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/image/crop.h"
#include "core/image/image_transformer.h"
#include "core/numeric/normalise.h"
#include "core/operations/program.h"
#include "core/tensor/dtype.h"

namespace systole {

// What an image's decoder is asked for.
struct Window {
  CropRect rect;          // Of the stored image.
  bool mirrored = false;  // The result is.
};

struct LoweredProgram {
  enum class Way {
    kJpeg,         // Decoded, cut, resized, mirrored, normalised and cast in one pass.
    kPixels,       // The same from raw pixels of stored_height x stored_width.
    kValues,       // Raw bytes, normalised and cast in one pass.
    kFloats,       // Floats, likewise.
    kInterpreter,  // No fixed size is reached before a step that is not fused: references alone.
  };

  std::shared_ptr<const Program> program;
  DType dtype = DType::kUint8;  // Of what comes out in the end.
  Way way = Way::kInterpreter;

  // kJpeg and kPixels.
  ImageTransformerOptions image;
  std::vector<std::variant<WindowPart, MirrorPart>> moves;  // In the order of the program.
  int stored_height = 0;
  int stored_width = 0;

  // The fused pass makes uint8, and a second one normalises and casts.
  bool rounds = false;
  // kValues, kFloats, and what is rounded: channels as scale and bias have them.
  NormaliseFactors finish;

  // Type of what the fused pass makes of its last step; steps from `rest` on are interpreted.
  ValueType fused;
  size_t rest = 0;
  // The references end before step `rest_end`. If that is not the last one, `last` is what it does,
  // and it is done with the cast in one pass.
  size_t rest_end = 0;
  NormaliseFactors last;
  bool has_rest() const { return way != Way::kInterpreter && rest < program->steps().size(); }

  // Memory that a thread needs on the way, beside ImageTransformer's: for what is rounded before it
  // is normalised, and for the references' values.
  int64_t rounded_bytes = 0;
  int64_t rest_bytes = 0;
  // Elements that the references make of an example: what they cost in time.
  int64_t interpreted_elements = 0;

  // What is asked of an image of height x width pixels. REQUIRES: kJpeg or kPixels.
  //   DataLoss  a window does not fit into it.
  absl::StatusOr<Window> WindowOf(int height, int width, const ExampleKey& example) const;
};

// `read_soon` is BilinearResizerOptions::read_soon. REQUIRES: the program's output is uint8 or
// float32 and has a size; dtype is kUint8, kFloat32 or kBfloat16.
LoweredProgram Lower(std::shared_ptr<const Program> program, DType dtype, bool read_soon);

// How values of such a type are written by the fused passes.
PixelType PixelTypeOf(DType dtype);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_LOWERED_PROGRAM_H_
