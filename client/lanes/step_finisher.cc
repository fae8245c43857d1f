#include "client/lanes/step_finisher.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/status/status_macros.h"
#include "core/tensor/dtype.h"

namespace systole {

absl::StatusOr<StepFinisher::Rule> StepFinisher::RuleOf(const v1::TensorDescription& tensor) {
  if (!tensor.has_compact()) return Rule();
  const v1::CompactForm& form = tensor.compact();
  const PixelType type = PixelTypeOf(static_cast<DType>(tensor.dtype()));
  const bool has_table = !form.table().empty();
  const int channels = has_table ? form.table_size() / kTableEntries : form.scale_size();
  int64_t inner = 1;  // How many neighbouring values are of one channel.
  if (channels > 1) {
    for (int i = form.channel_axis() + 1; i < tensor.shape_size(); ++i) inner *= tensor.shape(i);
  }
  if (has_table) {
    SYSTOLE_ASSIGN_OR_RETURN(ValueTable table, ValueTable::Create(form.table(), inner, type));
    return Rule(std::move(table));
  }
  SYSTOLE_ASSIGN_OR_RETURN(
      TensorNormaliser normaliser,
      TensorNormaliser::Create(channels, inner, {.scale = form.scale(), .bias = form.bias()},
                               type));
  return Rule(std::move(normaliser));
}

absl::StatusOr<std::shared_ptr<const StepFinisher>> StepFinisher::Create(
    const v1::ResolveFeedResponse& answer, std::shared_ptr<const StepShape> finished) {
  const absl::Span<const SliceTensor> tensors = finished->layout.tensors();
  std::vector<SliceTensor> travelling(tensors.begin(), tensors.end());
  std::vector<Rule> rules;
  bool any = false;
  for (const v1::TensorDescription& tensor : answer.tensors()) {
    absl::StatusOr<Rule> rule = RuleOf(tensor);
    if (!rule.ok()) {
      return absl::InternalError(absl::StrCat("the compact form of tensor '", tensor.name(),
                                              "' is wrong: ", rule.status().message()));
    }
    if (tensor.has_compact()) travelling[rules.size()].spec.dtype = DType::kUint8;
    any = any || tensor.has_compact();
    rules.push_back(*std::move(rule));
  }
  if (!any) return nullptr;
  SYSTOLE_ASSIGN_OR_RETURN(SliceLayout layout, SliceLayout::Create(std::move(travelling)));
  auto shape = std::make_shared<const StepShape>(StepShape{.layout = std::move(layout),
                                                           .core_begin = finished->core_begin,
                                                           .core_end = finished->core_end,
                                                           .placement = finished->placement});
  return std::shared_ptr<const StepFinisher>(
      new StepFinisher(std::move(shape), std::move(finished), std::move(rules)));
}

absl::Status StepFinisher::Place(const ReceivedChunk& chunk, uint8_t* step) const {
  const ChunkHeader& header = chunk.header();
  const auto index = static_cast<size_t>(header.tensor);
  const SliceTensor& tensor = finished_->layout.tensors()[index];
  uint8_t* const begin = step + finished_->OffsetOf(header.core, header.tensor);
  const Rule& rule = rules_[index];
  if (std::holds_alternative<std::monostate>(rule)) {
    return chunk.CopyTo(
        absl::MakeSpan(begin + header.offset, static_cast<size_t>(chunk.data_bytes())));
  }
  int64_t value = header.offset;  // A value has one byte on the wire.
  const int64_t value_bytes = DTypeBytes(tensor.spec.dtype);
  return chunk.ForEachPiece([&](absl::Span<const uint8_t> piece) {
    uint8_t* const out = begin + value * value_bytes;
    if (const auto* const normaliser = std::get_if<TensorNormaliser>(&rule)) {
      normaliser->Apply(value, piece, out);
    } else {
      std::get<ValueTable>(rule).Apply(value, piece, out);
    }
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
