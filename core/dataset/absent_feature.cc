#include "core/dataset/absent_feature.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/text/did_you_mean.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The most names that an error lists; a record may have any number of features.
constexpr size_t kMostListed = 20;

}  // namespace

absl::Status NoRecordHas(const Dataset& dataset, const std::string& feature) {
  std::vector<std::string> known = dataset.sample().names();
  for (const std::shared_ptr<const Dataset>& member : dataset.members()) {
    for (std::string& name : member->sample().names()) known.push_back(std::move(name));
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  const std::string meant = DidYouMean(feature, known);
  std::vector<std::string> listed;
  for (const std::string& name : known) {
    if (listed.size() < kMostListed) listed.push_back(ForeignName(name));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "dataset '", dataset.name(), "': no record has the feature '", ForeignName(feature), "'",
      !meant.empty()  ? meant
      : known.empty() ? absl::StrCat("; none of the records that were looked at can be read as ",
                                     dataset.example_name())
                      : absl::StrCat("; its records have ", absl::StrJoin(listed, ", "),
                                     known.size() > kMostListed ? ", .." : "")));
}

}  // namespace systole
