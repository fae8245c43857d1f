#include "client/cli/shards/image_tree.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/record/images/image_group.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

// The names in `folder`, hidden ones left out, sorted by bytes.
absl::StatusOr<std::vector<std::string>> SortedNames(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name[0] != '.') names.push_back(std::move(name));
  }
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return absl::NotFoundError(absl::StrCat("there is no folder ", folder.string()));
  }
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot read the folder ", folder.string(), ": ", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<ImageTree> ListImageTree(const std::string& root) {
  ImageTree tree;
  std::error_code ignored;  // A path that cannot be read counts as a file; opening it fails.
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> top, SortedNames(root));
  for (const std::string& name : top) {
    const fs::path folder = fs::path(root) / name;
    if (!fs::is_directory(folder, ignored)) continue;
    const int64_t label = static_cast<int64_t>(tree.classes.size());
    tree.classes.push_back(name);
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> files, SortedNames(folder));
    for (const std::string& file : files) {
      const fs::path path = folder / file;
      if (fs::is_directory(path, ignored)) {
        return absl::InvalidArgumentError(
            absl::StrCat("the class folder ", folder.string(), " holds a folder, ", file,
                         "; want ROOT/CLASS/IMAGE.jpg and nothing deeper"));
      }
      tree.files.push_back({path.string(), label});
    }
  }
  if (!tree.files.empty()) return tree;
  const int64_t beside = std::count_if(top.begin(), top.end(), HasImageName);
  if (beside > 0) {
    return absl::NotFoundError(
        absl::StrCat("no class folder in ", root, " has a file, but ", beside,
                     beside == 1 ? " image lies" : " images lie",
                     " directly in it; want ROOT/CLASS/IMAGE.jpg: give its parent folder"));
  }
  return absl::NotFoundError(absl::StrCat(
      "no images in ", root, ": it has ", tree.classes.size(),
      tree.classes.size() == 1 ? " class folder" : " class folders",
      tree.classes.empty() ? "" : " and nothing in them", "; want ROOT/CLASS/IMAGE.jpg"));
}

}  // namespace systole
