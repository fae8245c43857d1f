#include "core/operations/lowered_program.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "core/operations/data_type.h"
#include "core/operations/pass_part.h"

namespace systole {
namespace {

using Way = LoweredProgram::Way;

// A fused pass to which operations can be added.
struct Fusion {
  // Adds an operation, which reads values of type `input`, if this changes no byte of the result.
  // Returns whether the operation was added.
  bool Take(const Operation& operation, const ValueType& input) {
    const std::vector<OperationPart> parts = operation.Parts();
    Fusion further = *this;
    further.reads_any_size = !input.has_size();
    const auto take = [&further](const OperationPart& part) {
      return std::visit([&further](const auto& known) { return further.TakePart(known); }, part);
    };
    if (parts.empty() || !std::all_of(parts.begin(), parts.end(), take)) return false;
    *this = std::move(further);
    ++steps;
    return true;
  }

  bool TakePart(const DecodeJpegPart& part) {
    jpeg = part.options;
    return true;
  }
  bool TakePart(const DecodeRawPart&) { return true; }

  // Windows and mirrors move pixels and do not change them. So the pass may do a window or a mirror
  // before a step that changes each pixel by itself (rounding, normalising), even if the program
  // has the reverse order. Windows are cut from the stored image, so none can follow a resize.
  bool TakePart(const WindowPart& part) {
    if (resize.has_value() || resample.has_value()) return false;
    moves.emplace_back(part);
    return true;
  }
  bool TakePart(const MirrorPart& part) {
    if (!TakesRows()) return false;
    (resample.has_value() ? mirrors : moves).emplace_back(part);
    return true;
  }

  // Refuses a resize after a mirror. The pass would resize first, and this gives other bits,
  // because the weights round differently. Also refuses a resize of pixels that are already resized
  // or normalised, because the resizer takes only stored pixels.
  bool TakePart(const ResizePart& part) {
    const bool mirrored = std::any_of(moves.begin(), moves.end(), [](const Move& move) {
      return std::holds_alternative<MirrorPart>(move);
    });
    if (resize.has_value() || resample.has_value() || mirrored || normalise.has_value()) {
      return false;
    }
    resize = part;
    return true;
  }

  // Takes a resample only of a window whose size the record decides. If the spec gives a window's
  // size, the pass ends before the resample and makes the window, however large it is. If the pass
  // took the resample, too, it would refuse windows above kMaxValueBytes.
  bool TakePart(const ResamplePart& part) {
    if (!jpeg.has_value() || !reads_any_size || normalise.has_value()) return false;
    resample = part;
    return true;
  }

  // Rounding changes only resized values. A second pass normalises the rounded values.
  bool TakePart(const RoundPart&) {
    if (normalise.has_value() || resample.has_value()) return false;
    rounds = rounds || resize.has_value();
    return true;
  }

  bool TakePart(const NormalisePart& part) {
    if (normalise.has_value() || !TakesRows()) return false;
    normalise = part.factors;
    return true;
  }

  // Whether parts that change rows can follow.
  bool TakesRows() const { return !resample.has_value() || resample->gives_rows; }

  size_t steps = 0;  // How many operations were added.
  std::optional<JpegDecoderOptions> jpeg;
  std::vector<Move> moves;
  std::optional<ResizePart> resize;
  std::optional<ResamplePart> resample;
  std::vector<Move> mirrors;    // The mirrors after `resample`.
  bool reads_any_size = false;  // Whether the record decides the size of the last operation's
                                // input.
  bool rounds = false;
  std::optional<NormaliseFactors> normalise;
};

// Returns the longest beginning of the program that can be fused. If this beginning decodes a JPEG
// but the record decides the size of its result, returns only the steps before a normalize, so that
// the result is uint8. Of a program that begins with floats, only a normalize is fused.
Fusion LongestBeginning(const Program& program) {
  const bool floats = program.input().element == ElementType::kFloat32;
  Fusion fused, pixels;
  for (const Program::Step& step : program.steps()) {
    if (floats && !FactorsOfNormalise(*step.operation).has_value()) break;
    if (!fused.Take(*step.operation, program.type_before(fused.steps))) break;
    if (!fused.normalise.has_value()) pixels = fused;
  }
  return fused.jpeg.has_value() && !program.type_before(fused.steps).has_size() ? pixels : fused;
}

// Whether the spec decides the size of values of `type`. Otherwise the record decides it, and the
// values take up to kMaxValueBytes.
bool IsKnown(const ValueType& type) {
  return type.has_size() && type.element != ElementType::kBytes;
}

Way WayOf(const Program& program, const Fusion& fusion) {
  const ValueType& made = program.type_before(fusion.steps);
  const bool is_jpeg = fusion.jpeg.has_value();
  if (is_jpeg && (!made.has_size() || fusion.resample.has_value())) return Way::kWindow;
  if (is_jpeg) return Way::kJpeg;
  if (!IsKnown(made) || made.element == ElementType::kInt64) return Way::kInterpreter;
  if (program.input().element == ElementType::kFloat32) return Way::kFloats;
  return fusion.resize.has_value() || !fusion.moves.empty() ? Way::kPixels : Way::kValues;
}

int64_t ElementsOf(const ValueType& type) {
  return IsKnown(type) ? type.num_elements() : kMaxValueBytes / ElementBytes(type.element);
}

// The memory that the references take from step `first` on, in bytes. `known_only` leaves out
// values whose size the record decides.
int64_t RestBytes(const Program& program, size_t first, bool known_only) {
  const std::vector<Program::Step>& steps = program.steps();
  const auto bytes_of = [known_only](const ValueType& type) {
    return known_only && !IsKnown(type) ? 0 : ElementsOf(type) * ElementBytes(type.element);
  };
  int64_t largest = 0;
  int64_t scratch = 0;
  for (size_t i = first; i < steps.size(); ++i) {
    const ValueType& input = program.type_before(i);
    largest = std::max({largest, bytes_of(input), bytes_of(steps[i].output)});
    if (bytes_of(input) == 0) continue;
    scratch = std::max(scratch, steps[i].operation->ScratchBytes(ElementsOf(input)));
  }
  return 2 * largest + scratch;  // A step reads one value and writes another.
}

}  // namespace

LoweredProgram Lower(std::shared_ptr<const Program> program, DType dtype, bool read_soon) {
  const std::vector<Program::Step>& steps = program->steps();
  Fusion fusion = LongestBeginning(*program);
  const ValueType& type = program->type_before(fusion.steps);
  LoweredProgram lowered;
  lowered.program = program;
  lowered.dtype = dtype;
  lowered.way = WayOf(*program, fusion);
  lowered.rest = lowered.way == Way::kInterpreter ? 0 : fusion.steps;
  lowered.image.decode_part = program->number_of(0);
  lowered.image.rows_part = lowered.pass_part = PassPartOf(*program, lowered.rest);
  lowered.image.jpeg = fusion.jpeg.value_or(JpegDecoderOptions());
  lowered.moves = std::move(fusion.moves);
  lowered.resample = std::move(fusion.resample);
  lowered.mirrors = std::move(fusion.mirrors);
  lowered.made =
      PixelTypeOf(lowered.has_rest() ? static_cast<DType>(DataTypeOf(type.element)) : dtype);
  // A cast to uint8 without a normalisation rounds, too, so no second pass is needed.
  lowered.rounds =
      fusion.rounds && (fusion.normalise.has_value() || lowered.made != PixelType::kUint8);
  if (fusion.normalise.has_value()) lowered.finish = *fusion.normalise;
  BilinearResizerOptions& output = lowered.image.output;
  if (lowered.way == Way::kWindow) {
    output = {.height = 1, .width = 1, .channels = static_cast<int>(type.shape[2])};
    if (lowered.resamples_rows()) lowered.rounded_bytes = kMaxKeptWindowBytes;
  } else if (lowered.way == Way::kJpeg || lowered.way == Way::kPixels) {
    lowered.image.scaled = program->scaled_decoding().has_value();
    output = {.height = static_cast<int>(type.shape[0]),
              .width = static_cast<int>(type.shape[1]),
              .channels = static_cast<int>(type.shape[2]),
              .type = lowered.rounds ? PixelType::kUint8 : lowered.made,
              .read_soon = read_soon || lowered.has_rest()};
    if (lowered.rounds) {
      lowered.rounded_bytes = type.num_elements();
    } else {
      output.scale = lowered.finish.scale;
      output.bias = lowered.finish.bias;
    }
  }
  // `last` is not for float images: they are normalised together with the other changes of rows.
  if (lowered.has_rest() && !IsFloatImage(program->type_before(steps.size() - 1))) {
    lowered.last = FactorsOfNormalise(*steps.back().operation);
  }
  size_t first = lowered.rest;
  // With Way::kWindow, the step that resamples counts, too, because it reads the window from
  // memory.
  while (lowered.way == Way::kWindow && steps[first - 1].output.has_size()) --first;
  lowered.rest_bytes = RestBytes(*program, first, /*known_only=*/false);
  lowered.known_rest_bytes = RestBytes(*program, first, /*known_only=*/true);
  for (size_t i = first; i < steps.size(); ++i) {
    lowered.interpreted_elements += ElementsOf(steps[i].output);
  }
  return lowered;
}

std::vector<v1::TransformRun> RunsOf(const LoweredProgram& lowered) {
  // A resample that does not give rows is the last step before the rest, and runs by itself.
  const bool resamples_alone = lowered.resample.has_value() && !lowered.resamples_rows();
  std::vector<v1::TransformRun> runs(lowered.rest - (resamples_alone ? 1 : 0), v1::FUSED);
  const std::vector<Program::Step>& steps = lowered.program->steps();
  for (size_t i = runs.size(); i < steps.size(); ++i) {
    const bool by_row =
        steps[i].operation->by_row() != ByRow::kNo && IsFloatImage(lowered.program->type_before(i));
    runs.push_back(by_row ? v1::BY_ROW : v1::ALONE);
  }
  return runs;
}

}  // namespace systole
