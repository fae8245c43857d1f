#include "core/plan/example_cost.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/image/image_size.h"
#include "core/operations/program.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The sum of all parts, and the largest part.
class Count {
 public:
  template <typename... Name>
  void Add(int64_t elements, const Name&... name) {
    sum_ += elements;
    if (elements <= largest_) return;
    largest_ = elements;
    what_ = absl::StrCat(name...);
  }

  int64_t sum() const { return std::max<int64_t>(1, sum_); }
  std::string Largest() const { return absl::StrCat(what_, ", ", largest_); }

 private:
  int64_t sum_ = 0;
  int64_t largest_ = 0;
  std::string what_;
};

std::optional<ImageSize> LargestImage(const v1::Output& output, const OutputPlan& plan,
                                      const Dataset& dataset) {
  std::optional<ImageSize> largest;
  const auto add = [&largest](const std::optional<ImageSize>& size) {
    if (!size.has_value()) return;
    if (!largest.has_value() || size->pixels() > largest->pixels()) largest = size;
  };
  const absl::string_view feature =
      output.feature() == kRecordFeature ? absl::string_view() : output.feature();
  add(dataset.sample().LargestImage(feature));
  for (const auto& member : dataset.members()) add(member->sample().LargestImage(feature));
  if (plan.default_values.has_value()) add(SizeOfImage(plan.default_values->bytes));
  return largest;
}

void CountOutput(const v1::Output& output, const OutputPlan& plan, const Dataset& dataset,
                 Count& count) {
  const std::string name = absl::StrCat("output '", ForeignName(output.name()), "'");
  count.Add(plan.stored_elements, name, " as stored");
  if (plan.program.program == nullptr) return;
  const std::optional<ImageSize> image = LargestImage(output, plan, dataset);
  ValueType type = plan.program.program->input();
  for (const Program::Step& step : plan.program.program->steps()) {
    const std::string what = absl::StrCat(name, " ", step.name);
    ValueType made = step.output;
    // If images may have any size, the largest one is counted.
    if (!made.has_size()) {
      if (type.element == ElementType::kBytes && image.has_value()) {
        made.shape = {image->height, image->width, made.shape[2]};
        count.Add(image->pixels(), what, " of an image of ", image->height, " x ", image->width);
        type = std::move(made);
        continue;
      }
      if (const absl::StatusOr<ValueType> of_image = step.operation->TypeOf(type); of_image.ok()) {
        made = *of_image;
      }
    }
    if (made.has_size()) {
      count.Add(type.has_size() && type.element != ElementType::kBytes
                    ? step.operation->Work(type, made)
                    : made.num_elements(),
                what);
    }
    type = std::move(made);
  }
}

}  // namespace

absl::StatusOr<int64_t> CountExampleElements(const v1::FeedSpec& spec, const Dataset& dataset,
                                             absl::Span<const OutputPlan> outputs, int64_t group) {
  Count count;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const v1::Output& output = spec.outputs(static_cast<int>(i));
    CountOutput(output, outputs[i], dataset, count);
    if (!spec.has_mix()) continue;
    int64_t elements = 1;
    for (const int64_t side : outputs[i].shape) elements *= side;
    count.Add(elements, "mix of output '", ForeignName(output.name()), "'");
  }
  if (count.sum() > kMaxExampleElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("to make an example, a thread computes ", count.sum(),
                     " values, want at most ", kMaxExampleElements, "; the largest part is ",
                     count.Largest(), "; crop or resize earlier, or use fewer transforms"));
  }
  if (count.sum() > kMaxGroupElements / group) {
    return absl::InvalidArgumentError(absl::StrCat(
        "mix has a group of ", group, " examples, and a thread computes ", count.sum(),
        " values for each, want at most ", kMaxGroupElements, " in all; the largest part is ",
        count.Largest(), "; make the group smaller, or crop or resize earlier"));
  }
  return count.sum();
}

}  // namespace systole
