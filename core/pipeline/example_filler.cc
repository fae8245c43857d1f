#include "core/pipeline/example_filler.h"

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/numeric/normalise.h"
#include "core/pipeline/output_compiler.h"
#include "core/random/counter_rng.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using Source = OutputPlan::Source;

// Which use a random draw is for: each has a stream of its own, so that adding one moves no other.
// Part of the content: never renumber.
constexpr uint32_t kCropDraws = 1;
constexpr uint32_t kFlipDraws = 2;

absl::Span<const uint8_t> AsBytes(absl::string_view chars) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(chars.data()), chars.size());
}

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

absl::Status FillInts(const OutputPlan& output, absl::Span<const int64_t> values,
                      absl::Span<uint8_t> out) {
  if (output.dtype == DType::kInt64) {
    std::memcpy(out.data(), values.data(), out.size());
    return absl::OkStatus();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < std::numeric_limits<int32_t>::min() ||
        values[i] > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("value ", values[i], " at index ", i,
                                                     " does not fit int32; use dtype: INT64"));
    }
    const auto narrow = static_cast<int32_t>(values[i]);
    std::memcpy(out.data() + i * sizeof(narrow), &narrow, sizeof(narrow));
  }
  return absl::OkStatus();
}

// As many factors as there are channels; one that leaves values alone if the output has none.
Normalisation NormalisationOf(const OutputPlan& output) {
  if (!output.normalize) return {};
  return {.scale = output.scale, .bias = output.bias};
}

// Normalises and casts, as the output says. client/feed/step_finisher.h does the same elsewhere.
absl::Status FinishUint8(const OutputPlan& output, absl::Span<const uint8_t> values,
                         absl::Span<uint8_t> out) {
  const Normalisation factors = NormalisationOf(output);
  return NormaliseUint8(values, static_cast<int>(factors.scale.size()), factors,
                        PixelTypeOf(output.dtype), out);
}

int64_t ExampleBytes(const SliceTensor& tensor) {
  return tensor.spec.num_bytes() / tensor.per_core_batch();
}

// Whether the result is mirrored.
bool FlipOf(const OutputPlan& output, uint64_t seed, int64_t epoch, int64_t record) {
  if (!output.flip) return false;
  CounterRng rng(seed, epoch, record, kFlipDraws);
  return DrawFlip(rng);
}

// `status` with the output's name.
absl::Status OfOutput(const FeedPlan& plan, const OutputPlan& output, const absl::Status& status) {
  if (status.ok()) return status;
  const SliceTensor& tensor = plan.layout().tensors()[static_cast<size_t>(output.tensor)];
  return absl::Status(status.code(),
                      absl::StrCat("output '", tensor.spec.name, "': ", status.message()));
}

}  // namespace

CropRect CropOf(const OutputPlan& output, uint64_t seed, int64_t epoch, int64_t record, int height,
                int width) {
  switch (output.crop) {
    case OutputPlan::Crop::kWhole:
      break;
    case OutputPlan::Crop::kCentre:
      return CentreCrop(output.centre_fraction, height, width);
    case OutputPlan::Crop::kRandomResized: {
      CounterRng rng(seed, epoch, record, kCropDraws);
      return RandomResizedCrop(output.random_resized_crop, height, width, rng);
    }
  }
  return WholeImage(height, width);
}

absl::Status FillerScratch::Reserve(const FeedPlan& plan) {
  for (const OutputPlan& output : plan.outputs()) {
    const int64_t bytes = ExampleBytes(plan.layout().tensors()[static_cast<size_t>(output.tensor)]);
    if (output.layout == v1::NHWC || example.size() >= bytes) continue;
    absl::StatusOr<AlignedBuffer> larger = AlignedBuffer::Create(bytes);
    if (!larger.ok()) return absl::UnavailableError(larger.status().message());
    example = *std::move(larger);
  }
  return absl::OkStatus();
}

int64_t FillerScratch::bytes() const {
  return example.size() +
         static_cast<int64_t>(pixels.capacity() + int64s.capacity() * sizeof(int64_t) +
                              floats.capacity() * sizeof(float));
}

absl::StatusOr<ExampleFiller> ExampleFiller::Create(
    const FeedPlan& plan, std::vector<std::shared_ptr<HuffmanDecoder>>& decoders) {
  std::vector<std::optional<ImageTransformer>> transformers(plan.outputs().size());
  size_t jpegs = 0;
  for (size_t i = 0; i < transformers.size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    if (!output.is_image()) continue;
    ImageTransformerOptions options = output.image;
    if (output.source == Source::kJpeg) {
      if (jpegs == decoders.size()) decoders.push_back(std::make_shared<HuffmanDecoder>());
      options.jpeg.huffman_decoder = decoders[jpegs++];
    }
    SYSTOLE_ASSIGN_OR_RETURN(transformers[i], ImageTransformer::Create(options));
  }
  return ExampleFiller(std::move(transformers), plan.parser().names().size());
}

absl::Status ExampleFiller::Begin(const FeedPlan& plan, int64_t epoch, int64_t record,
                                  absl::string_view payload) {
  payload_ = payload;
  epoch_ = epoch;
  record_ = record;
  if (plan.parses_examples()) {
    SYSTOLE_RETURN_IF_ERROR(plan.parser().Parse(payload, absl::MakeSpan(features_)));
  }
  for (size_t i = 0; i < transformers_.size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    if (output.source != Source::kJpeg) continue;
    SYSTOLE_RETURN_IF_ERROR(OfOutput(plan, output, BeginImage(plan, output, *transformers_[i])));
  }
  return absl::OkStatus();
}

void ExampleFiller::Drop() {
  for (std::optional<ImageTransformer>& transformer : transformers_) {
    if (transformer.has_value()) transformer->Drop();
  }
}

ImageTransformer* ExampleFiller::WaitingImage() {
  for (std::optional<ImageTransformer>& transformer : transformers_) {
    if (transformer.has_value() && !transformer->is_ahead()) return &*transformer;
  }
  return nullptr;
}

absl::Status ExampleFiller::BeginImage(const FeedPlan& plan, const OutputPlan& output,
                                       ImageTransformer& transformer) const {
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view jpeg, BytesOf(output));
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, transformer.ReadHeader(jpeg));
  const uint64_t seed = plan.spec().seed();
  return transformer.Start(CropOf(output, seed, epoch_, record_, info.height, info.width),
                           FlipOf(output, seed, epoch_, record_));
}

absl::Status ExampleFiller::Fill(const FeedPlan& plan, int64_t slot, FillerScratch& scratch,
                                 uint8_t* slice) {
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const OutputPlan& output = plan.outputs()[i];
    const SliceTensor& tensor = plan.layout().tensors()[static_cast<size_t>(output.tensor)];
    const int64_t example_bytes = ExampleBytes(tensor);
    // Batch-major outputs are written straight into their place; the others go through scratch.
    uint8_t* place = slice + tensor.offset + slot * example_bytes;
    const bool in_place = output.layout == v1::NHWC;
    const absl::Span<uint8_t> out = absl::MakeSpan(in_place ? place : scratch.example.data(),
                                                   static_cast<size_t>(example_bytes));
    absl::Status status;
    if (output.round_to_uint8) {
      scratch.pixels.resize(static_cast<size_t>(example_bytes / DTypeBytes(output.dtype)));
      status = FillImage(plan, output, *transformers_[i], absl::MakeSpan(scratch.pixels));
      if (status.ok()) status = FinishUint8(output, scratch.pixels, out);
    } else if (output.is_image()) {
      status = FillImage(plan, output, *transformers_[i], out);
    } else {
      status = FillValues(output, scratch, out);
    }
    SYSTOLE_RETURN_IF_ERROR(OfOutput(plan, output, status));
    if (output.layout == v1::HWCN) {
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

absl::Status ExampleFiller::FillImage(const FeedPlan& plan, const OutputPlan& output,
                                      ImageTransformer& transformer,
                                      absl::Span<uint8_t> out) const {
  if (output.source == Source::kJpeg) return transformer.Finish(out);
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view pixels, RawBytesOf(output));
  const int height = static_cast<int>(output.stored_shape[0]);
  const int width = static_cast<int>(output.stored_shape[1]);
  const uint64_t seed = plan.spec().seed();
  return transformer.TransformPixels(AsBytes(pixels), height, width,
                                     CropOf(output, seed, epoch_, record_, height, width),
                                     FlipOf(output, seed, epoch_, record_), out);
}

absl::Status ExampleFiller::FillValues(const OutputPlan& output, FillerScratch& scratch,
                                       absl::Span<uint8_t> out) const {
  if (output.source == Source::kRecordId) return FillInts(output, {record_}, out);
  if (output.source == Source::kRawBytes) {
    SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view bytes, RawBytesOf(output));
    return FinishUint8(output, AsBytes(bytes), out);
  }
  const FeatureView& feature = features_[static_cast<size_t>(output.feature)];
  const auto count = static_cast<size_t>(output.stored_elements);
  if (output.source == Source::kInt64List) {
    SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kInt64, output.stored_elements));
    scratch.int64s.resize(count);
    SYSTOLE_RETURN_IF_ERROR(feature.CopyInt64s(absl::MakeSpan(scratch.int64s)));
    return FillInts(output, scratch.int64s, out);
  }
  SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kFloat, output.stored_elements));
  scratch.floats.resize(count);
  SYSTOLE_RETURN_IF_ERROR(feature.CopyFloats(absl::MakeSpan(scratch.floats)));
  const Normalisation factors = NormalisationOf(output);
  return NormaliseFloat(scratch.floats, static_cast<int>(factors.scale.size()), factors,
                        PixelTypeOf(output.dtype), out);
}

absl::StatusOr<absl::string_view> ExampleFiller::BytesOf(const OutputPlan& output) const {
  if (output.feature < 0) return payload_;
  const FeatureView& feature = features_[static_cast<size_t>(output.feature)];
  SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kBytes, 1));
  return feature.BytesAt(0);
}

absl::StatusOr<absl::string_view> ExampleFiller::RawBytesOf(const OutputPlan& output) const {
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view bytes, BytesOf(output));
  if (static_cast<int64_t>(bytes.size()) != output.stored_elements) {
    return absl::InvalidArgumentError(absl::StrCat("decode_raw found ", bytes.size(),
                                                   " bytes, the spec's shape has ",
                                                   output.stored_elements));
  }
  return bytes;
}

}  // namespace systole
