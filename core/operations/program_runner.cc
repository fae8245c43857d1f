#include "core/operations/program_runner.h"

#include <utility>

#include "core/image/window/crop.h"
#include "core/interrupt/interrupt.h"
#include "core/interrupt/lap_times.h"
#include "core/numeric/canonical_nan.h"
#include "core/numeric/cast.h"
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
    // Checks libjpeg before any record is read. Otherwise a libjpeg that cannot decode would look
    // like a fault of the records.
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
  NoteLap(program.image.decode_part);
  return &*transformer_;
}

void ProgramRunner::Drop() {
  if (transformer_.has_value()) transformer_->Drop();
}

absl::Status ProgramRunner::Run(const LoweredProgram& program, const Input& input,
                                const ExampleKey& example, std::vector<uint8_t>& pixels,
                                absl::Span<uint8_t> out) {
  Value value;
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
    SYSTOLE_ASSIGN_OR_RETURN(value, Lapped(program.pass_part, MakeWindow(program)));
  } else if (program.has_rest()) {
    const ValueType& made = program.program->type_before(program.rest);
    value = Value::Create(made.element, made.shape);
    NoteLap(program.pass_part);  // This lap took the memory of the pass's result from the kernel.
    SYSTOLE_RETURN_IF_ERROR(
        Lapped(program.pass_part, RunFused(program, input, example, pixels, value.memory())));
  } else {
    return Lapped(program.pass_part, RunFused(program, input, example, pixels, out));
  }
  return RunFrom(program, std::move(value), example, program.rest, out);
}

absl::Status ProgramRunner::RunFrom(const LoweredProgram& program, Value value,
                                    const ExampleKey& example, size_t first,
                                    absl::Span<uint8_t> out) {
  RowChanges changes;
  SYSTOLE_ASSIGN_OR_RETURN(
      value, program.program->Run(std::move(value), example, first, program.rest_end(), changes));
  if (value.type.element == ElementType::kInt64) {
    return CastInt64s(value.int64s, program.dtype, out);
  }
  const PixelType type = PixelTypeOf(program.dtype);
  const int last = program.program->number_of(program.rest_end());
  if (value.type.element == ElementType::kUint8) {
    return program.last.has_value()
               ? Lapped(last, NormaliseUint8(value.uint8s, *program.last, type, out))
               : NormaliseUint8(value.uint8s, 1, Normalisation(), type, out);
  }
  if (program.last.has_value()) {
    for (float& x : value.floats) x = CanonicalNan(x);
    return Lapped(last, NormaliseFloat(value.floats, *program.last, type, out));
  }
  const size_t bytes = PixelTypeBytes(type);
  changes.Make(value, [&](size_t begin, absl::Span<const float> floats) {
    CastFloats(floats, type, out.subspan(begin * bytes, floats.size() * bytes));
    NoteLap(LapTimes::kNoPart);
  });
  return InterruptRequested() ? InterruptedError() : absl::OkStatus();
}

absl::Status ProgramRunner::RunFused(const LoweredProgram& program, const Input& input,
                                     const ExampleKey& example, std::vector<uint8_t>& pixels,
                                     absl::Span<uint8_t> out) {
  const NormaliseFactors& finish = program.finish;
  if (program.way == Way::kFloats) return NormaliseFloat(input.floats, finish, program.made, out);
  if (program.way == Way::kValues) {
    return NormaliseUint8(AsBytes(input.bytes), finish, program.made, out);
  }
  if (program.way == Way::kWindow) return ResampleWindow(program, example, pixels, out);
  if (!program.rounds) return Transform(program, input, example, out);
  pixels.resize(out.size() / PixelTypeBytes(program.made));
  SYSTOLE_RETURN_IF_ERROR(Transform(program, input, example, absl::MakeSpan(pixels)));
  return NormaliseUint8(pixels, finish, program.made, out);
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
  NoteLap(program.image.decode_part);
  return value;
}

absl::StatusOr<Value> ProgramRunner::MakeWindow(const LoweredProgram& program) {
  SYSTOLE_ASSIGN_OR_RETURN(Value window, DecodeWindow(program, {}));
  if (!program.resample.has_value()) return window;
  const ResamplePart& to = *program.resample;
  const CropRect& cut = transformer_->crop();
  SYSTOLE_ASSIGN_OR_RETURN(Value made,
                           ResampleFast(window, WholeImage(cut.height, cut.width), to.options,
                                        WholeImage(to.height, to.width), to.height, to.width));
  // A resize that was interrupted may leave wrong values.
  if (InterruptRequested()) return InterruptedError();
  return made;
}

absl::Status ProgramRunner::ResampleWindow(const LoweredProgram& program, const ExampleKey& example,
                                           std::vector<uint8_t>& pixels, absl::Span<uint8_t> out) {
  SYSTOLE_ASSIGN_OR_RETURN(Value window, DecodeWindow(program, std::move(pixels)));
  const ResamplePart& to = *program.resample;
  SYSTOLE_ASSIGN_OR_RETURN(const ImageWindow result,
                           WindowOf(program.mirrors, to.height, to.width, example));
  const auto row_values = static_cast<size_t>(to.width * window.channels());
  const size_t row_bytes = row_values * PixelTypeBytes(program.made);
  absl::Status status;
  const auto take = [&](size_t first, size_t count, const float* rows) {
    status.Update(NormaliseFloat({rows, count * row_values}, program.finish, program.made,
                                 out.subspan(first * row_bytes, count * row_bytes)));
  };
  status.Update(ResampleRows(window, to.options, to.height, to.width, result.mirrored, take));
  pixels = std::move(window.uint8s);
  if (pixels.capacity() > kMaxKeptWindowBytes) std::vector<uint8_t>().swap(pixels);
  return InterruptRequested() ? InterruptedError() : status;
}

absl::Status ProgramRunner::Transform(const LoweredProgram& program, const Input& input,
                                      const ExampleKey& example, absl::Span<uint8_t> out) {
  if (program.way == Way::kJpeg) return transformer_->Finish(out);
  // If the first step is decode_raw, the input is bytes, and the step's output has the image's
  // size. Otherwise the input is pixels, and has the size itself.
  const bool decodes = program.program->input().element == ElementType::kBytes;
  const absl::Span<const int64_t> stored =
      decodes ? program.program->steps().front().output.shape : input.shape;
  const auto height = static_cast<int>(stored[0]);
  const auto width = static_cast<int>(stored[1]);
  SYSTOLE_ASSIGN_OR_RETURN(const ImageWindow window,
                           WindowOf(program.moves, height, width, example));
  return transformer_->TransformPixels(AsBytes(input.bytes), height, width, window.rect,
                                       window.mirrored, out);
}

}  // namespace systole
