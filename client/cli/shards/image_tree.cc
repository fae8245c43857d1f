#include "client/cli/shards/image_tree.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/record/images/image_group.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"
#include "core/text/web_address.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

// A mistyped web address is taken for a folder. ShownName() leaves out the secrets that an address
// may hold.
std::string Shown(const fs::path& folder) { return ForeignText(ShownName(folder.string())); }

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
    return absl::NotFoundError(absl::StrCat("there is no folder ", Shown(folder)));
  }
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot read the folder ", Shown(folder), ": ", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool HasWildcards(absl::string_view name) {
  return name.find_first_of("*?[\\") != absl::string_view::npos;
}

bool IsList(absl::string_view images) { return absl::StartsWith(images, "@"); }

// The lines of a file that names images. Blank lines are left out.
absl::StatusOr<std::vector<std::string>> LinesOf(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string text, GetStored(path, kMaxImageListBytes));
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view name = absl::StripSuffix(line, "\r");
    if (!name.empty()) lines.emplace_back(name);
  }
  if (!lines.empty()) return lines;
  return absl::NotFoundError(
      absl::StrCat(ForeignText(ShownName(path)), " names no image; want one on each line"));
}

absl::StatusOr<std::vector<std::string>> PatternsOf(const std::string& images) {
  if (IsList(images)) return LinesOf(images.substr(1));
  const bool is_folder =
      !SchemeOf(images).empty() && !IsWebAddress(images) && !HasWildcards(images);
  if (!is_folder) return std::vector<std::string>{images};
  return std::vector<std::string>{absl::StrCat(absl::StripSuffix(images, "/"), "/*/*")};
}

}  // namespace

absl::StatusOr<ImageTree> ListImages(const std::string& images) {
  std::error_code ignored;
  const bool is_elsewhere = !SchemeOf(images).empty();
  const bool is_tree = !is_elsewhere && fs::is_directory(images, ignored);
  const bool is_pattern = is_elsewhere || IsList(images) || HasWildcards(images);
  if (is_tree || !is_pattern) return ListImageTree(images);
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> patterns, PatternsOf(images));
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> names, ListShards(patterns));
  SYSTOLE_ASSIGN_OR_RETURN(ImageGroup group, GroupImages(std::move(names)));
  ImageTree tree = {.classes = std::move(group.classes), .files = {}};
  tree.files.reserve(group.images.size());
  for (GroupedImage& image : group.images) {
    tree.files.push_back({std::move(image.name), int64_t{image.class_index}});
  }
  return tree;
}

absl::StatusOr<ImageTree> ListImageTree(const std::string& root) {
  ImageTree tree;
  // A path whose kind cannot be found out counts as a file. Opening it fails later.
  std::error_code ignored;
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
            absl::StrCat("the class folder ", Shown(folder), " holds a folder, ", ForeignName(file),
                         "; want ROOT/CLASS/IMAGE.jpg and nothing deeper"));
      }
      tree.files.push_back({path.string(), label});
    }
  }
  if (!tree.files.empty()) return tree;
  const int64_t beside = std::count_if(top.begin(), top.end(), HasImageName);
  if (beside > 0) {
    return absl::NotFoundError(absl::StrCat(
        "no class folder in ", Shown(root), " has a file, but ", beside,
        beside == 1 ? " image lies" : " images lie",
        " directly in this folder; want ROOT/CLASS/IMAGE.jpg: if this is a class folder, give "
        "the folder that holds it"));
  }
  return absl::NotFoundError(absl::StrCat(
      "no images in ", Shown(root), ": it has ", tree.classes.size(),
      tree.classes.size() == 1 ? " class folder" : " class folders",
      tree.classes.empty() ? "" : " and nothing in them", "; want ROOT/CLASS/IMAGE.jpg"));
}

}  // namespace systole
