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

// Of an image whose size only the record tells: more than any other has.
constexpr int64_t kAnyBytes = std::numeric_limits<int64_t>::max();

bool IsUint8Image(const ValueType& type) {
  return type.element == ElementType::kUint8 && WantImage(type).ok();
}

// What the first `count` transforms do.
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
        "keeps decoded images, and the feature holds numbers; leave it out");
  }
  const std::vector<Program::Step>& steps = program.steps();
  const bool is_raw = program.input_bytes().has_value();
  // Steps that are one have no values between them.
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
        "has nothing to keep: decode_jpeg { scale: AUTO } and what follows up to the resize are "
        "one, and before the first random transform no uint8 image comes out of it; take scale: "
        "FULL, or leave cache out");
  }
  return absl::InvalidArgumentError(
      "has nothing to keep: before the first random transform no uint8 image is made (decode_raw "
      "only copies what is stored); put round_to_uint8 there, or leave cache out");
}

}  // namespace systole
