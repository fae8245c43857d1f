#include "core/pipeline/example_filler.h"

#include <cstring>
#include <new>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/pipeline/feature_schema.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using Source = OutputPlan::Source;

// [height, width, channels] -> [channels, height, width].
template <typename T>
void ToChannelsFirst(const uint8_t* from, absl::Span<const int64_t> shape, uint8_t* to) {
  const int64_t pixels = shape[0] * shape[1];
  const int64_t channels = shape[2];
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t p = 0; p < pixels; ++p) {
      std::memcpy(to + (c * pixels + p) * static_cast<int64_t>(sizeof(T)),
                  from + (p * channels + c) * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
  }
}

bool UsesDefault(const OutputPlan& output, const FeatureView& feature) {
  return output.default_values.has_value() && feature.kind() == FeatureKind::kMissing;
}

// `status` with the output's name.
absl::Status OfOutput(const FeedPlan& plan, const OutputPlan& output, const absl::Status& status) {
  if (status.ok()) return status;
  const SliceTensor& tensor = plan.layout().tensors()[static_cast<size_t>(output.tensor)];
  return absl::Status(status.code(),
                      absl::StrCat("output '", tensor.spec.name, "': ", status.message()));
}

}  // namespace

absl::Status FillerScratch::Reserve(const FeedPlan& plan) {
  for (const OutputPlan& output : plan.outputs()) {
    const int64_t bytes =
        plan.layout().tensors()[static_cast<size_t>(output.tensor)].example_bytes();
    if (output.layout == v1::NHWC || example.size() >= bytes) continue;
    absl::StatusOr<AlignedBuffer> larger = AlignedBuffer::Create(bytes);
    if (!larger.ok()) return absl::UnavailableError(larger.status().message());
    example = *std::move(larger);
  }
  return absl::OkStatus();
}

int64_t FillerScratch::bytes() const {
  return example.size() + static_cast<int64_t>(pixels.capacity()) + lists.bytes();
}

absl::StatusOr<ExampleFiller> ExampleFiller::Create(
    const FeedPlan& plan, std::vector<std::shared_ptr<HuffmanDecoder>>& decoders) {
  std::vector<ProgramRunner> runners;
  size_t jpegs = 0;
  for (const OutputPlan& output : plan.outputs()) {
    std::shared_ptr<HuffmanDecoder> decoder;
    if (output.program.way == LoweredProgram::Way::kJpeg) {
      if (jpegs == decoders.size()) decoders.push_back(std::make_shared<HuffmanDecoder>());
      decoder = decoders[jpegs++];
    }
    SYSTOLE_ASSIGN_OR_RETURN(ProgramRunner runner,
                             ProgramRunner::Create(output.program, std::move(decoder)));
    runners.push_back(std::move(runner));
  }
  return ExampleFiller(std::move(runners), plan.parser().names().size());
}

absl::Status ExampleFiller::Begin(const FeedPlan& plan, int64_t epoch, int64_t record,
                                  absl::string_view payload, PairedDecoding& decoding, int lane) {
  payload_ = payload;
  example_ = {.seed = plan.spec().seed(), .epoch = epoch, .record = record};
  if (plan.parses_examples()) {
    SYSTOLE_RETURN_IF_ERROR(plan.parser().Parse(payload, absl::MakeSpan(features_)));
  }
  for (size_t i = 0; i < runners_.size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    if (!output.is_image() || output.program.way != LoweredProgram::Way::kJpeg) continue;
    const absl::StatusOr<absl::string_view> jpeg = BytesOf(output);
    if (!jpeg.ok()) return OfOutput(plan, output, jpeg.status());
    const absl::StatusOr<ImageTransformer*> image =
        runners_[i].Begin(output.program, *jpeg, example_);
    if (!image.ok()) return OfOutput(plan, output, image.status());
    decoding.Add(lane, **image);
  }
  return absl::OkStatus();
}

void ExampleFiller::Drop() {
  for (ProgramRunner& runner : runners_) runner.Drop();
}

absl::Status ExampleFiller::Fill(const FeedPlan& plan, int64_t slot, FillerScratch& scratch,
                                 uint8_t* slice) {
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    const SliceTensor& tensor = plan.layout().tensors()[static_cast<size_t>(output.tensor)];
    const int64_t example_bytes = tensor.example_bytes();
    // Batch-major outputs are written straight into their place; the others go through scratch.
    uint8_t* place = slice + tensor.offset + slot * example_bytes;
    const bool in_place = output.layout == v1::NHWC;
    const absl::Span<uint8_t> out = absl::MakeSpan(in_place ? place : scratch.example.data(),
                                                   static_cast<size_t>(example_bytes));
    uint8_t* length = nullptr;
    if (output.padded.has_value()) {
      const auto at = static_cast<size_t>(output.padded->length_tensor);
      length = slice + plan.layout().tensors()[at].offset + slot * int64_t{sizeof(int32_t)};
    }
    SYSTOLE_RETURN_IF_ERROR(
        OfOutput(plan, output, FillOutput(output, runners_[i], scratch, out, length)));
    if (output.layout == v1::HWCN || output.layout == v1::HWCN_TILED) {
      PlaceExample(tensor, slot, out.data(), slice);
    } else if (output.layout == v1::NCHW) {
      switch (DTypeBytes(output.dtype)) {
        case 1:
          ToChannelsFirst<uint8_t>(out.data(), output.shape, place);
          break;
        case 2:
          ToChannelsFirst<uint16_t>(out.data(), output.shape, place);
          break;
        case 4:
          ToChannelsFirst<uint32_t>(out.data(), output.shape, place);
          break;
        default:
          ToChannelsFirst<uint64_t>(out.data(), output.shape, place);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ExampleFiller::FillOutput(const OutputPlan& output, ProgramRunner& runner,
                                       FillerScratch& scratch, absl::Span<uint8_t> out,
                                       uint8_t* length) const {
  // Scratch and the references' values grow as they need to.
  try {
    return output.padded.has_value() ? FillPadded(output, scratch, out, length)
                                     : FillValues(output, runner, scratch, out);
  } catch (const std::bad_alloc&) {
    return absl::UnavailableError("malloc refused memory for an example on its way");
  }
}

absl::Status ExampleFiller::FillPadded(const OutputPlan& output, FillerScratch& scratch,
                                       absl::Span<uint8_t> out, uint8_t* length) const {
  SYSTOLE_ASSIGN_OR_RETURN(const int32_t items,
                           output.feature < 0
                               ? WritePadded(output, payload_, out)
                               : WritePadded(output, features_[static_cast<size_t>(output.feature)],
                                             scratch.lists, out));
  std::memcpy(length, &items, sizeof(items));
  return absl::OkStatus();
}

absl::Status ExampleFiller::FillValues(const OutputPlan& output, ProgramRunner& runner,
                                       FillerScratch& scratch, absl::Span<uint8_t> out) const {
  const auto count = static_cast<size_t>(output.stored_elements);
  switch (output.source) {
    case Source::kRecordId:
      return FillInt64s(output, runner, {example_.record}, scratch, out);
    case Source::kInt64List: {
      const FeatureView& feature = features_[static_cast<size_t>(output.feature)];
      if (UsesDefault(output, feature)) {
        SpreadDefault(output, scratch.lists.int64s);
        return FillInt64s(output, runner, scratch.lists.int64s, scratch, out);
      }
      SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kInt64, output.stored_elements));
      scratch.lists.int64s.resize(count);
      SYSTOLE_RETURN_IF_ERROR(feature.CopyInt64s(absl::MakeSpan(scratch.lists.int64s)));
      return FillInt64s(output, runner, scratch.lists.int64s, scratch, out);
    }
    case Source::kFloatList: {
      const FeatureView& feature = features_[static_cast<size_t>(output.feature)];
      if (UsesDefault(output, feature)) {
        SpreadDefault(output, scratch.lists.floats);
      } else {
        SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kFloat, output.stored_elements));
        scratch.lists.floats.resize(count);
        SYSTOLE_RETURN_IF_ERROR(feature.CopyFloats(absl::MakeSpan(scratch.lists.floats)));
      }
      return runner.Run(output.program, {.floats = scratch.lists.floats}, example_, scratch.pixels,
                        out);
    }
    case Source::kBytes:
      break;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view bytes, BytesOf(output));
  const std::optional<int64_t> wanted = output.program.program->input_bytes();
  if (wanted.has_value() && static_cast<int64_t>(bytes.size()) != *wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("decode_raw found ", bytes.size(), " bytes, the spec's shape has ", *wanted));
  }
  return runner.Run(output.program, {.bytes = bytes}, example_, scratch.pixels, out);
}

absl::Status ExampleFiller::FillInt64s(const OutputPlan& output, ProgramRunner& runner,
                                       absl::Span<const int64_t> values, FillerScratch& scratch,
                                       absl::Span<uint8_t> out) const {
  if (output.program.program == nullptr) return CastInt64s(values, output.dtype, out);
  return runner.Run(output.program, {.int64s = values}, example_, scratch.pixels, out);
}

absl::StatusOr<absl::string_view> ExampleFiller::BytesOf(const OutputPlan& output) const {
  if (output.feature < 0) return payload_;
  const FeatureView& feature = features_[static_cast<size_t>(output.feature)];
  if (UsesDefault(output, feature)) return output.default_values->bytes;
  SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kBytes, 1));
  return feature.BytesAt(0);
}

}  // namespace systole
