#include "core/plan/feature_schema.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/image/image_size.h"
#include "core/operations/data_type.h"
#include "core/operations/program.h"
#include "core/plan/spec_text.h"
#include "core/status/status_macros.h"
#include "core/tensor/cast_int64s.h"

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

absl::Status CheckCount(int64_t given, int64_t wanted) {
  if (given == 1 || given == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("default_value has ", given, " values, want 1, or ", wanted, " as shape says"));
}

template <typename T>
void Spread(const std::vector<T>& given, int64_t wanted, std::vector<T>& values) {
  if (given.size() == 1) {
    values.assign(static_cast<size_t>(wanted), given[0]);
  } else {
    values = given;
  }
}

// Checks the value that pads a list of the kind `source` with elements of type `dtype`.
absl::Status CheckValue(Source source, DType dtype, double value) {
  if (source == Source::kFloatList) {
    constexpr double kMost = std::numeric_limits<float>::max();
    if (!std::isfinite(value) || std::fabs(value) <= kMost) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("padded.value is ", value, ", want at most ", kMost));
  }
  double least = -static_cast<double>(int64_t{1} << 53);
  double most = -least;
  if (source == Source::kBytes) {
    least = 0;
    most = std::numeric_limits<uint8_t>::max();
  } else if (dtype == DType::kInt32) {
    least = std::numeric_limits<int32_t>::min();
    most = std::numeric_limits<int32_t>::max();
  }
  // This also refuses NaN.
  if (value >= least && value <= most && value == std::trunc(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("padded.value is ", value, ", want a whole number from ", least, " to ", most));
}

absl::StatusOr<DType> DTypeOf(const v1::Output& output, Source source) {
  ElementType made = ElementType::kUint8;
  if (source == Source::kInt64List) made = ElementType::kInt64;
  if (source == Source::kFloatList) made = ElementType::kFloat32;
  const v1::DataType dtype =
      output.dtype() == v1::DATA_TYPE_UNSPECIFIED ? DataTypeOf(made) : output.dtype();
  absl::string_view wanted;
  bool good = false;
  if (source == Source::kInt64List) {
    wanted = "INT64 or INT32";
    good = dtype == v1::INT64 || dtype == v1::INT32;
  } else if (source == Source::kFloatList) {
    wanted = kFloatNames;
    good = IsFloat(dtype);
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
  } else if (output.cache() != v1::NONE) {
    wrong = "a padded output is not an image, so a cache keeps nothing of it; leave out cache";
  } else if (source == Source::kBytes && output.shape_size() > 0) {
    wrong = "the items of a padded bytes feature are bytes; leave out shape";
  }
  return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(wrong);
}

// Runs those of the output's steps on the default value that can refuse it.
absl::Status MakeDefault(const OutputPlan& output, int64_t& pixels_left) {
  const Program* const program = output.program.program.get();
  Value value;
  if (output.source == Source::kBytes) {
    value.bytes = output.default_values->bytes;
    const auto bytes = static_cast<int64_t>(value.bytes.size());
    if (const int64_t wanted = program->input_bytes().value_or(bytes); wanted != bytes) {
      return absl::InvalidArgumentError(absl::StrCat(bytes, " bytes, want ", wanted));
    }
    if (const std::optional<ImageSize> image = SizeOfImage(value.bytes); image.has_value()) {
      if (image->pixels() > pixels_left) return absl::OkStatus();
      pixels_left -= image->pixels();
    }
    // Only the decode: the steps after it may be costly.
    return program->steps()[0].operation->Apply(std::move(value), {}).status();
  }
  if (output.source == Source::kInt64List) SpreadDefault(output, value.int64s);
  if (output.source == Source::kFloatList) SpreadDefault(output, value.floats);
  if (program != nullptr) {
    value.type = program->input();
    // Runs the steps as long as values are whole numbers. Later steps accept any numbers, and may
    // be costly.
    const auto& steps = program->steps();
    const auto end = std::find_if(steps.begin(), steps.end(), [](const Program::Step& step) {
      return step.output.element != ElementType::kInt64;
    });
    if (value.type.element != ElementType::kInt64) return absl::OkStatus();
    SYSTOLE_ASSIGN_OR_RETURN(value, program->Interpret(std::move(value), {}, 0,
                                                       static_cast<size_t>(end - steps.begin())));
    if (end != steps.end()) return absl::OkStatus();
  }
  std::vector<uint8_t> cast(value.int64s.size() * static_cast<size_t>(DTypeBytes(output.dtype)));
  return CastInt64s(value.int64s, output.dtype, absl::MakeSpan(cast));
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
    case v1::FLOAT16:
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
        "default_value: want only values of the kind that the feature has: ", KindName(source)));
  }
  if (ints) SYSTOLE_RETURN_IF_ERROR(CheckCount(given.int64s_size(), stored_elements));
  if (floats) SYSTOLE_RETURN_IF_ERROR(CheckCount(given.floats_size(), stored_elements));
  if (!bytes && stored_elements > kMaxDefaultElements) {
    return absl::InvalidArgumentError(absl::StrCat("default_value stands for ", stored_elements,
                                                   " values, as shape says, want at most ",
                                                   kMaxDefaultElements));
  }
  if (static_cast<int64_t>(given.bytes().size()) > kMaxDefaultBytes) {
    return absl::InvalidArgumentError(absl::StrCat("default_value has ", given.bytes().size(),
                                                   " bytes, want at most ", kMaxDefaultBytes));
  }
  return DefaultValues{.int64s = {given.int64s().begin(), given.int64s().end()},
                       .floats = {given.floats().begin(), given.floats().end()},
                       .bytes = given.bytes()};
}

void SpreadDefault(const OutputPlan& output, std::vector<int64_t>& int64s) {
  Spread(output.default_values->int64s, output.stored_elements, int64s);
}

void SpreadDefault(const OutputPlan& output, std::vector<float>& floats) {
  Spread(output.default_values->floats, output.stored_elements, floats);
}

absl::Status CheckDefault(const OutputPlan& output, int64_t& pixels_left) {
  if (!output.default_values.has_value()) return absl::OkStatus();
  const absl::Status fits = MakeDefault(output, pixels_left);
  if (fits.ok()) return fits;
  return absl::InvalidArgumentError(absl::StrCat("default_value: ", fits.message()));
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
