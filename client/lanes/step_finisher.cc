#include "client/lanes/step_finisher.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/operations/compact_form.h"
#include "core/operations/lowered_program.h"
#include "core/tensor/dtype.h"

namespace systole {
namespace {

// What finishes tensor `tensor` of `output`, which travels as `form`; none if it cannot be, which
// the server will have reasons for.
std::optional<TensorNormaliser> NormaliserOf(const v1::Output& output, const CompactForm& form,
                                             const SliceTensor& tensor) {
  if (tensor.spec.dtype != static_cast<DType>(form.dtype)) return std::nullopt;
  const std::vector<int64_t>& shape = tensor.spec.shape;
  const auto channels = static_cast<int64_t>(form.factors.scale.size());
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
      {.scale = form.factors.scale, .bias = form.factors.bias}, PixelTypeOf(tensor.spec.dtype));
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
    std::optional<CompactForm> form = CompactFormOf(output, spec.mix());
    if (!form.has_value()) continue;
    std::optional<TensorNormaliser> normaliser = NormaliserOf(output, *form, tensor);
    if (!normaliser.has_value()) continue;
    normalisers[static_cast<size_t>(index)] = std::move(normaliser);
    tensor.spec.dtype = DType::kUint8;
    output = std::move(form->travels);
    any = true;
  }
  if (!any) return nullptr;
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(std::move(travelling));
  if (!layout.ok()) return nullptr;
  auto shape = std::make_shared<const StepShape>(StepShape{.layout = *layout,
                                                           .core_begin = finished->core_begin,
                                                           .core_end = finished->core_end,
                                                           .placement = finished->placement});
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
  uint8_t* const begin = step + finished_->OffsetOf(header.core, header.tensor);
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
  const auto batch = static_cast<size_t>(layout.per_core_batch());
  for (int core = finished_->core_begin; core < finished_->core_end; ++core) {
    const uint8_t* const valid = step + finished_->OffsetOf(core, layout.valid_index());
    for (const uint8_t* place = valid;
         (place = static_cast<const uint8_t*>(
              std::memchr(place, 0, batch - static_cast<size_t>(place - valid)))) != nullptr;
         ++place) {
      for (int index = 0; index < static_cast<int>(layout.tensors().size()); ++index) {
        ClearExample(layout.tensors()[static_cast<size_t>(index)], place - valid,
                     step + finished_->OffsetOf(core, index));
      }
    }
  }
}

}  // namespace systole
