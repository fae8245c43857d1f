#include "core/operations/program_runner.h"

#include <utility>

#include "core/image/window/crop.h"
#include "core/interrupt/interrupt.h"
#include "core/numeric/canonical_nan.h"
#include "core/numeric/cast.h"
#include "core/numeric/normalise.h"
#include "core/operations/data_type.h"
#include "core/operations/ops/plain_image.h"
#include "core/operations/ops/whole_image.h"
#include "core/status/status_macros.h"
#include "core/tensor/cast_int64s.h"

namespace systole {
namespace {

using Way = LoweredProgram::Way;

absl::Span<const uint8_t> AsBytes(absl::string_view chars) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(chars.data()), chars.size());
}

}  // namespace

absl::StatusOr<ProgramRunner> ProgramRunner::Create(const LoweredProgram& program,
                                                    std::shared_ptr<HuffmanDecoder> decoder) {
  if (program.way == Way::kInterpreter && program.program != nullptr &&
      program.program->input().element == ElementType::kBytes) {
    // Checks libjpeg before any record is read. If libjpeg can decode nothing, no record is at
    // fault.
    SYSTOLE_RETURN_IF_ERROR(JpegDecoder::Create().status());
  }
  if (!program.decodes_jpeg() && program.way != Way::kPixels) return ProgramRunner(std::nullopt);
  ImageTransformerOptions options = program.image;
  options.jpeg.huffman_decoder = std::move(decoder);
  SYSTOLE_ASSIGN_OR_RETURN(ImageTransformer transformer, ImageTransformer::Create(options));
  return ProgramRunner(std::move(transformer));
}

absl::StatusOr<ImageTransformer*> ProgramRunner::Begin(const LoweredProgram& program,
                                                       absl::string_view bytes,
                                                       const ExampleKey& example) {
  if (!program.decodes_jpeg()) return nullptr;
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, transformer_->ReadHeader(bytes));
  SYSTOLE_ASSIGN_OR_RETURN(const ImageWindow window,
                           WindowOf(program.moves, info.height, info.width, example));
  if (program.way == Way::kWindow) {
    SYSTOLE_RETURN_IF_ERROR(CheckValueBytes(ElementType::kUint8, window.rect.height,
                                            window.rect.width, program.image.output.channels));
  }
  SYSTOLE_RETURN_IF_ERROR(transformer_->Start(window.rect, window.mirrored));
  return &*transformer_;
}

void ProgramRunner::Drop() {
  if (transformer_.has_value()) transformer_->Drop();
}

absl::Status ProgramRunner::Run(const LoweredProgram& program, const Input& input,
                                const ExampleKey& example, std::vector<uint8_t>& pixels,
                                absl::Span<uint8_t> out) {
  Value value;
  size_t first = 0;
  if (program.way == Way::kInterpreter) {
    value.type = program.program->input();
    value.bytes = input.bytes;
    if (value.type.element == ElementType::kUint8) {
      value.type.shape.assign(input.shape.begin(), input.shape.end());
      SYSTOLE_RETURN_IF_ERROR(NeedValues(value.type));
      value.uint8s.assign(input.bytes.begin(), input.bytes.end());
    }
    value.int64s.assign(input.int64s.begin(), input.int64s.end());
  } else if (program.way == Way::kWindow && !program.resamples_rows()) {
    SYSTOLE_ASSIGN_OR_RETURN(value, MakeWindow(program));
    first = program.rest;
  } else if (program.has_rest()) {
    value = Value::Create(program.fused.element, program.fused.shape);
    const DType dtype =
        program.fused.element == ElementType::kUint8 ? DType::kUint8 : DType::kFloat32;
    SYSTOLE_RETURN_IF_ERROR(RunFused(program, input, example, dtype, pixels, value.memory()));
    first = program.rest;
  } else {
    return RunFused(program, input, example, program.dtype, pixels, out);
  }
  return RunFrom(program, std::move(value), example, first, out);
}

absl::Status ProgramRunner::RunFrom(const LoweredProgram& program, Value value,
                                    const ExampleKey& example, size_t first,
                                    absl::Span<uint8_t> out) {
  RowChanges changes;
  SYSTOLE_ASSIGN_OR_RETURN(
      value, program.program->Run(std::move(value), example, first, program.rest_end, changes));
  const PixelType type = PixelTypeOf(program.dtype);
  const bool normalises = program.rest_end < program.program->steps().size();
  if (normalises && IsFloatImage(value.type)) {
    changes.Add(NormaliseRows(program.last));
  } else if (normalises) {
    for (float& x : value.floats) x = CanonicalNan(x);
    const Normalisation factors = {.scale = program.last.scale, .bias = program.last.bias};
    const auto channels = static_cast<int>(program.last.scale.size());
    return value.type.element == ElementType::kUint8
               ? NormaliseUint8(value.uint8s, channels, factors, type, out)
               : NormaliseFloat(value.floats, channels, factors, type, out);
  }
  if (value.type.element == ElementType::kInt64) {
    return CastInt64s(value.int64s, program.dtype, out);
  }
  if (value.type.element == ElementType::kUint8) {
    return NormaliseUint8(value.uint8s, 1, Normalisation(), type, out);
  }
  const size_t bytes = PixelTypeBytes(type);
  changes.Make(value, [&](size_t begin, absl::Span<const float> floats) {
    CastFloats(floats, type, out.subspan(begin * bytes, floats.size() * bytes));
  });
  return InterruptRequested() ? InterruptedError() : absl::OkStatus();
}

absl::Status ProgramRunner::RunFused(const LoweredProgram& program, const Input& input,
                                     const ExampleKey& example, DType dtype,
                                     std::vector<uint8_t>& pixels, absl::Span<uint8_t> out) {
  const Normalisation factors = {.scale = program.finish.scale, .bias = program.finish.bias};
  const auto channels = static_cast<int>(program.finish.scale.size());
  switch (program.way) {
    case Way::kFloats:
      return NormaliseFloat(input.floats, channels, factors, PixelTypeOf(dtype), out);
    case Way::kValues:
      return NormaliseUint8(AsBytes(input.bytes), channels, factors, PixelTypeOf(dtype), out);
    case Way::kWindow:
      return ResampleWindow(program, example, dtype, pixels, out);
    default:
      break;
  }
  if (!program.rounds) return Transform(program, input, example, out);
  pixels.resize(out.size() / static_cast<size_t>(DTypeBytes(dtype)));
  SYSTOLE_RETURN_IF_ERROR(Transform(program, input, example, absl::MakeSpan(pixels)));
  return NormaliseUint8(pixels, channels, factors, PixelTypeOf(dtype), out);
}

absl::StatusOr<Value> ProgramRunner::DecodeWindow(const LoweredProgram& program,
                                                  std::vector<uint8_t> memory) {
  const CropRect window = transformer_->crop();
  Value value;
  value.type = {.element = ElementType::kUint8,
                .shape = {window.height, window.width, program.image.output.channels}};
  if (const absl::Status status = NeedValues(value.type); !status.ok()) {
    Drop();
    return status;
  }
  value.uint8s = std::move(memory);
  value.uint8s.resize(static_cast<size_t>(value.type.num_elements()));
  SYSTOLE_RETURN_IF_ERROR(transformer_->FinishPixels(absl::MakeSpan(value.uint8s)));
  return value;
}

absl::StatusOr<Value> ProgramRunner::MakeWindow(const LoweredProgram& program) {
  SYSTOLE_ASSIGN_OR_RETURN(Value window, DecodeWindow(program, {}));
  if (!program.resample.has_value()) return window;
  const CropRect whole =
      WholeImage(static_cast<int>(window.height()), static_cast<int>(window.width()));
  const int height = program.resample->height;
  const int width = program.resample->width;
  SYSTOLE_ASSIGN_OR_RETURN(Value made, ResampleFast(window, whole, program.resample->options,
                                                    WholeImage(height, width), height, width));
  // A resize that was interrupted may leave any values.
  if (InterruptRequested()) return InterruptedError();
  return made;
}

absl::Status ProgramRunner::ResampleWindow(const LoweredProgram& program, const ExampleKey& example,
                                           DType dtype, std::vector<uint8_t>& pixels,
                                           absl::Span<uint8_t> out) {
  SYSTOLE_ASSIGN_OR_RETURN(Value window, DecodeWindow(program, std::move(pixels)));
  bool mirrored = false;
  for (const MirrorPart& mirror : program.mirrors) mirrored ^= mirror.mirrored(example);
  const Normalisation factors = {.scale = program.finish.scale, .bias = program.finish.bias};
  const auto channels = static_cast<int>(program.finish.scale.size());
  const auto row_values = static_cast<size_t>(program.resample->width * window.channels());
  const size_t row_bytes = row_values * static_cast<size_t>(DTypeBytes(dtype));
  absl::Status status;
  const auto take = [&](int first, int count, const float* rows) {
    const auto place = static_cast<size_t>(first) * row_bytes;
    const auto many = static_cast<size_t>(count);
    status.Update(NormaliseFloat(absl::MakeConstSpan(rows, many * row_values), channels, factors,
                                 PixelTypeOf(dtype), out.subspan(place, many * row_bytes)));
  };
  status.Update(ResampleRows(window, program.resample->options, program.resample->height,
                             program.resample->width, mirrored, take));
  pixels = std::move(window.uint8s);
  if (pixels.capacity() > kMaxKeptWindowBytes) std::vector<uint8_t>().swap(pixels);
  return InterruptRequested() ? InterruptedError() : status;
}

absl::Status ProgramRunner::Transform(const LoweredProgram& program, const Input& input,
                                      const ExampleKey& example, absl::Span<uint8_t> out) {
  if (program.way == Way::kJpeg) return transformer_->Finish(out);
  const bool varies = !input.shape.empty();
  const int height = varies ? static_cast<int>(input.shape[0]) : program.stored_height;
  const int width = varies ? static_cast<int>(input.shape[1]) : program.stored_width;
  SYSTOLE_ASSIGN_OR_RETURN(const ImageWindow window,
                           WindowOf(program.moves, height, width, example));
  return transformer_->TransformPixels(AsBytes(input.bytes), height, width, window.rect,
                                       window.mirrored, out);
}

}  // namespace systole
