#include "core/storage/stores/list_shards.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/store_table.h"
#include "core/text/foreign_text.h"
#include "core/text/web_address.h"

namespace systole {
namespace {

bool LiesBesideShards(absl::string_view path) {
  const absl::string_view name = BaseName(path);  // Without the query of an address.
  return absl::EndsWith(name, ".idx") || absl::EndsWith(name, ".idx.hash") ||
         absl::EndsWith(name, ".idx.restart") || absl::EndsWith(name, kLabelsFileName) ||
         absl::EndsWith(name, kManifestSuffix) || absl::EndsWith(name, ".json");
}

// Adds to the error for a folder what to write if it has class folders of images.
absl::Status WithGlobOfImages(const absl::Status& error, absl::string_view pattern) {
  if (!absl::IsInvalidArgument(error) || !absl::StrContains(error.message(), "folder") ||
      IsWebAddress(pattern)) {
    return error;
  }
  // A glob for the class folders lacks only their files.
  const absl::string_view missing =
      BaseName(pattern).find_first_of("*?[") == std::string::npos ? "/*/*.jpg" : "/*.jpg";
  return absl::Status(
      error.code(), absl::StrCat(error.message(), "; for images in a folder for each class, use ",
                                 ForeignText(absl::StripSuffix(ShownName(pattern), "/")), missing));
}

}  // namespace

bool PatternTakes(const std::string& pattern, const std::string& path) {
  if (LiesBesideShards(path)) return false;
  const absl::StatusOr<const Store*> store = StoreOf(pattern);
  const absl::StatusOr<const Store*> other = StoreOf(path);
  return store.ok() && other.ok() && *store == *other && (*store)->Takes(pattern, path);
}

absl::StatusOr<std::vector<std::string>> ListShards(absl::Span<const std::string> patterns) {
  if (patterns.empty()) return absl::InvalidArgumentError("no pattern of shards is given");
  std::vector<std::string> shards;
  for (const std::string& pattern : patterns) {
    // A store on the network may take long for each pattern.
    if (InterruptRequested()) return InterruptedError();
    SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(pattern));
    size_t seen = 0;
    const absl::StatusOr<std::vector<std::string>> listed =
        store->List(pattern, [&seen](absl::string_view name) {
          ++seen;
          return !LiesBesideShards(name);
        });
    if (!listed.ok()) return WithGlobOfImages(listed.status(), pattern);
    const std::vector<std::string>& named = *listed;
    if (named.empty()) {
      return absl::NotFoundError(absl::StrCat(
          "pattern \"", ForeignText(ShownName(pattern)), "\" matches ",
          seen == 0 ? "an empty folder"
                    : "only files that lie beside shards (index files, labels.txt, manifests)",
          "; want shards"));
    }
    shards.insert(shards.end(), named.begin(), named.end());
  }
  // By name first, because the folders of shards may differ from machine to machine.
  std::sort(shards.begin(), shards.end(), [](const std::string& a, const std::string& b) {
    return std::tuple(BaseName(a), a) < std::tuple(BaseName(b), b);
  });
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  return shards;
}

}  // namespace systole
