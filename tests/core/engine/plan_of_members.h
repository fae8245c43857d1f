// Plans of specs that name several datasets, for tests.
#ifndef SYSTOLE_TESTS_CORE_ENGINE_PLAN_OF_MEMBERS_H_
#define SYSTOLE_TESTS_CORE_ENGINE_PLAN_OF_MEMBERS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/dataset/dataset.h"
#include "core/plan/feed_plan.h"
#include "tests/core/dataset/test_dataset.h"

namespace systole {

// The key is the dataset's name.
using Datasets = std::map<std::string, std::shared_ptr<Dataset>>;

// The plan of a spec. `text` is the spec as textproto. NotFound if the spec names a dataset that
// `datasets` does not have. Also the errors of DatasetOf() and FeedPlan::Create().
inline absl::StatusOr<std::shared_ptr<const FeedPlan>> PlanOf(const std::string& text,
                                                              const Datasets& datasets) {
  const v1::FeedSpec spec = SpecFromText(text);
  absl::StatusOr<std::shared_ptr<const Dataset>> dataset = DatasetOf(
      spec, [&](const std::string& name) -> absl::StatusOr<std::shared_ptr<const Dataset>> {
        const auto found = datasets.find(name);
        if (found == datasets.end()) return absl::NotFoundError(absl::StrCat("no '", name, "'"));
        return found->second;
      });
  if (!dataset.ok()) return dataset.status();
  return FeedPlan::Create(spec, *dataset);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_ENGINE_PLAN_OF_MEMBERS_H_
