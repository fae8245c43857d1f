#include "core/storage/stores/list_shards.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "absl/functional/function_ref.h"
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
         absl::EndsWith(name, ".idx.restart") || absl::EndsWith(name, kColumnSuffix) ||
         absl::EndsWith(name, kLabelsFileName) || absl::EndsWith(name, kManifestSuffix) ||
         absl::EndsWith(name, ".json");
}

// If the pattern names a folder, as `error` says, adds a hint to the message: the glob for images
// in one folder for each class.
absl::Status WithGlobOfImages(const absl::Status& error, absl::string_view pattern) {
  if (!absl::IsInvalidArgument(error) || !absl::StrContains(error.message(), "folder") ||
      IsWebAddress(pattern)) {
    return error;
  }
  // If the pattern is a glob that matches the class folders, only the part for the files in these
  // folders is missing.
  const absl::string_view missing =
      BaseName(pattern).find_first_of("*?[") == std::string::npos ? "/*/*.jpg" : "/*.jpg";
  return absl::Status(
      error.code(),
      absl::StrCat(error.message(), "; if each class has its own folder of images, use ",
                   ForeignText(absl::StripSuffix(ShownName(pattern), "/")), missing));
}

// Compares the base names first, because the folders of shards may differ from machine to machine.
bool IsBefore(absl::string_view a, absl::string_view b) {
  return std::tuple(BaseName(a), a) < std::tuple(BaseName(b), b);
}

// Sorts `files` unless they are in order, as files of one bucket are.
template <typename File, typename Before>
void Sort(std::vector<File>& files, Before is_before) {
  if (!std::is_sorted(files.begin(), files.end(), is_before)) {
    std::sort(files.begin(), files.end(), is_before);
  }
}

// Appends the files of `store` that `pattern` matches to the caller's list. Returns their number.
using AddNamed = absl::FunctionRef<absl::StatusOr<size_t>(
    const Store& store, const std::string& pattern, Store::NameFilter wanted)>;

absl::Status ForEachPattern(absl::Span<const std::string> patterns, AddNamed add) {
  if (patterns.empty()) return absl::InvalidArgumentError("no pattern of shards is given");
  for (const std::string& pattern : patterns) {
    // A store on the network may take long for each pattern.
    if (InterruptRequested()) return InterruptedError();
    SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(pattern));
    size_t seen = 0;
    const absl::StatusOr<size_t> named = add(*store, pattern, [&seen](absl::string_view name) {
      ++seen;
      return !LiesBesideShards(name);
    });
    if (!named.ok()) return WithGlobOfImages(named.status(), pattern);
    if (*named > 0) continue;
    return absl::NotFoundError(absl::StrCat(
        "pattern \"", ForeignText(ShownName(pattern)), "\" matches ",
        seen == 0 ? "an empty folder"
                  : "only files that lie beside shards (index files, labels.txt, manifests)",
        "; want shards"));
  }
  return absl::OkStatus();
}

}  // namespace

bool PatternTakes(const std::string& pattern, const std::string& path) {
  if (LiesBesideShards(path)) return false;
  const absl::StatusOr<const Store*> store = StoreOf(pattern);
  const absl::StatusOr<const Store*> other = StoreOf(path);
  return store.ok() && other.ok() && *store == *other && (*store)->Takes(pattern, path);
}

absl::StatusOr<std::vector<std::string>> ListShards(absl::Span<const std::string> patterns) {
  std::vector<std::string> shards;
  SYSTOLE_RETURN_IF_ERROR(ForEachPattern(
      patterns,
      [&shards](const Store& store, const std::string& pattern,
                Store::NameFilter wanted) -> absl::StatusOr<size_t> {
        SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> named, store.List(pattern, wanted));
        std::move(named.begin(), named.end(), std::back_inserter(shards));
        return named.size();
      }));
  Sort(shards, IsBefore);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  return shards;
}

const StoredState* ShardList::StateOf(absl::string_view name) const {
  const auto found = std::lower_bound(
      shards.begin(), shards.end(), name,
      [](const ListedFile& file, absl::string_view other) { return IsBefore(file.name, other); });
  if (found == shards.end() || found->name != name || found->state.identity.empty()) return nullptr;
  return &found->state;
}

absl::StatusOr<ShardList> ListShardStates(absl::Span<const std::string> patterns) {
  ShardList list;
  SYSTOLE_RETURN_IF_ERROR(ForEachPattern(
      patterns,
      [&list](const Store& store, const std::string& pattern,
              Store::NameFilter wanted) -> absl::StatusOr<size_t> {
        SYSTOLE_ASSIGN_OR_RETURN(PatternList named, store.ListStates(pattern, wanted));
        std::move(named.files.begin(), named.files.end(), std::back_inserter(list.shards));
        if (named.folder.has_value()) list.folders.push_back(*std::move(named.folder));
        return named.files.size();
      }));
  Sort(list.shards,
       [](const ListedFile& a, const ListedFile& b) { return IsBefore(a.name, b.name); });
  const auto same_shard = [](const ListedFile& a, const ListedFile& b) { return a.name == b.name; };
  list.shards.erase(std::unique(list.shards.begin(), list.shards.end(), same_shard),
                    list.shards.end());
  std::sort(list.folders.begin(), list.folders.end(),
            [](const FolderList& a, const FolderList& b) { return a.folder < b.folder; });
  const auto same_folder = [](const FolderList& a, const FolderList& b) {
    return a.folder == b.folder;
  };
  list.folders.erase(std::unique(list.folders.begin(), list.folders.end(), same_folder),
                     list.folders.end());
  return list;
}

}  // namespace systole
