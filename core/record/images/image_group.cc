#include "core/record/images/image_group.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/record/images/class_labels.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/store_table.h"
#include "core/text/foreign_text.h"
#include "core/text/percent_text.h"
#include "core/text/web_address.h"

namespace systole {
namespace {

// A class folder: where it lies, and its name.
struct ClassFolder {
  std::string parent;  // Ends with '/'.
  std::string name;
};

// The part of `name` before its base name, without the '/' between the two.
absl::string_view FolderOf(absl::string_view name) {
  absl::string_view folder =
      name.substr(0, static_cast<size_t>(BaseName(name).data() - name.data()));
  absl::ConsumeSuffix(&folder, "/");
  return folder;
}

absl::Status InNoClass(absl::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("the image \"", ForeignName(BaseName(name)),
                   "\" lies in no class folder; want ROOT/CLASS/IMAGE.jpg: move it into a folder "
                   "for its class"));
}

// Whether the base name of `name` is percent-encoded.
bool HasEncodedBaseName(absl::string_view name) {
  return IsWebAddress(name) && absl::StrContains(BaseName(name), '%');
}

std::string DecodedBaseName(absl::string_view name) {
  return HasEncodedBaseName(name) ? PercentDecoded(BaseName(name)) : std::string(BaseName(name));
}

// `decoded` is the decoded name of a folder or file.
absl::Status CheckDecoded(absl::string_view decoded) {
  if (decoded.find_first_of(absl::string_view("/\0", 2)) == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the name \"", ForeignName(decoded),
      "\" of an image or its class folder has a percent-encoded '/' or zero byte, which "
      "a file's name cannot have; rename it"));
}

// Compares the decoded base names of `a` and `b`. The result is less than, equal to or greater than
// 0.
int CompareBaseNames(absl::string_view a, absl::string_view b) {
  return HasEncodedBaseName(a) || HasEncodedBaseName(b)
             ? DecodedBaseName(a).compare(DecodedBaseName(b))
             : BaseName(a).compare(BaseName(b));
}

// Whether `a` comes before `b` in the group.
bool ImageIsBefore(const GroupedImage& a, const GroupedImage& b) {
  if (a.class_index != b.class_index) return a.class_index < b.class_index;
  const int order = CompareBaseNames(a.name, b.name);
  return order != 0 ? order < 0 : a.name < b.name;
}

// If a local file has several names ("a/1.jpg" and "./a/1.jpg"), keeps one of them. In other stores
// two such names may mean two objects, so they are refused. REQUIRES: the images are sorted.
absl::Status LeaveEachOnce(ImageGroup& group) {
  const auto is_same = [](const GroupedImage& a, const GroupedImage& b) {
    return a.class_index == b.class_index && CompareBaseNames(a.name, b.name) == 0;
  };
  std::vector<GroupedImage>& images = group.images;
  const auto twin = std::adjacent_find(images.begin(), images.end(), is_same);
  if (twin == images.end()) return absl::OkStatus();
  if (!SchemeOf(group.folder).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the image \"", ForeignName(ImageNameInGroup(group.classes[twin->class_index], twin->name)),
        "\" is named twice, with addresses that differ; give each image once"));
  }
  images.erase(std::unique(images.begin(), images.end(), is_same), images.end());
  return absl::OkStatus();
}

// The query of an address, with its '?'. Empty for a name that is no address, because in such a
// name a '?' is an ordinary character.
absl::string_view QueryOf(absl::string_view name) {
  return IsWebAddress(name) ? name.substr(std::min(name.size(), name.find('?'))) : "";
}

// See ImageGroup::query.
std::string CommonQuery(const std::vector<GroupedImage>& images) {
  const absl::string_view query = images.empty() ? "" : QueryOf(images.front().name);
  const bool is_common =
      std::all_of(images.begin(), images.end(),
                  [query](const GroupedImage& image) { return QueryOf(image.name) == query; });
  return is_common ? std::string(query) : "";
}

absl::StatusOr<ClassFolder> ClassFolderOf(const std::string& name) {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(name));
  // The full name of a local file is absolute and has no "..".
  const absl::string_view given = FolderOf(name);
  std::string full =
      store->FullName(given.empty() ? (name[0] == '/' ? "/" : ".") : std::string(given));
  while (absl::EndsWith(full, "/")) full.pop_back();
  const size_t slash = full.rfind('/');
  if (slash == std::string::npos || slash + 1 == full.size()) return InNoClass(name);
  ClassFolder folder = {.parent = full.substr(0, slash + 1), .name = full.substr(slash + 1)};
  // The first part of a URL is a server or a bucket, not a class.
  if (absl::EndsWith(folder.parent, "://")) return InNoClass(name);
  if (IsWebAddress(name)) {
    folder.name = PercentDecoded(folder.name);
    SYSTOLE_RETURN_IF_ERROR(CheckDecoded(folder.name));
  }
  if (folder.name.size() > kMaxClassBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the class folder \"", ForeignName(folder.name),
                                                   "\" has a name of ", folder.name.size(),
                                                   " bytes, the limit is ", kMaxClassBytes));
  }
  return folder;
}

}  // namespace

bool HasImageName(absl::string_view name) {
  const absl::string_view base = BaseName(name);
  return absl::EndsWithIgnoreCase(base, ".jpg") || absl::EndsWithIgnoreCase(base, ".jpeg") ||
         absl::EndsWithIgnoreCase(base, ".png");
}

std::string ImageNameInGroup(absl::string_view class_name, absl::string_view name) {
  return absl::StrCat(class_name, "/", DecodedBaseName(name));
}

absl::StatusOr<ImageGroup> GroupImages(std::vector<std::string> names) {
  if (names.size() > kMaxGroupFiles) {
    return absl::ResourceExhaustedError(absl::StrCat("a dataset of ", names.size(),
                                                     " image files; the limit is ", kMaxGroupFiles,
                                                     ": pack them into shards"));
  }
  ImageGroup group;
  // The ClassFolder of each folder that was seen. So a ClassFolder is computed once for each
  // folder, and not once for each file.
  std::map<std::string, ClassFolder, std::less<>> folders;
  std::vector<const ClassFolder*> folder_of;
  folder_of.reserve(names.size());
  for (const std::string& name : names) {
    if (name.size() > kMaxImageNameBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the image \"", ForeignName(BaseName(name)),
                                                     "\" has a name of ", name.size(),
                                                     " bytes, the limit is ", kMaxImageNameBytes));
    }
    if (HasEncodedBaseName(name)) SYSTOLE_RETURN_IF_ERROR(CheckDecoded(DecodedBaseName(name)));
    auto found = folders.find(FolderOf(name));
    if (found == folders.end()) {
      SYSTOLE_ASSIGN_OR_RETURN(ClassFolder folder, ClassFolderOf(name));
      found = folders.emplace(std::string(FolderOf(name)), std::move(folder)).first;
    }
    const ClassFolder& folder = found->second;
    if (group.folder.empty()) group.folder = folder.parent;
    if (folder.parent != group.folder) {
      const auto shown = [](const ClassFolder& its_folder, absl::string_view its_name) {
        const absl::string_view root = NameForClients(absl::StripSuffix(its_folder.parent, "/"));
        return ForeignName(absl::StrCat(root, root == "/" ? "" : "/",
                                        ImageNameInGroup(its_folder.name, its_name)));
      };
      return absl::InvalidArgumentError(absl::StrCat(
          "the class folders of \"", shown(*folder_of[0], names[0]), "\" and \"",
          shown(folder, name),
          "\" lie in different folders; want ROOT/CLASS/IMAGE.jpg with one ROOT: give each ROOT as "
          "a dataset of its own"));
    }
    folder_of.push_back(&folder);
  }

  std::map<absl::string_view, uint32_t> classes;
  for (const auto& [unused, folder] : folders) classes.emplace(folder.name, 0);
  for (auto& [name, index] : classes) {
    index = static_cast<uint32_t>(group.classes.size());
    group.classes.emplace_back(name);
  }
  group.images.reserve(names.size());
  std::map<const ClassFolder*, uint32_t> index_of;
  for (const auto& [unused, folder] : folders) index_of[&folder] = classes[folder.name];
  for (size_t i = 0; i < names.size(); ++i) {
    group.images.push_back({std::move(names[i]), index_of[folder_of[i]]});
  }
  std::sort(group.images.begin(), group.images.end(), ImageIsBefore);
  SYSTOLE_RETURN_IF_ERROR(LeaveEachOnce(group));
  group.query = CommonQuery(group.images);
  return group;
}

}  // namespace systole
