#include "core/pipeline/feature_schema.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/pipeline/spec_text.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

using Source = OutputPlan::Source;

absl::string_view KindName(Source source) {
  switch (source) {
    case Source::kInt64List:
      return FeatureKindName(FeatureKind::kInt64);
    case Source::kFloatList:
      return FeatureKindName(FeatureKind::kFloat);
    default:
      return FeatureKindName(FeatureKind::kBytes);
  }
}

// One value stands for all.
template <typename Repeated, typename T>
absl::Status Spread(const Repeated& given, int64_t wanted, std::vector<T>& values) {
  values.assign(given.begin(), given.end());
  if (values.size() == 1) values.resize(static_cast<size_t>(wanted), values[0]);
  if (static_cast<int64_t>(values.size()) == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("default_value has ", values.size(),
                                                 " values, want 1, or ", wanted, " as shape says"));
}

// What may stand behind a list's end, by its kind and dtype.
absl::Status CheckValue(Source source, DType dtype, double value) {
  if (source == Source::kFloatList) return absl::OkStatus();
  double least = -static_cast<double>(int64_t{1} << 53);
  double most = -least;
  if (source == Source::kBytes) {
    least = 0;
    most = std::numeric_limits<uint8_t>::max();
  } else if (dtype == DType::kInt32) {
    least = std::numeric_limits<int32_t>::min();
    most = std::numeric_limits<int32_t>::max();
  }
  // Also refuses what is no number.
  if (value >= least && value <= most && value == std::trunc(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("padded.value is ", value, ", want a whole number from ", least, " to ", most));
}

absl::StatusOr<DType> DTypeOf(const v1::Output& output, Source source) {
  const v1::DataType dtype = output.dtype();
  absl::string_view wanted;
  bool good = false;
  if (source == Source::kInt64List) {
    wanted = "INT64 or INT32";
    good = dtype == v1::INT64 || dtype == v1::INT32;
  } else if (source == Source::kFloatList) {
    wanted = "FLOAT32 or BFLOAT16";
    good = dtype == v1::FLOAT32 || dtype == v1::BFLOAT16;
  } else {
    wanted = "UINT8";
    good = dtype == v1::UINT8;
  }
  if (good) return static_cast<DType>(dtype);
  return absl::InvalidArgumentError(
      absl::StrCat("dtype is ", EnumText(*v1::DataType_descriptor(), dtype), ", want ", wanted,
                   " for a padded feature of kind ", KindName(source)));
}

absl::Status CheckAlone(const v1::Output& output, Source source) {
  absl::string_view wrong;
  if (source == Source::kRecordId) {
    wrong = "record_id is a scalar; leave out padded";
  } else if (output.transforms_size() > 0) {
    wrong = "a padded output takes no transforms";
  } else if (output.has_default_value()) {
    wrong = "a record that lacks a padded feature has a list of 0 items; leave out default_value";
  } else if (output.layout() != v1::NHWC) {
    wrong = "a padded output takes no layout";
  } else if (source == Source::kBytes && output.shape_size() > 0) {
    wrong = "the items of a padded bytes feature are bytes; leave out shape";
  }
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(wrong);
}

}  // namespace

FeatureKind DeclaredKind(const v1::Output& output) {
  if (output.default_value().int64s_size() > 0) return FeatureKind::kInt64;
  if (output.default_value().floats_size() > 0) return FeatureKind::kFloat;
  if (output.has_default_value()) return FeatureKind::kBytes;
  if (!output.has_padded()) return FeatureKind::kMissing;
  switch (output.dtype()) {
    case v1::INT32:
    case v1::INT64:
      return FeatureKind::kInt64;
    case v1::FLOAT32:
    case v1::BFLOAT16:
      return FeatureKind::kFloat;
    case v1::UINT8:
      return FeatureKind::kBytes;
    default:
      return FeatureKind::kMissing;
  }
}

absl::StatusOr<DefaultValues> DefaultValuesOf(const v1::Output& output, Source source,
                                              int64_t stored_elements) {
  const v1::DefaultValue& given = output.default_value();
  if (source == Source::kRecordId || output.feature() == kRecordFeature) {
    return absl::InvalidArgumentError(
        absl::StrCat("every record has a ", output.feature(), "; leave out default_value"));
  }
  const bool ints = given.int64s_size() > 0;
  const bool floats = given.floats_size() > 0;
  const bool bytes = !given.bytes().empty();
  const bool one = (ints ? 1 : 0) + (floats ? 1 : 0) + (bytes ? 1 : 0) == 1;
  if (!one || ints != (source == Source::kInt64List) || floats != (source == Source::kFloatList)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "default_value: want values of one kind, that of the feature: ", KindName(source)));
  }
  DefaultValues values;
  if (ints) SYSTOLE_RETURN_IF_ERROR(Spread(given.int64s(), stored_elements, values.int64s));
  if (floats) SYSTOLE_RETURN_IF_ERROR(Spread(given.floats(), stored_elements, values.floats));
  if (static_cast<int64_t>(given.bytes().size()) > kMaxDefaultBytes) {
    return absl::InvalidArgumentError(absl::StrCat("default_value has ", given.bytes().size(),
                                                   " bytes, want at most ", kMaxDefaultBytes));
  }
  values.bytes = given.bytes();
  return values;
}

absl::Status SetPadded(const v1::Output& output, OutputPlan& plan) {
  const v1::Padded& padded = output.padded();
  SYSTOLE_RETURN_IF_ERROR(CheckAlone(output, plan.source));
  SYSTOLE_ASSIGN_OR_RETURN(plan.dtype, DTypeOf(output, plan.source));
  const int64_t most = kMaxSliceBytes / plan.stored_elements;
  if (padded.length() < 1 || padded.length() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("padded.length is ", padded.length(), ", want 1 to ", most, " items"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckValue(plan.source, plan.dtype, padded.value()));
  plan.padded = PaddedPlan{.length = padded.length(),
                           .item_elements = plan.stored_elements,
                           .value = padded.value(),
                           .truncate = padded.truncate()};
  plan.shape = {padded.length()};
  plan.shape.insert(plan.shape.end(), plan.stored_shape.begin(), plan.stored_shape.end());
  plan.stored_elements *= padded.length();
  return absl::OkStatus();
}

}  // namespace systole
