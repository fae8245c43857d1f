#include "core/plan/mix_plan.h"

#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/operations/data_type.h"
#include "core/status/status_macros.h"
#include "core/tensor/dtype.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// With this bound on an image's height and width, an int holds any coordinate, and a double holds
// the area exactly.
constexpr int64_t kMaxMixedSide = int64_t{1} << 16;

absl::Status CheckGroup(int64_t group, const SliceLayout& layout) {
  if (group < 2 || group > kMaxMixGroup) {
    return absl::InvalidArgumentError(
        absl::StrCat("mix.group is ", group, ", want 2 to ", kMaxMixGroup));
  }
  if (layout.per_core_batch() % group == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("mix.group is ", group, " and a core gets ", layout.per_core_batch(),
                   " examples of a step; want a group that divides this number"));
}

// Finds the output `name`, and checks that it can be mixed. `field` is for messages, such as
// "mix.images[0]". `seen` has the names that were listed before, and gets `name`.
absl::StatusOr<const OutputPlan*> Find(absl::string_view field, const std::string& name,
                                       const v1::FeedSpec& spec,
                                       absl::Span<const OutputPlan> outputs,
                                       std::set<std::string>& seen) {
  const std::string what = absl::StrCat(field, " is '", ForeignName(name), "'");
  if (!seen.insert(name).second) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ", which is already listed; want each output once"));
  }
  for (int i = 0; i < spec.outputs_size(); ++i) {
    if (spec.outputs(i).name() != name) continue;
    const OutputPlan& output = outputs[static_cast<size_t>(i)];
    if (!IsFloat(output.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(what, ", an output of ",
                                                     DTypeName(output.dtype), "; want ",
                                                     kFloatNames, " (one_hot makes such labels)"));
    }
    if (output.layout != v1::NHWC && output.layout != v1::NCHW && output.layout != v1::HWCN) {
      return absl::InvalidArgumentError(absl::StrCat(what, ", an output of layout ",
                                                     v1::Layout_Name(output.layout),
                                                     "; want NHWC, NCHW or HWCN"));
    }
    if (output.padded.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ", which is padded; want an output whose examples have one length"));
    }
    return &output;
  }
  return absl::InvalidArgumentError(absl::StrCat(what, "; the spec has no such output"));
}

MixedTensor LabelsOf(const OutputPlan& output) {
  MixedTensor mixed = {.tensor = output.tensor};
  for (const int64_t dimension : output.shape) mixed.row_elements *= dimension;
  return mixed;
}

MixedTensor ImagesOf(const OutputPlan& output) {
  const int64_t height = output.shape[0];
  const int64_t width = output.shape[1];
  const int64_t channels = output.shape[2];
  const bool planes = output.layout == v1::NCHW;
  return {.tensor = output.tensor,
          .is_image = true,
          .rows = planes ? channels * height : height,
          .row_elements = planes ? width : width * channels,
          .image_height = height,
          .pixel_elements = planes ? 1 : channels};
}

}  // namespace

absl::StatusOr<MixPlan> MixPlan::Create(const v1::FeedSpec& spec,
                                        absl::Span<const OutputPlan> outputs,
                                        const SliceLayout& layout) {
  const v1::Mix& mix = spec.mix();
  SYSTOLE_RETURN_IF_ERROR(CheckGroup(mix.group(), layout));
  if (mix.images().empty()) {
    return absl::InvalidArgumentError("mix.images is empty, want the outputs that are images");
  }
  std::vector<MixedTensor> tensors;
  std::set<std::string> seen;
  int64_t height = 0;
  int64_t width = 0;
  for (int i = 0; i < mix.images_size(); ++i) {
    const std::string field = absl::StrCat("mix.images[", i, "]");
    SYSTOLE_ASSIGN_OR_RETURN(const OutputPlan* const output,
                             Find(field, mix.images(i), spec, outputs, seen));
    const std::vector<int64_t>& shape = output->shape;
    if (shape.size() != 3) {
      return absl::InvalidArgumentError(absl::StrCat(field, " is '", mix.images(i), "' of shape [",
                                                     absl::StrJoin(shape, ", "),
                                                     "], want [height, width, channels]"));
    }
    if (i == 0) {
      height = shape[0];
      width = shape[1];
    } else if (shape[0] != height || shape[1] != width) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, " is '", mix.images(i), "' of ", shape[0], " x ", shape[1], " pixels, '",
          mix.images(0), "' has ", height, " x ", width, "; want the same height and width"));
    }
    tensors.push_back(ImagesOf(*output));
  }
  for (int i = 0; i < mix.labels_size(); ++i) {
    SYSTOLE_ASSIGN_OR_RETURN(
        const OutputPlan* const output,
        Find(absl::StrCat("mix.labels[", i, "]"), mix.labels(i), spec, outputs, seen));
    tensors.push_back(LabelsOf(*output));
  }
  if (height > kMaxMixedSide || width > kMaxMixedSide) {
    return absl::InvalidArgumentError(absl::StrCat("mix.images[0] is '", mix.images(0), "' of ",
                                                   height, " x ", width, " pixels, want at most ",
                                                   kMaxMixedSide, " a side"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(
      MixDraws draws, MixDraws::Create(mix, static_cast<int>(height), static_cast<int>(width)));
  return MixPlan{.group = mix.group(), .draws = draws, .tensors = std::move(tensors)};
}

}  // namespace systole
