#include "core/engine/feature_lists.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/numeric/bf16.h"
#include "core/numeric/float16.h"
#include "core/status/status_macros.h"
#include "core/tensor/cast_int64s.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// How many items of a list of `count` values are fed.
absl::StatusOr<int64_t> ItemsOf(const PaddedPlan& padded, int64_t count) {
  if (count % padded.item_elements != 0) {
    return absl::InvalidArgumentError(absl::StrCat("want a multiple of ", padded.item_elements,
                                                   " values (as shape says), the record has ",
                                                   count));
  }
  const int64_t items = count / padded.item_elements;
  if (items > padded.length && !padded.truncate) {
    return absl::InvalidArgumentError(
        absl::StrCat("want at most ", padded.length, " items, the record has ", items,
                     "; raise padded.length, or set padded.truncate to cut lists off"));
  }
  return std::min(items, padded.length);
}

template <typename T>
void Store(T value, size_t index, absl::Span<uint8_t> out) {
  std::memcpy(&out[index * sizeof(value)], &value, sizeof(value));
}

void WriteFloats(absl::Span<const float> values, DType dtype, absl::Span<uint8_t> out) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kBfloat16) {
      Store(RoundToBf16(values[i]), i, out);
    } else if (dtype == DType::kFloat16) {
      Store(RoundToFloat16(values[i]), i, out);
    } else {
      Store(values[i], i, out);
    }
  }
}

absl::StatusOr<int32_t> WriteList(const OutputPlan& output, const FeatureView& feature,
                                  ListScratch& scratch, absl::Span<uint8_t> out) {
  const PaddedPlan& padded = *output.padded;
  const bool missing = feature.kind() == FeatureKind::kMissing;
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t items, ItemsOf(padded, feature.count()));
  const auto count = static_cast<size_t>(items * padded.item_elements);
  const auto room = static_cast<size_t>(output.stored_elements);
  if (output.source == OutputPlan::Source::kInt64List) {
    scratch.int64s.assign(room, static_cast<int64_t>(padded.value));
    const absl::Span<int64_t> list = absl::MakeSpan(scratch.int64s).first(count);
    if (!missing) SYSTOLE_RETURN_IF_ERROR(feature.CopyFirstInt64s(list));
    SYSTOLE_RETURN_IF_ERROR(CastInt64s(scratch.int64s, output.dtype, out));
  } else {
    scratch.floats.assign(room, static_cast<float>(padded.value));
    const absl::Span<float> list = absl::MakeSpan(scratch.floats).first(count);
    if (!missing) SYSTOLE_RETURN_IF_ERROR(feature.CopyFirstFloats(list));
    WriteFloats(scratch.floats, output.dtype, out);
  }
  return static_cast<int32_t>(items);
}

}  // namespace

absl::StatusOr<int32_t> WritePadded(const OutputPlan& output, const FeatureView& feature,
                                    ListScratch& scratch, absl::Span<uint8_t> out) {
  if (output.source == OutputPlan::Source::kBytes) {
    if (feature.kind() == FeatureKind::kMissing) return WritePadded(output, "", out);
    SYSTOLE_RETURN_IF_ERROR(feature.Expect(FeatureKind::kBytes, 1));
    SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view string, feature.BytesAt(0));
    return WritePadded(output, string, out);
  }
  if (feature.kind() != FeatureKind::kMissing) {
    SYSTOLE_RETURN_IF_ERROR(feature.ExpectKind(output.source == OutputPlan::Source::kInt64List
                                                   ? FeatureKind::kInt64
                                                   : FeatureKind::kFloat));
  }
  const absl::StatusOr<int32_t> items = WriteList(output, feature, scratch, out);
  if (items.ok()) return items;
  return absl::Status(items.status().code(), absl::StrCat("feature \"", ForeignName(feature.name()),
                                                          "\": ", items.status().message()));
}

absl::StatusOr<int32_t> WritePadded(const OutputPlan& output, absl::string_view record,
                                    absl::Span<uint8_t> out) {
  SYSTOLE_ASSIGN_OR_RETURN(const int64_t items,
                           ItemsOf(*output.padded, static_cast<int64_t>(record.size())));
  const auto end = std::copy_n(record.begin(), items, out.begin());
  std::fill(end, out.end(), static_cast<uint8_t>(output.padded->value));
  return static_cast<int32_t>(items);
}

}  // namespace systole
