#include "server/catalogue.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

bool IsDatasetName(absl::string_view name) {
  return !name.empty() && name.size() <= 128 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
             "0123456789_.-") == absl::string_view::npos;
}

}  // namespace

absl::StatusOr<Catalogue> Catalogue::Open(const v1::ServerConfig& config,
                                          const ShardOptions& options) {
  if (config.datasets().empty()) {
    return absl::InvalidArgumentError(
        "no dataset to serve; say --dataset NAME=GLOB or name some in --config");
  }
  Catalogue catalogue;
  for (const v1::DatasetConfig& entry : config.datasets()) {
    if (!IsDatasetName(entry.name())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dataset name '", entry.name(), "': want 1 to 128 letters, digits, '_', '-' or '.'"));
    }
    if (catalogue.datasets_.contains(entry.name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("dataset '", entry.name(), "' is named twice; rename one"));
    }
    const std::vector<std::string> patterns(entry.shards().begin(), entry.shards().end());
    absl::StatusOr<std::shared_ptr<Dataset>> dataset =
        Dataset::Open(entry.name(), patterns, options);
    if (!dataset.ok()) {
      return absl::Status(dataset.status().code(), absl::StrCat("dataset '", entry.name(),
                                                                "': ", dataset.status().message()));
    }
    catalogue.datasets_.emplace(entry.name(), *std::move(dataset));
  }
  return catalogue;
}

absl::StatusOr<std::shared_ptr<const Dataset>> Catalogue::Find(absl::string_view name) const {
  const auto found = datasets_.find(name);
  if (found != datasets_.end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("no dataset '", name, "'; this server has ",
                   absl::StrJoin(datasets_, ", ", [](std::string* out, const auto& entry) {
                     absl::StrAppend(out, "'", entry.first, "'");
                   })));
}

}  // namespace systole
