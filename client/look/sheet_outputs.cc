#include "client/look/sheet_outputs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/operations/ops/operation_table.h"
#include "core/status/status_macros.h"
#include "core/text/markup_text.h"

namespace systole {
namespace {

const SliceTensor& TensorOf(const SheetOutput& output, const SliceLayout& layout) {
  return layout.tensors()[static_cast<size_t>(output.index)];
}

void Summarise(const Step& step, SheetOutput& output) {
  const SliceTensor& tensor = TensorOf(output, step.layout());
  const std::vector<uint8_t> all(static_cast<size_t>(tensor.per_core_batch()), 1);
  for (int core = step.core_begin(); core < step.core_end(); ++core) {
    output.summary.Add(tensor, step.Tensor(core, output.index).data,
                       output.output == nullptr ? all : ValidPlaces(step, core));
  }
}

std::string MixedBy(const v1::Mix& mix, const std::string& output) {
  const auto has = [&](const google::protobuf::RepeatedPtrField<std::string>& names) {
    return std::find(names.begin(), names.end(), output) != names.end();
  };
  if (!has(mix.images()) && !has(mix.labels())) return "";
  if (!mix.has_mixup()) return "cutmix";
  return mix.has_cutmix() ? "mixup or cutmix" : "mixup";
}

// "image: decode_jpeg, random_flip, normalize; mixup": where the values come from.
std::string OriginText(const SheetOutput& output) {
  if (output.output == nullptr) return "1 = an example, 0 = padding or masked; over all places";
  const std::string transforms = absl::StrJoin(
      output.output->transforms(), ", ", [](std::string* text, const v1::Transform& transform) {
        absl::StrAppend(text, OperationName(transform.kind_case()));
      });
  return absl::StrCat("feature ", output.output->feature(), transforms.empty() ? "" : ": ",
                      transforms, output.mixed_by.empty() ? "" : "; ", output.mixed_by);
}

std::string LayoutText(const SheetOutput& output, const SliceTensor& tensor) {
  if (tensor.is_tiled()) {
    return absl::StrCat("HWCN_TILED, ", tensor.useful_bytes(), " of ", tensor.spec.num_bytes(),
                        " bytes useful");
  }
  return output.image.has_value() ? v1::Layout_Name(output.output->layout()) : "–";
}

// How the pictures were made from values. Outputs with the same text share a line.
std::string RemarksHtml(absl::Span<const SheetOutput> outputs) {
  std::map<std::string, std::string> names_by_how;
  for (const SheetOutput& output : outputs) {
    if (!output.image.has_value()) continue;
    std::string& names = names_by_how[output.image->HowText()];
    absl::StrAppend(&names, names.empty() ? "" : ", ", "<b>", EscapeMarkup(output.name), "</b>");
  }
  if (names_by_how.empty()) return "";
  std::string html = "<ul class=\"remarks\">\n";
  for (const auto& [how, names] : names_by_how) {
    absl::StrAppend(&html, "<li>", names, ": the pictures show the values, ", how, ".</li>\n");
  }
  return html + "</ul>\n";
}

absl::Status NotOfTheSpec(absl::string_view tensor) {
  return absl::InvalidArgumentError(
      absl::StrCat("the steps have no tensor '", tensor, "': they are not steps of this spec"));
}

}  // namespace

absl::Span<const uint8_t> ValidPlaces(const Step& step, int core) {
  return step.Tensor(core, step.layout().valid_index()).bytes();
}

absl::StatusOr<std::vector<SheetOutput>> SheetOutputs(const v1::FeedSpec& spec,
                                                      absl::Span<const Step> steps) {
  const SliceLayout& layout = steps[0].layout();
  std::vector<SheetOutput> outputs;
  for (const v1::Output& output : spec.outputs()) {
    const int index = layout.IndexOf(output.name());
    if (index < 0) return NotOfTheSpec(output.name());
    const SliceTensor& tensor = layout.tensors()[static_cast<size_t>(index)];
    SYSTOLE_ASSIGN_OR_RETURN(std::optional<ImageOutput> image, ImageOutput::Create(output, tensor));
    outputs.push_back({.output = &output,
                       .index = index,
                       .name = output.name(),
                       .mixed_by = MixedBy(spec.mix(), output.name()),
                       .summary = TensorSummary(tensor.spec.dtype),
                       .image = std::move(image)});
  }
  for (const v1::Output& output : spec.outputs()) {
    if (!output.has_padded()) continue;
    const std::string name = LengthTensor(output.name());
    const int index = layout.IndexOf(name);
    if (index < 0) return NotOfTheSpec(name);
    outputs.push_back({.index = index, .name = name, .summary = TensorSummary(DType::kInt32)});
  }
  outputs.push_back({.index = layout.valid_index(),
                     .name = kValidTensor,
                     .summary = TensorSummary(DType::kUint8)});
  for (const Step& step : steps) {
    for (SheetOutput& output : outputs) Summarise(step, output);
  }
  return outputs;
}

std::string OutputTableHtml(absl::Span<const SheetOutput> outputs, const SliceLayout& layout) {
  const bool all_finite =
      std::all_of(outputs.begin(), outputs.end(),
                  [](const SheetOutput& output) { return output.summary.all_finite(); });
  std::string html =
      "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Output</th>"
      "<th scope=\"col\">Type</th><th scope=\"col\">Shape on a core</th>"
      "<th scope=\"col\">Layout</th><th scope=\"col\">Minimum</th><th scope=\"col\">Maximum</th>"
      "<th scope=\"col\">Mean</th>";
  if (!all_finite) html += "<th scope=\"col\">NaN or infinite</th>";
  html += "</tr></thead><tbody>\n";
  for (const SheetOutput& output : outputs) {
    const TensorSpec& tensor = TensorOf(output, layout).spec;
    const TensorSummary& summary = output.summary;
    absl::StrAppend(&html, "<tr><th scope=\"row\">", EscapeMarkup(output.name), "<small>",
                    EscapeMarkup(OriginText(output)), "</small></th><td>", DTypeName(tensor.dtype),
                    "</td><td>", absl::StrJoin(tensor.shape, " × "), "</td><td>",
                    LayoutText(output, TensorOf(output, layout)), "</td><td>", summary.MinText(),
                    "</td><td>", summary.MaxText(), "</td><td>", summary.MeanText(), "</td>");
    if (!all_finite) {
      absl::StrAppend(&html, summary.all_finite() ? "<td>none" : "<td class=\"alarm\">",
                      summary.all_finite() ? "" : summary.NotFiniteText(), "</td>");
    }
    html += "</tr>\n";
  }
  absl::StrAppend(&html, "</tbody></table></div>\n");
  return absl::StrCat(html, RemarksHtml(outputs));
}

}  // namespace systole
