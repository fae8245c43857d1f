#include "core/pipeline/output_compiler.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/image/bilinear_resizer.h"
#include "core/pipeline/spec_text.h"
#include "core/status/did_you_mean.h"
#include "core/status/foreign_text.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Largest edge of an output image. Larger ones are mistakes, and allocations follow from it.
constexpr int kMaxEdge = 16384;

absl::Status Refuse(const v1::Output& output, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("output '", ForeignName(output.name()), "': ", what));
}

// Features that an error lists; a record may have any number.
constexpr size_t kMaxFeaturesListed = 20;

// "'image' (bytes), 'label' (int64); did you mean 'image'?".
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

// A size that no record has would end every feed at its first step, or mask all of it.
absl::Status CheckSize(const v1::Output& output, const OutputPlan& plan, const Dataset& dataset) {
  const int64_t wanted = plan.stored_elements;
  const auto refuse = [&](absl::string_view what) {
    return Refuse(
        output, absl::StrCat("shape has ", wanted, wanted == 1 ? " element" : " elements",
                             plan.stored_shape.empty() ? " (it is left out)" : "", ", but ", what));
  };
  const int64_t most = dataset.max_payload_bytes();
  if (output.feature() == kRecordFeature) {
    if (wanted >= dataset.min_payload_bytes() && wanted <= most) return absl::OkStatus();
    return refuse(
        absl::StrCat("the records have ", dataset.min_payload_bytes(), " to ", most, " bytes"));
  }
  // Each value takes a byte of the record at least, and a float four.
  if (wanted > most / (plan.source == OutputPlan::Source::kFloatList ? 4 : 1)) {
    return refuse(absl::StrCat("the largest record has ", most, " bytes"));
  }
  const std::string others = dataset.sample().OtherSizes(output.feature(), wanted);
  if (others.empty()) return absl::OkStatus();
  return refuse(absl::StrCat("the feature '", ForeignName(output.feature()), "' has ", others,
                             " in the records looked at"));
}

// The kind of the feature that the output reads, as a sample record has it.
absl::StatusOr<FeatureKind> KindOf(const v1::Output& output, const Dataset& dataset) {
  if (dataset.features().empty()) {
    return Refuse(output, absl::StrCat("wants the feature '", ForeignName(output.feature()),
                                       "', but the records of dataset '", dataset.name(),
                                       "' are no tf.train.Example; use the feature '",
                                       kRecordFeature, "' to read whole records"));
  }
  for (const FeatureDescription& feature : dataset.features()) {
    if (feature.name == output.feature()) return feature.kind;
  }
  return Refuse(output, absl::StrCat("dataset '", dataset.name(), "' has no feature '",
                                     ForeignName(output.feature()), "'; it has ",
                                     ListFeatures(dataset, output.feature())));
}

// Walks through the transforms in order; each may stand only at its place.
class Chain {
 public:
  Chain(const v1::Output& output, OutputPlan& plan) : output_(output), plan_(plan) {}

  absl::Status Apply(const v1::Transform& transform, int index) {
    index_ = index;
    switch (transform.kind_case()) {
      case v1::Transform::kDecodeJpeg:
        return DecodeJpeg(transform.decode_jpeg());
      case v1::Transform::kDecodeRaw:
        return DecodeRaw();
      case v1::Transform::kRandomResizedCrop: {
        const v1::RandomResizedCrop& crop = transform.random_resized_crop();
        SYSTOLE_RETURN_IF_ERROR(Resized("random_resized_crop", crop.height(), crop.width()));
        plan_.crop = OutputPlan::Crop::kRandomResized;
        RandomResizedCropOptions& options = plan_.random_resized_crop;
        if (crop.area_min() != 0) options.min_area = crop.area_min();
        if (crop.area_max() != 0) options.max_area = crop.area_max();
        if (crop.aspect_min() != 0) options.min_aspect = crop.aspect_min();
        if (crop.aspect_max() != 0) options.max_aspect = crop.aspect_max();
        if (const absl::Status status = CheckRandomResizedCrop(options); !status.ok()) {
          return Bad("random_resized_crop", status.message());
        }
        return absl::OkStatus();
      }
      case v1::Transform::kCenterCrop: {
        const v1::CenterCrop& crop = transform.center_crop();
        SYSTOLE_RETURN_IF_ERROR(Resized("center_crop", crop.height(), crop.width()));
        plan_.crop = OutputPlan::Crop::kCentre;
        plan_.centre_fraction = crop.fraction() == 0 ? 1 : crop.fraction();
        if (!(plan_.centre_fraction > 0 && plan_.centre_fraction <= 1)) {
          return Bad("center_crop",
                     absl::StrCat("fraction is ", crop.fraction(), ", want 0 < fraction <= 1"));
        }
        return absl::OkStatus();
      }
      case v1::Transform::kResize:
        return Resized("resize", transform.resize().height(), transform.resize().width());
      case v1::Transform::kRandomFlip:
        SYSTOLE_RETURN_IF_ERROR(Reach("random_flip", kFlip));
        SYSTOLE_RETURN_IF_ERROR(NeedPixels("random_flip"));
        plan_.flip = true;
        return absl::OkStatus();
      case v1::Transform::kRoundToUint8:
        if (stage_ < kDecode) return Bad("round_to_uint8", "wants decode_jpeg or decode_raw first");
        SYSTOLE_RETURN_IF_ERROR(Reach("round_to_uint8", kRound));
        plan_.round_to_uint8 = sized_;  // Else the values are whole numbers as they are.
        return absl::OkStatus();
      case v1::Transform::kNormalize:
        return Normalize(transform.normalize());
      case v1::Transform::KIND_NOT_SET:
        break;
    }
    return Bad("(empty)", absl::StrCat("names no transform that this server knows; it has ",
                                       FieldNames(*v1::Transform::descriptor())));
  }

  // Whether the chain may end here.
  absl::Status Finish() {
    if (plan_.source == OutputPlan::Source::kJpeg && !sized_) {
      return Refuse(
          output_,
          "decode_jpeg gives images of all sizes; add random_resized_crop, center_crop or "
          "resize");
    }
    if (bytes_ && stage_ < kDecode) {
      return Refuse(output_, absl::StrCat("the feature '", ForeignName(output_.feature()),
                                          "' is of kind bytes; begin with decode_jpeg or "
                                          "decode_raw"));
    }
    return absl::OkStatus();
  }

  void set_bytes() { bytes_ = true; }

 private:
  enum Stage { kStart, kDecode, kSize, kFlip, kRound, kNormalize };

  absl::Status Bad(absl::string_view name, absl::string_view what) const {
    return Refuse(output_, absl::StrCat("transforms[", index_, "] ", name, " ", what));
  }

  // Enters `stage`; each can be entered once and only forwards.
  absl::Status Reach(absl::string_view name, Stage stage) {
    if (stage <= stage_) {
      return Bad(name,
                 "stands twice or too late; the order is decode, crop or resize, random_flip, "
                 "round_to_uint8, normalize");
    }
    if (bytes_ && stage_ == kStart && stage != kDecode) {
      return Bad(name, absl::StrCat("comes before a decode, but the feature '",
                                    ForeignName(output_.feature()),
                                    "' is of kind bytes; begin with decode_jpeg or decode_raw"));
    }
    stage_ = stage;
    return absl::OkStatus();
  }

  absl::Status NeedBytes(absl::string_view name) const {
    if (bytes_) return absl::OkStatus();
    return Bad(name, absl::StrCat("wants a bytes feature, but '", ForeignName(output_.feature()),
                                  "' is not"));
  }

  absl::Status DecodeJpeg(const v1::DecodeJpeg& decode) {
    SYSTOLE_RETURN_IF_ERROR(Reach("decode_jpeg", kDecode));
    SYSTOLE_RETURN_IF_ERROR(NeedBytes("decode_jpeg"));
    if (!plan_.stored_shape.empty()) {
      return Refuse(output_, "shape must be empty after decode_jpeg: a crop or resize gives it");
    }
    const int channels = decode.channels() == 0 ? 3 : decode.channels();
    if (channels != 1 && channels != 3) {
      return Bad("decode_jpeg", absl::StrCat("channels is ", channels, ", want 1 or 3"));
    }
    if (!v1::DecodeJpeg::Dct_IsValid(decode.dct())) {
      return Bad("decode_jpeg", absl::StrCat("has dct ", static_cast<int>(decode.dct()), ", want ",
                                             EnumValues(*v1::DecodeJpeg::Dct_descriptor())));
    }
    plan_.source = OutputPlan::Source::kJpeg;
    plan_.image.jpeg.dct =
        decode.dct() == v1::DecodeJpeg::IFAST ? JpegDct::kIfast : JpegDct::kIslow;
    plan_.image.jpeg.fail_on_warning = !decode.allow_warnings();
    plan_.image.output.channels = channels;
    return absl::OkStatus();
  }

  absl::Status DecodeRaw() {
    SYSTOLE_RETURN_IF_ERROR(Reach("decode_raw", kDecode));
    SYSTOLE_RETURN_IF_ERROR(NeedBytes("decode_raw"));
    if (plan_.stored_shape.empty()) {
      return Refuse(output_, "decode_raw wants the shape of one example, such as shape: 784");
    }
    plan_.source = OutputPlan::Source::kRawBytes;
    return absl::OkStatus();
  }

  // From here on the output is an image: raw bytes must have the shape of one.
  absl::Status NeedPixels(absl::string_view name) {
    if (plan_.source == OutputPlan::Source::kJpeg) return absl::OkStatus();
    const std::vector<int64_t>& shape = plan_.stored_shape;
    const bool is_raw = plan_.source == OutputPlan::Source::kRawBytes ||
                        plan_.source == OutputPlan::Source::kRawPixels;
    if (!is_raw || shape.size() != 3 || (shape[2] != 1 && shape[2] != 3) || shape[0] > kMaxEdge ||
        shape[1] > kMaxEdge) {
      return Bad(name, absl::StrCat("wants an image: decode_jpeg, or decode_raw with a shape of "
                                    "[height, width, 1 or 3] and edges of at most ",
                                    kMaxEdge));
    }
    plan_.source = OutputPlan::Source::kRawPixels;
    BilinearResizerOptions& out = plan_.image.output;
    out.channels = static_cast<int>(shape[2]);
    if (stage_ != kSize) {
      out.height = static_cast<int>(shape[0]);
      out.width = static_cast<int>(shape[1]);
    }
    return absl::OkStatus();
  }

  absl::Status Resized(absl::string_view name, int height, int width) {
    SYSTOLE_RETURN_IF_ERROR(Reach(name, kSize));
    SYSTOLE_RETURN_IF_ERROR(NeedPixels(name));
    sized_ = true;
    if (height < 1 || width < 1 || height > kMaxEdge || width > kMaxEdge) {
      return Bad(name, absl::StrCat("has height: ", height, " and width: ", width, ", want 1 to ",
                                    kMaxEdge, " each"));
    }
    plan_.image.output.height = height;
    plan_.image.output.width = width;
    return absl::OkStatus();
  }

  absl::Status Normalize(const v1::Normalize& normalize) {
    SYSTOLE_RETURN_IF_ERROR(Reach("normalize", kNormalize));
    if (plan_.source == OutputPlan::Source::kInt64List ||
        plan_.source == OutputPlan::Source::kRecordId) {
      return Bad("normalize", "wants pixels, raw bytes or a float feature");
    }
    // One factor, or one for each channel: the last dimension.
    const int64_t channels = plan_.source == OutputPlan::Source::kJpeg
                                 ? plan_.image.output.channels
                                 : (plan_.stored_shape.empty() ? 1 : plan_.stored_shape.back());
    const size_t mean_count = static_cast<size_t>(normalize.mean_size());
    const size_t stddev_count = static_cast<size_t>(normalize.stddev_size());
    for (const auto& [field, count] :
         {std::pair("mean", mean_count), std::pair("stddev", stddev_count)}) {
      if (count > 1 && static_cast<int64_t>(count) != channels) {
        return Bad("normalize", absl::StrCat("has ", count, " values of ", field, ", want 1",
                                             channels == 1 ? "" : absl::StrCat(" or ", channels)));
      }
    }
    absl::StatusOr<NormaliseFactors> factors =
        FactorsOf(normalize.scale(), normalize.mean(), normalize.stddev());
    if (!factors.ok()) return Bad("normalize", factors.status().message());
    plan_.scale = std::move(factors->scale);
    plan_.bias = std::move(factors->bias);
    plan_.normalize = true;
    return absl::OkStatus();
  }

  const v1::Output& output_;
  OutputPlan& plan_;
  int index_ = 0;
  Stage stage_ = kStart;
  bool bytes_ = false;
  bool sized_ = false;
};

absl::Status CheckName(const v1::Output& output) {
  const bool good = !output.name().empty() && output.name().size() <= 128 &&
                    output.name().find_first_not_of(
                        "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789_/.-") == std::string::npos;
  if (!good) return Refuse(output, "name: want 1 to 128 letters, digits, '_', '/', '.' or '-'");
  if (output.name() == kValidTensor) {
    return Refuse(output, "the name is taken: 'valid' is always there; choose another");
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

// Which element types a source can be fed as.
absl::Status SetDType(const v1::Output& output, OutputPlan& plan) {
  using Source = OutputPlan::Source;
  const v1::DataType dtype = output.dtype();
  std::string wanted;
  bool good = false;
  switch (plan.source) {
    case Source::kRecordId:
    case Source::kInt64List:
      wanted = "INT64 or INT32";
      good = dtype == v1::INT64 || dtype == v1::INT32;
      break;
    case Source::kFloatList:
      wanted = "FLOAT32 or BFLOAT16";
      good = dtype == v1::FLOAT32 || dtype == v1::BFLOAT16;
      break;
    case Source::kRawBytes:
    case Source::kRawPixels:
    case Source::kJpeg:
      wanted = "UINT8, FLOAT32 or BFLOAT16";
      good = dtype == v1::UINT8 || dtype == v1::FLOAT32 || dtype == v1::BFLOAT16;
      break;
  }
  if (!good) {
    return Refuse(output,
                  absl::StrCat("dtype is ", EnumText(*v1::DataType_descriptor(), dtype), ", want ",
                               wanted, " for the feature '", ForeignName(output.feature()), "'"));
  }
  plan.dtype = static_cast<DType>(dtype);
  return absl::OkStatus();
}

}  // namespace

PixelType PixelTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return PixelType::kFloat32;
    case DType::kBfloat16:
      return PixelType::kBfloat16;
    default:
      return PixelType::kUint8;
  }
}

absl::StatusOr<OutputPlan> CompileOutput(const v1::Output& output, const Dataset& dataset) {
  using Source = OutputPlan::Source;
  OutputPlan plan;
  SYSTOLE_RETURN_IF_ERROR(CheckName(output));
  if (output.feature().empty()) return Refuse(output, "names no feature");
  SYSTOLE_RETURN_IF_ERROR(SetStoredShape(output, plan));

  Chain chain(output, plan);
  if (output.feature() == kRecordIdFeature) {
    plan.source = Source::kRecordId;
    if (!plan.stored_shape.empty()) return Refuse(output, "record_id is a scalar; leave out shape");
  } else if (output.feature() == kRecordFeature) {
    plan.source = Source::kRawBytes;
    chain.set_bytes();
  } else {
    SYSTOLE_ASSIGN_OR_RETURN(const FeatureKind kind, KindOf(output, dataset));
    switch (kind) {
      case FeatureKind::kInt64:
        plan.source = Source::kInt64List;
        break;
      case FeatureKind::kFloat:
        plan.source = Source::kFloatList;
        break;
      case FeatureKind::kBytes:
        plan.source = Source::kRawBytes;
        chain.set_bytes();
        break;
      case FeatureKind::kMissing:
        return Refuse(output, absl::StrCat("the feature '", ForeignName(output.feature()),
                                           "' has no values in the first record"));
    }
  }
  for (int i = 0; i < output.transforms_size(); ++i) {
    SYSTOLE_RETURN_IF_ERROR(chain.Apply(output.transforms(i), i));
  }
  SYSTOLE_RETURN_IF_ERROR(chain.Finish());
  SYSTOLE_RETURN_IF_ERROR(SetDType(output, plan));
  if (plan.source != Source::kJpeg && plan.source != Source::kRecordId) {
    SYSTOLE_RETURN_IF_ERROR(CheckSize(output, plan, dataset));
  }

  plan.layout = output.layout();
  if (plan.is_image()) {
    BilinearResizerOptions& image = plan.image.output;
    if (plan.dtype == DType::kUint8 && !plan.normalize)
      plan.round_to_uint8 = false;  // Done anyway.
    image.type = plan.round_to_uint8 ? PixelType::kUint8 : PixelTypeOf(plan.dtype);
    image.read_soon = plan.layout != v1::NHWC;  // Other layouts are made from this one.
    if (plan.normalize && !plan.round_to_uint8) {
      image.scale = plan.scale;
      image.bias = plan.bias;
    }
    plan.shape = {image.height, image.width, image.channels};
    // The resizer says last of all whether what it got makes sense. Sizes and channels were
    // checked.
    if (const auto transformer = ImageTransformer::Create(plan.image); !transformer.ok()) {
      return Refuse(output, absl::StrCat("normalize wants 1e30 at most of scale / stddev and of "
                                         "mean / stddev: ",
                                         transformer.status().message()));
    }
  } else {
    plan.shape = plan.stored_shape;
  }
  if (plan.layout != v1::NHWC && plan.shape.size() != 3) {
    return Refuse(output,
                  absl::StrCat("layout is ", v1::Layout_Name(plan.layout), ", but the shape has ",
                               plan.shape.size(), " dimensions, want [height, width, channels]"));
  }
  return plan;
}

}  // namespace systole
