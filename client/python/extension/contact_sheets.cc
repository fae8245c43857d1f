#include "client/python/extension/contact_sheets.h"

#include "client/look/contact_sheet.h"
#include "client/python/extension/raise.h"
#include "core/plan/content_version.h"
#include "core/plan/feed_plan.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"

namespace nb = nanobind;

namespace systole::python {

ContactSheets::ContactSheets(v1::FeedSpec spec, std::shared_ptr<const StepShape> shape,
                             std::string source, std::string explanation,
                             std::optional<Order> order)
    : spec_(std::move(spec)),
      shape_(std::move(shape)),
      source_(std::move(source)),
      explanation_(std::move(explanation)),
      order_(std::move(order)) {}

std::string ContactSheets::Page(const std::vector<std::pair<int64_t, Memory>>& steps,
                                int64_t max_examples) const {
  std::vector<Step> shown;
  for (const auto& [number, memory] : steps) {
    if (memory.size() != shape_->bytes()) {
      RaiseIfError(absl::InvalidArgumentError("the step does not belong to this feed"));
    }
    shown.emplace_back(number, shape_, StepBuffer(memory.bytes(), memory.data()));
  }
  return ValueOrRaise(ContactSheet(spec_, shown,
                                   {.source = source_,
                                    .version = ContentVersion(),
                                    .explanation = explanation_,
                                    .order = order_,
                                    .max_examples = max_examples}));
}

void DeclareContactSheets(nb::module_& module) {
  nb::class_<ContactSheets>(module, "ContactSheets", "Makes pages of a feed's steps.")
      .def("page", &ContactSheets::Page, nb::arg("steps"), nb::arg("max_examples"));
}

}  // namespace systole::python
