#include "core/spec/transform_runs.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/spec/transform_name.h"

namespace systole {
namespace {

constexpr absl::string_view kMeaning =
    "fused: one pass from the record to the tensor, the fastest way\n"
    "by row: over an image in memory, a few rows at a time, in one pass with the by-row "
    "transforms next to it\n"
    "alone: by itself, over the whole image or list\n";

}  // namespace

std::string RunName(v1::TransformRun run) {
  switch (run) {
    case v1::FUSED:
      return "fused";
    case v1::BY_ROW:
      return "by row";
    case v1::ALONE:
      return "alone";
    default:  // A server of another release sent this number.
      return "not known";
  }
}

std::string ExplainRuns(const v1::FeedSpec& spec, const SpecRuns& runs) {
  std::string text;
  for (int i = 0; i < spec.outputs_size(); ++i) {
    const v1::Output& output = spec.outputs(i);
    if (output.transforms().empty()) continue;
    absl::StrAppend(&text, output.name(), ": ");
    const auto at = static_cast<size_t>(i);
    const auto count = static_cast<size_t>(output.transforms_size());
    const bool known = at < runs.size() && runs[at].size() == count;
    std::string before;
    for (int j = 0; j < output.transforms_size(); ++j) {
      const std::string run = known ? RunName(runs[at][static_cast<size_t>(j)]) : "not known";
      absl::StrAppend(&text, run == before ? ", " : absl::StrCat(j == 0 ? "" : "; ", run, ": "),
                      TransformName(output.transforms(j)));
      before = run;
    }
    text.push_back('\n');
  }
  return text.empty() ? text : absl::StrCat(text, "\n", kMeaning);
}

}  // namespace systole
