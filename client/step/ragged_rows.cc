#include "client/step/ragged_rows.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

absl::Status NoSuchOutput(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("the feed has no padded output '", ForeignName(name), "'"));
}

}  // namespace

absl::StatusOr<RaggedRows> RaggedRowsOf(const Step& step, int core, absl::string_view name) {
  const SliceLayout& layout = step.layout();
  const int index = layout.IndexOf(name);
  const int length_index = layout.IndexOf(LengthTensor(name));
  if (index < 0 || length_index < 0) return NoSuchOutput(name);
  const TensorSpec& spec = layout.tensors()[static_cast<size_t>(index)].spec;
  const TensorView lengths = step.Tensor(core, length_index);
  // The output with the lengths' name may be another output, which has this name by chance.
  if (spec.shape.size() < 2 || lengths.dtype != DType::kInt32 || lengths.shape.size() != 1) {
    return NoSuchOutput(name);
  }
  const int64_t room = spec.shape[1];
  const int64_t item_bytes = spec.num_bytes() / (spec.shape[0] * room);
  const uint8_t* row = step.Tensor(core, index).data;
  RaggedRows rows;
  rows.row_splits = {0};
  for (int64_t i = 0; i < spec.shape[0]; ++i) {
    int32_t length = 0;  // Copied, because it may be unaligned in the step.
    std::memcpy(&length, lengths.data + i * int64_t{sizeof(length)}, sizeof(length));
    if (length < 0 || length > room) {
      return absl::DataLossError(
          absl::StrCat("'", ForeignName(name), "' has a length of ", length, ", want 0 to ", room));
    }
    rows.values.insert(rows.values.end(), row, row + length * item_bytes);
    rows.row_splits.push_back(rows.row_splits.back() + length);
    row += room * item_bytes;
  }
  return rows;
}

}  // namespace systole
