#include "core/plan/output_compiler.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/batch/slice_layout.h"
#include "core/checksum/xxh3.h"
#include "core/image/image_size.h"
#include "core/operations/data_type.h"
#include "core/operations/kept_value.h"
#include "core/operations/program.h"
#include "core/operations/program_runner.h"
#include "core/plan/content_version.h"
#include "core/plan/feature_schema.h"
#include "core/plan/spec_text.h"
#include "core/status/status_macros.h"
#include "core/text/did_you_mean.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

absl::Status Refuse(const v1::Output& output, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("output '", ForeignName(output.name()), "': ", what));
}

// The most features that an error lists; a record may have any number.
constexpr size_t kMaxFeaturesListed = 20;

// The dataset's features, for a message: "'image' (bytes), 'label' (int64); did you mean 'image'?".
std::string ListFeatures(const Dataset& dataset, const std::string& wanted) {
  std::vector<std::string> listed;
  std::vector<std::string> names;
  for (const FeatureDescription& feature : dataset.features()) {
    names.push_back(feature.name);
    if (listed.size() >= kMaxFeaturesListed) continue;
    listed.push_back(
        absl::StrCat("'", ForeignName(feature.name), "' (", FeatureKindName(feature.kind), ")"));
  }
  for (const absl::string_view name : {kRecordIdFeature, kRecordFeature}) names.emplace_back(name);
  const size_t more = dataset.features().size() - listed.size();
  return absl::StrCat(absl::StrJoin(listed, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "",
                      DidYouMean(wanted, names));
}

// Refuses a shape that the largest record cannot hold, or that no record of the sample has. With
// this shape, the feed would fail at its first step, or all its examples would be masked. Image
// files and padded lists may have any size.
absl::Status CheckSize(const v1::Output& output, const OutputPlan& plan, const Dataset& dataset) {
  const bool is_bytes = plan.source == OutputPlan::Source::kBytes;
  std::optional<int64_t> bytes;
  if (is_bytes && plan.program.program != nullptr) bytes = plan.program.program->input_bytes();
  const bool is_file = is_bytes && plan.program.program != nullptr && !bytes.has_value();
  if (is_file || plan.padded.has_value() || plan.source == OutputPlan::Source::kRecordId) {
    return absl::OkStatus();
  }
  const int64_t elements = plan.stored_elements;
  const int64_t wanted = bytes.value_or(elements);
  const auto refuse = [&](absl::string_view what) {
    return Refuse(output,
                  absl::StrCat("shape has ", elements, elements == 1 ? " element" : " elements",
                               plan.stored_shape.empty() ? " (no shape is given)" : "",
                               wanted == elements ? "" : absl::StrCat(" in ", wanted, " bytes"),
                               ", but ", what));
  };
  const int64_t most = dataset.max_payload_bytes();
  if (output.feature() == kRecordFeature) {
    if (wanted >= dataset.min_payload_bytes() && wanted <= most) return absl::OkStatus();
    return refuse(
        absl::StrCat("the records have ", dataset.min_payload_bytes(), " to ", most, " bytes"));
  }
  // Each value takes at least one byte of the record, and a float takes four.
  if (!plan.default_values.has_value() &&
      wanted > most / (plan.source == OutputPlan::Source::kFloatList ? 4 : 1)) {
    return refuse(absl::StrCat("the largest record has ", most, " bytes"));
  }
  const std::string others = dataset.sample().OtherSizes(output.feature(), wanted);
  if (others.empty()) return absl::OkStatus();
  return refuse(absl::StrCat("the feature '", ForeignName(output.feature()), "' has ", others,
                             " in the records looked at"));
}

// The kind of the output's feature in the first record or, if this record lacks the feature, the
// kind that the spec declares (DeclaredKind()).
absl::StatusOr<FeatureKind> KindOf(const v1::Output& output, const Dataset& dataset) {
  if (dataset.features().empty()) {
    return Refuse(output,
                  absl::StrCat("needs the feature '", ForeignName(output.feature()),
                               "', but the records of dataset '", dataset.name(),
                               "' are not in the format ", dataset.example_name(),
                               "; use the feature '", kRecordFeature, "' to read whole records"));
  }
  for (const FeatureDescription& feature : dataset.features()) {
    if (feature.name == output.feature() && feature.kind != FeatureKind::kMissing) {
      return feature.kind;
    }
  }
  if (const FeatureKind kind = DeclaredKind(output); kind != FeatureKind::kMissing) return kind;
  return Refuse(
      output,
      absl::StrCat("the first record of dataset '", dataset.name(), "' has no feature '",
                   ForeignName(output.feature()), "'; it has ",
                   ListFeatures(dataset, output.feature()), "; if other records have the feature '",
                   ForeignName(output.feature()), "', set default_value or padded"));
}

absl::Status CheckName(const v1::Output& output) {
  const bool good = !output.name().empty() && output.name().size() <= 128 &&
                    output.name().find_first_not_of(
                        "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789_/.-") == std::string::npos;
  if (!good) return Refuse(output, "name: want 1 to 128 letters, digits, '_', '/', '.' or '-'");
  if (output.name() == kValidTensor) {
    return Refuse(output, "the name is taken: each feed has a tensor 'valid'; choose another name");
  }
  return absl::OkStatus();
}

absl::Status SetStoredShape(const v1::Output& output, OutputPlan& plan) {
  for (const int64_t dimension : output.shape()) {
    if (dimension < 1 || dimension > kMaxSliceBytes / plan.stored_elements) {
      return Refuse(output, absl::StrCat("shape has a dimension of ", dimension,
                                         ", want 1 or more, and less than ", kMaxSliceBytes,
                                         " elements in all"));
    }
    plan.stored_elements *= dimension;
    plan.stored_shape.push_back(dimension);
  }
  if (plan.stored_shape.size() > 6) return Refuse(output, "shape has more than 6 dimensions");
  return absl::OkStatus();
}

// Sets the element type of the fed values, or refuses the type that the spec names. `made` is the
// type that the transforms make.
absl::Status SetDType(const v1::Output& output, ElementType made, OutputPlan& plan) {
  const v1::DataType dtype =
      output.dtype() == v1::DATA_TYPE_UNSPECIFIED ? DataTypeOf(made) : output.dtype();
  std::string wanted;
  bool good = false;
  if (made == ElementType::kInt64) {
    wanted = "INT64 or INT32";
    good = dtype == v1::INT64 || dtype == v1::INT32;
  } else if (plan.source == OutputPlan::Source::kFloatList && made == ElementType::kFloat32) {
    // Values of a float feature, unlike pixels, may lie outside of 0 to 255. As uint8 these values
    // would be lost.
    wanted = std::string(kFloatNames);
    good = IsFloat(dtype);
  } else {
    wanted = absl::StrCat("UINT8, ", kFloatNames);
    good = dtype == v1::UINT8 || IsFloat(dtype);
  }
  if (!good) {
    return Refuse(output,
                  absl::StrCat("dtype is ", EnumText(*v1::DataType_descriptor(), dtype), ", want ",
                               wanted, " for the feature '", ForeignName(output.feature()), "'"));
  }
  plan.dtype = static_cast<DType>(dtype);
  return absl::OkStatus();
}

absl::StatusOr<OutputPlan::Source> SourceOf(const v1::Output& output, const Dataset& dataset) {
  using Source = OutputPlan::Source;
  if (output.feature() == kRecordIdFeature) return Source::kRecordId;
  if (output.feature() == kRecordFeature) return Source::kBytes;
  SYSTOLE_ASSIGN_OR_RETURN(const FeatureKind kind, KindOf(output, dataset));
  switch (kind) {
    case FeatureKind::kInt64:
      return Source::kInt64List;
    case FeatureKind::kFloat:
      return Source::kFloatList;
    case FeatureKind::kBytes:
      return Source::kBytes;
    case FeatureKind::kMissing:
      break;
  }
  return Refuse(output, absl::StrCat("the feature '", ForeignName(output.feature()),
                                     "' has no values in the first record"));
}

// The type of the program's input.
ValueType InputOf(const OutputPlan& plan) {
  switch (plan.source) {
    case OutputPlan::Source::kBytes:
      return {.element = ElementType::kBytes};
    case OutputPlan::Source::kFloatList:
      return {.element = ElementType::kFloat32, .shape = plan.stored_shape};
    default:
      return {.element = ElementType::kInt64, .shape = plan.stored_shape};
  }
}

// Checks that a feed can deliver the program's result.
absl::Status CheckEnd(const v1::Output& output, const ValueType& made) {
  if (made.element == ElementType::kBytes) {
    return Refuse(output, absl::StrCat("the feature '", ForeignName(output.feature()),
                                       "' is of kind bytes; begin with decode_jpeg, "
                                       "decode_png, decode_image or decode_raw"));
  }
  if (!made.has_size()) {
    return Refuse(output,
                  "decoded images have different sizes; add a transform that sets the size: "
                  "random_resized_crop, center_crop, random_crop, resize or crop_or_pad");
  }
  return absl::OkStatus();
}

// The size that is assumed if no record of the sample shows an image's size.
constexpr ImageSize kUsualImage = {.height = 512, .width = 512};

// The values of the output that a cache can keep; nullopt if the spec asks for no cache for this
// output. Error messages do not name the output: the caller adds its name.
absl::StatusOr<std::optional<KeptValues>> KeptOf(const v1::Output& output, const Dataset& dataset,
                                                 const Program& program, DType dtype) {
  if (output.cache() == v1::NONE) return std::nullopt;
  if (!v1::Cache_IsValid(output.cache())) {
    return absl::InvalidArgumentError(absl::StrCat("cache is ", static_cast<int>(output.cache()),
                                                   ", want ", EnumValues(*v1::Cache_descriptor())));
  }
  const absl::string_view feature =
      output.feature() == kRecordFeature ? absl::string_view() : output.feature();
  absl::StatusOr<KeptValues> kept = KeptValuesOf(
      output, program, dtype, dataset.sample().LargestImage(feature).value_or(kUsualImage));
  if (kept.ok()) return *std::move(kept);
  return absl::InvalidArgumentError(absl::StrCat("cache ", kept.status().message()));
}

// How a cache keeps `value`, and how an example is made from the kept value. Nullopt if the value
// is uint8 and ProgramRunner cannot make an example from it.
std::optional<KeptForm> KeptFormOf(const v1::Output& output, KeptValue value,
                                   const Dataset& dataset, const Program& program, DType dtype,
                                   bool read_soon) {
  Xxh3Hasher made_by;
  for (const std::string& part : {ContentVersion(), output.feature(), value.made_by}) {
    made_by.UpdateU64(part.size());
    made_by.Update(part);
  }
  KeptForm form = {.value = std::move(value),
                   .made_by = made_by.Digest64(),
                   .user = std::max<uint64_t>(made_by.Digest64() ^ dataset.fingerprint(), 1)};
  if (form.value.finished) return form;
  if (form.value.type.element == ElementType::kUint8) {
    form.rest =
        Lower(std::make_shared<const Program>(program.From(form.value.steps)), dtype, read_soon);
    form.known_rest_bytes = form.rest->known_rest_bytes;
    // Create() fails if a factor of normalize is too large for the resizer.
    if (!ProgramRunner::Create(*form.rest, nullptr).ok()) return std::nullopt;
    return form;
  }
  // Each step needs memory for two values: the one that it reads and the one that it writes.
  for (size_t i = form.value.steps - 1; i < program.steps().size(); ++i) {
    const ValueType& made = program.steps()[i].output;
    if (!made.has_size()) continue;
    form.known_rest_bytes = std::max(form.known_rest_bytes, 2 * made.num_bytes());
  }
  return form;
}

// How a cache is used for the output. Nullopt if none of the values can be used: then the output is
// made without the cache.
std::optional<CachePlan> CachePlanOf(const v1::Output& output, KeptValues kept,
                                     const Dataset& dataset, const Program& program, DType dtype,
                                     bool read_soon) {
  CachePlan plan = {.store = output.cache() == v1::DISK ? CacheStore::kDisk : CacheStore::kMemory,
                    .work = kept.work};
  for (KeptValue& value : kept.values) {
    std::optional<KeptForm> form =
        KeptFormOf(output, std::move(value), dataset, program, dtype, read_soon);
    if (form.has_value()) plan.forms.push_back(*std::move(form));
  }
  if (plan.forms.empty()) return std::nullopt;
  return plan;
}

}  // namespace

absl::StatusOr<OutputPlan> CompileOutput(const v1::Output& output, const Dataset& dataset) {
  using Source = OutputPlan::Source;
  OutputPlan plan;
  SYSTOLE_RETURN_IF_ERROR(CheckName(output));
  if (output.feature().empty()) return Refuse(output, "names no feature");
  SYSTOLE_RETURN_IF_ERROR(SetStoredShape(output, plan));
  SYSTOLE_ASSIGN_OR_RETURN(plan.source, SourceOf(output, dataset));
  if (plan.source == Source::kRecordId && !plan.stored_shape.empty()) {
    return Refuse(output, "record_id is a scalar; leave out shape");
  }
  if (output.has_padded()) {
    const absl::Status set = SetPadded(output, plan);
    if (!set.ok()) return Refuse(output, set.message());
    return plan;
  }
  if (output.has_default_value()) {
    absl::StatusOr<DefaultValues> values =
        DefaultValuesOf(output, plan.source, plan.stored_elements);
    if (!values.ok()) return Refuse(output, values.status().message());
    plan.default_values = *std::move(values);
  }
  absl::StatusOr<Program> program =
      Program::Create(output.transforms(), InputOf(plan), plan.stored_shape);
  if (!program.ok()) {
    return Refuse(output, absl::StrCat(program.status().message(), " (feature '",
                                       ForeignName(output.feature()), "')"));
  }
  const ValueType made = program->output();
  SYSTOLE_RETURN_IF_ERROR(CheckEnd(output, made));
  SYSTOLE_RETURN_IF_ERROR(SetDType(output, made.element, plan));
  plan.shape = made.shape;
  plan.layout = output.layout();
  absl::StatusOr<std::optional<KeptValues>> kept = KeptOf(output, dataset, *program, plan.dtype);
  if (!kept.ok()) return Refuse(output, kept.status().message());
  // int64 values without transforms are only copied, so they need no lowered program.
  if (made.element != ElementType::kInt64 || !program->steps().empty()) {
    // The example is made as NHWC. For any other layout it is then read at once, and rearranged.
    const bool read_soon = plan.layout != v1::NHWC;
    if (kept->has_value()) {
      plan.cache = CachePlanOf(output, **std::move(kept), dataset, *program, plan.dtype, read_soon);
    }
    plan.program =
        Lower(std::make_shared<const Program>(*std::move(program)), plan.dtype, read_soon);
    // Create() checks the factors of normalize. The sizes were checked above.
    if (const auto runner = ProgramRunner::Create(plan.program, nullptr); !runner.ok()) {
      return Refuse(output,
                    absl::StrCat("normalize takes scale / stddev and mean / stddev up to 1e30: ",
                                 runner.status().message()));
    }
  }
  if (plan.layout != v1::NHWC && plan.shape.size() != 3) {
    return Refuse(output,
                  absl::StrCat("layout is ", v1::Layout_Name(plan.layout), ", but the shape has ",
                               plan.shape.size(), " dimensions, want [height, width, channels]"));
  }
  if (plan.layout == v1::HWCN_TILED && plan.dtype != DType::kBfloat16) {
    return Refuse(output,
                  absl::StrCat("layout is HWCN_TILED, but dtype is ",
                               v1::DataType_Name(static_cast<v1::DataType>(plan.dtype)),
                               ", want BFLOAT16, the only type that a TPU packs two to a word"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckSize(output, plan, dataset));
  return plan;
}

absl::Status CheckOtherDataset(const v1::Output& output, const OutputPlan& plan,
                               const Dataset& dataset) {
  SYSTOLE_ASSIGN_OR_RETURN(const OutputPlan::Source source, SourceOf(output, dataset));
  if (source != plan.source) {
    return Refuse(output, absl::StrCat("the feature '", ForeignName(output.feature()),
                                       "' is of another kind in dataset '", dataset.name(),
                                       "' than in the earlier members; want the same kind in all"));
  }
  return CheckSize(output, plan, dataset);
}

}  // namespace systole
