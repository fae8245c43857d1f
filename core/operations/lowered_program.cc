#include "core/operations/lowered_program.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "core/operations/data_type.h"

namespace systole {
namespace {

// The state of a fused pass while operations are added to it.
class Fusion {
 public:
  explicit Fusion(const ValueType& input) : floats_(input.element == ElementType::kFloat32) {}

  // Adds an operation, which reads values of type `input`, if this changes no byte of the result.
  // Returns whether the operation was added.
  bool Take(const Operation& operation, const ValueType& input) {
    const std::vector<OperationPart> parts = operation.Parts();
    Fusion further = *this;
    further.reads_any_size_ = !input.has_size();
    const auto take = [&further](const OperationPart& part) {
      return std::visit([&further](const auto& known) { return further.TakePart(known); }, part);
    };
    if (parts.empty() || !std::all_of(parts.begin(), parts.end(), take)) return false;
    *this = std::move(further);
    return true;
  }

  bool is_jpeg() const { return is_jpeg_; }
  bool floats() const { return floats_; }
  // Whether the pass resizes, cuts or mirrors, which only images allow.
  bool moved() const { return resize_.has_value() || !moves_.empty(); }
  const std::optional<ResamplePart>& resample() const { return resample_; }
  const std::vector<MirrorPart>& mirrors() const { return mirrors_; }
  bool rounds() const { return rounds_; }
  bool normalises() const { return normalise_.has_value(); }
  const JpegDecoderOptions& jpeg() const { return jpeg_; }
  const std::vector<Move>& moves() const { return moves_; }
  NormaliseFactors factors() const {
    return normalise_.value_or(NormaliseFactors{.scale = {1.0f}, .bias = {0.0f}});
  }

 private:
  bool TakePart(const DecodeJpegPart& part) {
    is_jpeg_ = true;
    jpeg_ = part.options;
    return true;
  }
  bool TakePart(const DecodeRawPart&) { return true; }

  // Windows and mirrors move pixels and compute none. So they may change places with steps that
  // compute each pixel alone (rounding, normalising). Windows before a resize are cut from the
  // stored image.
  bool TakePart(const WindowPart& part) {
    if (floats_ || resize_.has_value() || resample_.has_value()) return false;
    moves_.emplace_back(part);
    return true;
  }
  bool TakePart(const MirrorPart& part) {
    if (floats_ || !TakesRows()) return false;
    if (resample_.has_value()) {
      mirrors_.push_back(part);
    } else {
      moves_.emplace_back(part);
    }
    return true;
  }

  // Refuses a resize after a mirror. To resize first gives other bits, because the weights round
  // differently. And the resizer takes only stored pixels.
  bool TakePart(const ResizePart& part) {
    const bool mirrored = std::any_of(moves_.begin(), moves_.end(), [](const Move& move) {
      return std::holds_alternative<MirrorPart>(move);
    });
    if (floats_ || resize_.has_value() || resample_.has_value() || mirrored ||
        normalise_.has_value()) {
      return false;
    }
    resize_ = part;
    return true;
  }

  // Takes only windows whose size the record decides. If the spec gives a window's size, the pass
  // ends before the resample and makes the window, however large it is. Together with the resample,
  // the window would be limited to kMaxValueBytes, like all values whose size the record decides.
  bool TakePart(const ResamplePart& part) {
    if (!is_jpeg_ || !reads_any_size_ || resample_.has_value() || normalise_.has_value()) {
      return false;
    }
    resample_ = part;
    return true;
  }

  // Rounding changes only resized values. A second pass normalises the rounded values.
  bool TakePart(const RoundPart&) {
    if (floats_ || normalise_.has_value() || resample_.has_value()) return false;
    rounds_ = rounds_ || resize_.has_value();
    return true;
  }

  bool TakePart(const NormalisePart& part) {
    if (normalise_.has_value() || !TakesRows()) return false;
    normalise_ = part.factors;
    return true;
  }

  // Whether parts that change rows can follow.
  bool TakesRows() const { return !resample_.has_value() || resample_->gives_rows; }

  bool floats_;
  bool is_jpeg_ = false;
  JpegDecoderOptions jpeg_;
  std::vector<Move> moves_;
  std::optional<ResizePart> resize_;
  std::optional<ResamplePart> resample_;
  std::vector<MirrorPart> mirrors_;  // After resample_.
  bool reads_any_size_ = false;  // Whether only the record gives the size that the operation reads.
  bool rounds_ = false;
  std::optional<NormaliseFactors> normalise_;
};

// The first steps of a program, fused.
struct Beginning {
  Fusion fusion;
  size_t steps = 0;
  ValueType type;              // What these steps make.
  size_t before_resample = 0;  // The steps before the one that resamples, or all.
};

// The longest beginning that can be fused. If it decodes a JPEG but fixes no size, the longest one
// that leaves pixels uint8.
Beginning LongestBeginning(const Program& program) {
  Beginning fused = {.fusion = Fusion(program.input()), .type = program.input()};
  Beginning pixels = fused;
  for (const Program::Step& step : program.steps()) {
    if (!fused.fusion.Take(*step.operation, fused.type)) break;
    ++fused.steps;
    fused.type = step.output;
    if (!fused.fusion.resample().has_value()) fused.before_resample = fused.steps;
    if (!fused.fusion.normalises()) pixels = fused;
  }
  return fused.fusion.is_jpeg() && !fused.type.has_size() ? pixels : fused;
}

// Adds what the references cost from step `first` on. `read_bytes` is the size of the value that
// this step reads; nullopt if the record decides it.
void AddRest(size_t first, std::optional<int64_t> read_bytes, LoweredProgram& lowered) {
  const std::vector<Program::Step>& steps = lowered.program->steps();
  // A value whose type has no size is bounded by kMaxValueBytes.
  const auto elements_of = [](const ValueType& type) {
    return type.has_size() ? type.num_elements() : kMaxValueBytes / ElementBytes(type.element);
  };
  int64_t largest = read_bytes.value_or(kMaxValueBytes);
  int64_t largest_known = read_bytes.value_or(0);
  int64_t scratch = 0;
  int64_t known_scratch = 0;
  for (size_t i = first; i < steps.size(); ++i) {
    const ValueType& output = steps[i].output;
    const int64_t elements = elements_of(output);
    largest = std::max(largest, elements * ElementBytes(output.element));
    lowered.interpreted_elements += elements;
    const ValueType& input = i == 0 ? lowered.program->input() : steps[i - 1].output;
    const int64_t step_scratch = steps[i].operation->ScratchBytes(elements_of(input));
    scratch = std::max(scratch, step_scratch);
    if (input.has_size() && input.element != ElementType::kBytes) {
      known_scratch = std::max(known_scratch, step_scratch);
    }
    if (output.has_size()) largest_known = std::max(largest_known, output.num_bytes());
  }
  // A step reads one value and writes another.
  lowered.rest_bytes = 2 * largest + scratch;
  lowered.known_rest_bytes = 2 * largest_known + known_scratch;
}

}  // namespace

LoweredProgram Lower(std::shared_ptr<const Program> program, DType dtype, bool read_soon) {
  LoweredProgram lowered;
  const std::vector<Program::Step>& steps = program->steps();
  const size_t steps_end = steps.size();
  const auto [fusion, rest, type, before_resample] = LongestBeginning(*program);
  lowered.program = std::move(program);
  lowered.dtype = dtype;
  lowered.rest = rest;
  lowered.rest_end = steps_end;
  if (rest < steps_end) {
    if (const auto factors = FactorsOfNormalise(*steps.back().operation); factors.has_value()) {
      lowered.rest_end = steps_end - 1;
      lowered.last = *factors;
    }
  }
  lowered.fused = type;
  if (type.element == ElementType::kInt64) {
    AddRest(0, type.num_bytes(), lowered);
    return lowered;
  }
  if (fusion.is_jpeg() && (!type.has_size() || fusion.resample().has_value())) {
    lowered.way = LoweredProgram::Way::kWindow;
    lowered.moves = fusion.moves();
    lowered.resample = fusion.resample();
    lowered.mirrors = fusion.mirrors();
    lowered.finish = fusion.factors();
    lowered.image.jpeg = fusion.jpeg();
    lowered.image.output = {.height = 1, .width = 1, .channels = static_cast<int>(type.shape[2])};
    if (lowered.resamples_rows()) lowered.rounded_bytes = kMaxKeptWindowBytes;
    // The step that resamples reads the window.
    AddRest(before_resample, std::nullopt, lowered);
    return lowered;
  }
  if (!type.has_size() || type.element == ElementType::kBytes) {
    AddRest(0, std::nullopt, lowered);
    return lowered;
  }

  // The fused pass writes the final values, or the values from which the references continue.
  const bool ends = rest == steps_end;
  const DType made =
      ends ? dtype : (type.element == ElementType::kUint8 ? DType::kUint8 : DType::kFloat32);
  if (fusion.floats()) {
    lowered.way = LoweredProgram::Way::kFloats;
    lowered.finish = fusion.factors();
  } else if (!fusion.is_jpeg() && !fusion.moved()) {
    lowered.way = LoweredProgram::Way::kValues;
    lowered.finish = fusion.factors();
  } else {
    lowered.way = fusion.is_jpeg() ? LoweredProgram::Way::kJpeg : LoweredProgram::Way::kPixels;
    lowered.moves = fusion.moves();
    // Without a normalisation, the cast to uint8 rounds as well.
    lowered.rounds = fusion.rounds() && (fusion.normalises() || made != DType::kUint8);
    lowered.image.jpeg = fusion.jpeg();
    lowered.image.scaled = lowered.program->scaled_decoding().has_value();
    lowered.image.output = {.height = static_cast<int>(type.shape[0]),
                            .width = static_cast<int>(type.shape[1]),
                            .channels = static_cast<int>(type.shape[2]),
                            .type = lowered.rounds ? PixelType::kUint8 : PixelTypeOf(made),
                            .read_soon = read_soon || !ends};
    NormaliseFactors factors = fusion.factors();
    if (lowered.rounds) {
      lowered.finish = std::move(factors);
      lowered.rounded_bytes = type.num_elements();
    } else {
      lowered.image.output.scale = std::move(factors.scale);
      lowered.image.output.bias = std::move(factors.bias);
    }
    if (!fusion.is_jpeg()) {
      // The size of decode_raw's image, or of the program's input, which may vary.
      const bool decodes = lowered.program->input().element == ElementType::kBytes;
      const std::vector<int64_t>& stored =
          decodes ? lowered.program->steps().front().output.shape : lowered.program->input().shape;
      lowered.stored_height = static_cast<int>(stored[0]);
      lowered.stored_width = static_cast<int>(stored[1]);
    }
  }
  if (lowered.has_rest()) AddRest(rest, type.num_bytes(), lowered);
  return lowered;
}

std::vector<v1::TransformRun> RunsOf(const LoweredProgram& lowered) {
  size_t fused = lowered.way == LoweredProgram::Way::kInterpreter ? 0 : lowered.rest;
  // A resample that gives no rows is the last step before the rest, and runs by itself.
  if (lowered.resample.has_value() && !lowered.resamples_rows()) --fused;
  std::vector<v1::TransformRun> runs(fused, v1::FUSED);
  const std::vector<Program::Step>& steps = lowered.program->steps();
  for (size_t i = fused; i < steps.size(); ++i) {
    const ValueType& input = i == 0 ? lowered.program->input() : steps[i - 1].output;
    const bool by_row = steps[i].operation->by_row() != ByRow::kNo && IsFloatImage(input);
    runs.push_back(by_row ? v1::BY_ROW : v1::ALONE);
  }
  return runs;
}

}  // namespace systole
