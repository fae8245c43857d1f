#include "core/operations/kept_value.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/operations/ops/operation_table.h"

namespace systole {
namespace {

// The size of an image if only the record has it. It counts as larger than any other.
constexpr int64_t kAnyBytes = std::numeric_limits<int64_t>::max();

bool IsUint8Image(const ValueType& type) {
  return type.element == ElementType::kUint8 && WantImage(type).ok();
}

// A text that says what the first `count` transforms do.
std::string TextOf(const v1::Output& output, size_t count) {
  std::string text = absl::StrCat("[", absl::StrJoin(output.shape(), ","), "]");
  for (size_t i = 0; i < count; ++i) {
    const v1::Transform& transform = output.transforms(static_cast<int>(i));
    const OperationRow& row = *FindOperation(transform.kind_case());
    absl::StrAppend(&text, "\n", WithDefaults(row, transform).ShortDebugString());
  }
  return text;
}

}  // namespace

absl::StatusOr<KeptValue> KeptValueOf(const v1::Output& output, const Program& program) {
  if (program.input().element != ElementType::kBytes) {
    return absl::InvalidArgumentError(
        "keeps decoded images, but the feature holds numbers; leave cache out");
  }
  const std::vector<Program::Step>& steps = program.steps();
  const bool is_raw = program.input_bytes().has_value();
  // The first steps that are done as one. They have no values between them.
  const size_t one =
      program.scaled_decoding().has_value() ? program.scaled_decoding()->num_operations() : 1;
  size_t kept = 0;
  int64_t fewest = kAnyBytes;
  for (size_t i = 0; i < steps.size() && !steps[i].random; ++i) {
    const ValueType& made = steps[i].output;
    if (i + 1 < one || (is_raw && i == 0) || !IsUint8Image(made)) continue;
    const int64_t bytes = made.has_size() ? made.num_bytes() : kAnyBytes;
    if (bytes > fewest) continue;
    kept = i + 1;
    fewest = bytes;
  }
  if (kept > 0) return KeptValue{.steps = kept, .made_by = TextOf(output, kept)};
  if (one > 1) {
    return absl::InvalidArgumentError(
        "has nothing to keep: decode_jpeg { scale: AUTO } and the transforms up to the resize are "
        "done as one, and no uint8 image is made before the first random transform; use scale: "
        "FULL, or leave cache out");
  }
  return absl::InvalidArgumentError(
      "has nothing to keep: no uint8 image is made before the first random transform (decode_raw "
      "only copies stored bytes); put round_to_uint8 there, or leave cache out");
}

}  // namespace systole
