#include "core/dataset/known_shards.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// The most bytes that the index of the files in `list` may have. There is a bound because a server
// may claim any size.
uint64_t MostBytes(const FolderList& list) {
  uint64_t bytes = kMaxFolderLineBytes;
  for (const ListedFile& file : list.files) bytes += kMaxFolderLineBytes + file.name.size();
  return bytes;
}

bool NameIsBefore(const FolderIndexLine& line, absl::string_view name) { return line.name < name; }

absl::StatusOr<std::vector<FolderIndexLine>> ReadLines(const FolderList& list,
                                                       const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string text, GetStored(path, MostBytes(list)));
  return ParseFolderIndex(text);
}

}  // namespace

std::optional<KnownShard> KnownShardOf(const RecordSource& shard) {
  std::optional<ShardFacts> facts = shard.facts();
  if (!facts.has_value()) return std::nullopt;
  return KnownShard{.path = std::string(shard.path()), .facts = *std::move(facts)};
}

KnownShards KnownShards::Read(const ShardList& list, const std::string& index_dir) {
  KnownShards known;
  for (const FolderList& each : list.folders) {
    Folder folder = {.list = &each, .path = FolderIndexPath(each.folder, index_dir)};
    const bool lies_there = index_dir.empty();
    const bool is_absent = lies_there && std::none_of(each.files.begin(), each.files.end(),
                                                      [&](const ListedFile& file) {
                                                        return file.name == folder.path;
                                                      });
    if (!is_absent) {
      absl::StatusOr<std::vector<FolderIndexLine>> lines = ReadLines(each, folder.path);
      if (lines.ok()) {
        folder.lines = *std::move(lines);
      } else if (!IsAbsent(lines.status(), folder.path)) {
        absl::StrAppend(&known.note_, known.note_.empty() ? "" : "; ", "index \"",
                        ForeignText(ShownName(folder.path)),
                        "\" not used: ", lines.status().message());
      }
    }
    known.folders_.push_back(std::move(folder));
  }
  return known;
}

const KnownShards::Folder* KnownShards::FolderOf(const std::string& path) const {
  const absl::string_view folder(path.data(), path.size() - BaseName(path).size());
  const auto found = std::lower_bound(
      folders_.begin(), folders_.end(), folder,
      [](const Folder& each, absl::string_view name) { return each.list->folder < name; });
  return found == folders_.end() || found->list->folder != folder ? nullptr : &*found;
}

const ShardFacts* KnownShards::Find(const ListedFile& file) const {
  const Folder* const folder = FolderOf(file.name);
  if (folder == nullptr || file.state.identity.empty()) return nullptr;
  const absl::string_view name = BaseName(file.name);
  const auto line =
      std::lower_bound(folder->lines.begin(), folder->lines.end(), name, NameIsBefore);
  if (line == folder->lines.end() || line->name != name ||
      line->facts.identity != file.state.identity || line->facts.bytes != file.state.size_bytes) {
    return nullptr;
  }
  return &line->facts;
}

absl::Status KnownShards::Keep(absl::Span<const KnownShard> shards, bool write_index) const {
  std::map<const Folder*, std::vector<FolderIndexLine>> by_folder;
  for (const KnownShard& shard : shards) {
    const Folder* const folder = FolderOf(shard.path);
    FolderIndexLine line = {.name = std::string(BaseName(shard.path)), .facts = shard.facts};
    if (folder != nullptr && FitsFolderIndex(line)) by_folder[folder].push_back(std::move(line));
  }
  absl::Status first_error;
  for (auto& [folder, lines] : by_folder) {
    if (lines.size() >= kLeastKnownShards) {
      first_error.Update(KeepIn(*folder, std::move(lines), write_index));
    }
  }
  return first_error;
}

absl::Status KnownShards::KeepIn(const Folder& folder, std::vector<FolderIndexLine> lines,
                                 bool write_index) const {
  const auto is_before = [](const FolderIndexLine& a, const FolderIndexLine& b) {
    return a.name < b.name;
  };
  std::sort(lines.begin(), lines.end(), is_before);
  std::set<absl::string_view> there;
  for (const ListedFile& file : folder.list->files) there.insert(BaseName(file.name));
  const size_t known = lines.size();
  for (const FolderIndexLine& line : folder.lines) {
    const bool is_known = std::binary_search(lines.begin(), lines.begin() + known, line, is_before);
    if (!is_known && there.contains(line.name)) lines.push_back(line);
  }
  std::inplace_merge(lines.begin(), lines.begin() + known, lines.end(), is_before);
  if (lines == folder.lines || lines.size() > kMaxFolderShards) return absl::OkStatus();
  return KeepStored(folder.path, FolderIndexText(lines), write_index);
}

}  // namespace systole
