#include "client/feed/step_finisher.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/tensor/dtype.h"

namespace systole {
namespace {

// Whether the values of `output` are whole numbers of uint8 until they are normalised and cast.
bool IsUint8BeforeItsEnd(const v1::Output& output) {
  bool decoded = false;
  bool whole = false;
  for (const v1::Transform& transform : output.transforms()) {
    switch (transform.kind_case()) {
      case v1::Transform::kDecodeJpeg:
      case v1::Transform::kDecodeRaw:
        decoded = true;
        whole = true;
        break;
      case v1::Transform::kRandomResizedCrop:
      case v1::Transform::kCenterCrop:
      case v1::Transform::kResize:
        whole = false;  // Interpolated.
        break;
      case v1::Transform::kRoundToUint8:
        whole = true;
        break;
      case v1::Transform::kRandomFlip:
      case v1::Transform::kNormalize:
        break;
      case v1::Transform::KIND_NOT_SET:
        return false;
    }
  }
  return decoded && whole;
}

// The output as it is asked for, to be finished here.
v1::Output Unfinished(const v1::Output& output) {
  v1::Output unfinished = output;
  unfinished.clear_transforms();
  for (const v1::Transform& transform : output.transforms()) {
    if (!transform.has_normalize()) *unfinished.add_transforms() = transform;
  }
  unfinished.set_dtype(v1::UINT8);
  return unfinished;
}

// What finishes `output`, whose tensor is `tensor`; none if it has to travel as it is.
std::optional<TensorNormaliser> NormaliserOf(const v1::Output& output, const SliceTensor& tensor) {
  PixelType type;
  if (output.dtype() == v1::FLOAT32 && tensor.spec.dtype == DType::kFloat32) {
    type = PixelType::kFloat32;
  } else if (output.dtype() == v1::BFLOAT16 && tensor.spec.dtype == DType::kBfloat16) {
    type = PixelType::kBfloat16;
  } else {
    return std::nullopt;
  }
  if (!IsUint8BeforeItsEnd(output)) return std::nullopt;
  v1::Normalize normalize;
  for (const v1::Transform& transform : output.transforms()) {
    if (transform.has_normalize()) normalize = transform.normalize();
  }
  const absl::StatusOr<NormaliseFactors> factors =
      FactorsOf(normalize.scale(), normalize.mean(), normalize.stddev());
  // What is wrong with a spec is for the server to say.
  if (!factors.ok()) return std::nullopt;
  const std::vector<int64_t>& shape = tensor.spec.shape;
  const auto channels = static_cast<int64_t>(factors->scale.size());
  int64_t inner = 1;
  if (channels > 1) {
    // Where the channels stand, and the values of one channel that follow each other.
    size_t at = shape.size() - 1;
    if (output.layout() != v1::NHWC) {
      if (shape.size() != 4) return std::nullopt;
      at = output.layout() == v1::NCHW ? 1 : 2;
    }
    if (shape[at] != channels) return std::nullopt;
    for (size_t i = at + 1; i < shape.size(); ++i) inner *= shape[i];
  }
  absl::StatusOr<TensorNormaliser> normaliser = TensorNormaliser::Create(
      static_cast<int>(std::min<int64_t>(channels, kMaxNormaliseChannels + 1)), inner,
      {.scale = factors->scale, .bias = factors->bias}, type);
  if (!normaliser.ok()) return std::nullopt;
  return *std::move(normaliser);
}

}  // namespace

std::shared_ptr<const StepFinisher> StepFinisher::Create(
    const v1::FeedSpec& spec, std::shared_ptr<const StepShape> finished) {
  v1::FeedSpec compact = spec;
  compact.clear_wire();
  const absl::Span<const SliceTensor> tensors = finished->layout.tensors();
  std::vector<SliceTensor> travelling(tensors.begin(), tensors.end());
  std::vector<std::optional<TensorNormaliser>> normalisers(travelling.size());
  bool any = false;
  for (v1::Output& output : *compact.mutable_outputs()) {
    const int index = finished->layout.IndexOf(output.name());
    if (index < 0) continue;
    SliceTensor& tensor = travelling[static_cast<size_t>(index)];
    std::optional<TensorNormaliser> normaliser = NormaliserOf(output, tensor);
    if (!normaliser.has_value()) continue;
    normalisers[static_cast<size_t>(index)] = std::move(normaliser);
    tensor.spec.dtype = DType::kUint8;
    output = Unfinished(output);
    any = true;
  }
  if (!any) return nullptr;
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(std::move(travelling));
  if (!layout.ok()) return nullptr;
  auto shape = std::make_shared<const StepShape>(StepShape{
      .layout = *layout, .core_begin = finished->core_begin, .core_end = finished->core_end});
  return std::shared_ptr<const StepFinisher>(new StepFinisher(
      std::move(compact), std::move(shape), std::move(finished), std::move(normalisers)));
}

double StepFinisher::ratio() const {
  return static_cast<double>(finished_->layout.payload_bytes()) /
         static_cast<double>(shape_->layout.payload_bytes());
}

absl::Status StepFinisher::Place(const ReceivedChunk& chunk, uint8_t* step) const {
  const ChunkHeader& header = chunk.header();
  const auto index = static_cast<size_t>(header.tensor);
  const SliceTensor& tensor = finished_->layout.tensors()[index];
  uint8_t* const begin = step +
                         finished_->layout.slice_bytes() * (header.core - finished_->core_begin) +
                         tensor.offset;
  const std::optional<TensorNormaliser>& normaliser = normalisers_[index];
  if (!normaliser.has_value()) {
    return chunk.CopyTo(
        absl::MakeSpan(begin + header.offset, static_cast<size_t>(chunk.data_bytes())));
  }
  int64_t value = header.offset;  // One byte each on the wire.
  const int64_t value_bytes = DTypeBytes(tensor.spec.dtype);
  return chunk.ForEachPiece([&](absl::Span<const uint8_t> piece) {
    normaliser->Apply(value, piece, begin + value * value_bytes);
    value += static_cast<int64_t>(piece.size());
  });
}

void StepFinisher::Complete(uint8_t* step) const {
  const SliceLayout& layout = finished_->layout;
  const int64_t valid_offset = layout.tensors()[static_cast<size_t>(layout.valid_index())].offset;
  const auto batch = static_cast<size_t>(layout.per_core_batch());
  for (int core = 0; core < finished_->num_cores(); ++core) {
    uint8_t* const slice = step + layout.slice_bytes() * core;
    const uint8_t* const valid = slice + valid_offset;
    for (const uint8_t* place = valid;
         (place = static_cast<const uint8_t*>(
              std::memchr(place, 0, batch - static_cast<size_t>(place - valid)))) != nullptr;
         ++place) {
      ClearExample(layout, place - valid, slice);
    }
  }
}

}  // namespace systole
