#include "core/storage/object_names.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/storage/byte_source.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

bool IsFolderName(absl::string_view name) { return absl::EndsWith(name, "/"); }

// `pattern` as the name of a folder, which ends with '/'.
std::string FolderName(const std::string& pattern) {
  return IsFolderName(pattern) ? pattern : pattern + "/";
}

bool IsFolder(const ObjectNames& objects, const std::string& folder) {
  const auto first = objects.lower_bound(folder);
  return first != objects.end() && absl::StartsWith(*first, folder);
}

// Text with a NUL never matches: fnmatch() would compare only the part before the NUL.
bool Matches(const std::string& pattern, const std::string& name) {
  return pattern.find('\0') == std::string::npos && name.find('\0') == std::string::npos &&
         ::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
}

// The objects whose names match `pattern`, and the folders that hold objects and whose names match
// `pattern`.
std::set<std::string> Matching(const ObjectNames& objects, const std::string& pattern) {
  std::set<std::string> found;
  absl::string_view before;
  for (const std::string& object : objects) {
    if (!IsFolderName(object) && Matches(pattern, object)) found.insert(found.end(), object);
    // Folders that also hold the object before this one have been compared already.
    const auto seen = static_cast<size_t>(
        std::mismatch(object.begin(), object.end(), before.begin(), before.end()).first -
        object.begin());
    for (size_t end = object.find('/', seen); end != std::string::npos;
         end = object.find('/', end + 1)) {
      std::string folder = object.substr(0, end);
      if (Matches(pattern, folder)) found.insert(std::move(folder));
    }
    before = object;
  }
  return found;
}

}  // namespace

std::vector<std::string> ObjectsIn(const ObjectNames& objects, const std::string& folder) {
  std::set<std::string> found;
  for (auto at = objects.lower_bound(folder); at != objects.end() && absl::StartsWith(*at, folder);
       ++at) {
    if (*at == folder) continue;  // This name only says that the folder exists.
    const absl::string_view part =
        absl::string_view(*at).substr(folder.size(), at->find('/', folder.size()) - folder.size());
    // A folder without a name, as in "data//x", is shown with the '/' after it.
    if (part.empty()) found.insert(folder + "/");
    if (!part.empty() && part[0] != '.') found.insert(found.end(), absl::StrCat(folder, part));
  }
  return {found.begin(), found.end()};
}

absl::StatusOr<std::vector<std::string>> ListObjects(const ObjectNames& objects,
                                                     const std::string& pattern,
                                                     Store::NameFilter wanted) {
  std::vector<std::string> names;
  if (!IsFolderName(pattern) && objects.contains(pattern)) {
    names = {pattern};
  } else if (IsFolder(objects, FolderName(pattern))) {
    names = ObjectsIn(objects, FolderName(pattern));
  } else {
    const std::set<std::string> matching = Matching(objects, pattern);
    if (matching.empty()) return PatternMatchesNothing(pattern);
    names = {matching.begin(), matching.end()};
  }
  std::erase_if(names, [wanted](const std::string& name) { return !wanted(name); });
  for (const std::string& name : names) {
    if (!IsFolderName(name) && objects.contains(name)) continue;
    return absl::InvalidArgumentError(absl::StrCat("pattern \"", ForeignText(ShownName(pattern)),
                                                   "\": \"", ForeignText(ShownName(name)),
                                                   "\" is a folder; want a file"));
  }
  return names;
}

bool TakesObject(const ObjectNames& objects, const std::string& pattern, const std::string& name) {
  if (IsFolderName(name)) return false;
  if (pattern == name) return true;
  if (!IsFolderName(pattern) && objects.contains(pattern)) return false;
  if (const std::string folder = FolderName(pattern); IsFolder(objects, folder)) {
    const absl::string_view base = BaseName(name);
    return !base.empty() && base[0] != '.' && absl::StrCat(folder, base) == name;
  }
  return Matches(pattern, name);
}

}  // namespace systole
