#include "core/dataset/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/list_shards.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"
#include "core/textproto/message_text.h"
#include "google/protobuf/text_format.h"
#include "systole/v1/manifest.pb.h"

namespace systole {
namespace {

constexpr absl::string_view kTfdsInfoName = "dataset_info.json";
// The template of names for a TFDS split without a template of its own.
constexpr absl::string_view kTfdsTemplate = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";

// The most shards that a file may list. A list of kMaxListed shards takes some 100 MB of memory.
constexpr size_t kMaxListed = 1'000'000;
// The most bytes of a dataset_info.json. Most of these files have less than 100 KB: some 20 bytes
// for each shard. The limit is needed because Protobuf's JSON parser may take 75 times as much
// memory as a text of nested lists.
constexpr uint64_t kMaxTfdsInfoBytes = uint64_t{4} << 20;
// The most bytes of a file's name on Linux.
constexpr size_t kMaxNameBytes = 255;

absl::Status Wrong(absl::string_view source, absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", field, " ", what));
}

absl::Status CheckListed(const ListedShard& shard, absl::string_view source,
                         absl::string_view field) {
  if (shard.name.empty() || shard.name.size() > kMaxNameBytes ||
      absl::StrContains(shard.name, '/')) {
    return Wrong(source, field,
                 absl::StrCat("names the shard \"", ForeignName(shard.name),
                              "\", want the name of a file in this folder"));
  }
  if (shard.records >= 0) return absl::OkStatus();
  return Wrong(source, field, absl::StrCat("says ", shard.records, " records, want 0 or more"));
}

absl::Status CheckNumberListed(size_t number, absl::string_view source) {
  if (number <= kMaxListed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(source, " lists more than ", kMaxListed, " shards"));
}

absl::StatusOr<std::vector<ListedShard>> ParseShardManifest(absl::string_view text,
                                                            absl::string_view source) {
  v1::ShardManifest manifest;
  SYSTOLE_RETURN_IF_ERROR(ParseTextproto(text, source, manifest));
  SYSTOLE_RETURN_IF_ERROR(CheckNumberListed(static_cast<size_t>(manifest.shards_size()), source));
  std::vector<ListedShard> listed;
  for (const v1::ManifestShard& shard : manifest.shards()) {
    const std::string field = absl::StrCat("shards[", listed.size(), "]");
    listed.push_back({shard.name(), shard.records(), shard.bytes()});
    SYSTOLE_RETURN_IF_ERROR(CheckListed(listed.back(), source, field));
    if (shard.bytes() < 0) {
      return Wrong(source, field, absl::StrCat("says ", shard.bytes(), " bytes, want 0 or more"));
    }
  }
  return listed;
}

// `number` as TFDS writes it in names: with leading zeros, so that it has as many digits as `of`,
// and at least five.
std::string TfdsNumber(int number, int of) {
  const int digits = std::max<int>(5, static_cast<int>(absl::StrCat(of).size()));
  return absl::StrFormat("%0*d", digits, number);
}

absl::StatusOr<std::vector<ListedShard>> ParseTfdsInfo(absl::string_view text,
                                                       absl::string_view source) {
  v1::TfdsDatasetInfo info;
  SYSTOLE_RETURN_IF_ERROR(ParseForeignJson(text, source, info));
  const std::string format = info.file_format().empty() ? "tfrecord" : info.file_format();
  std::vector<ListedShard> listed;
  for (int s = 0; s < info.splits_size(); ++s) {
    const v1::TfdsSplit& split = info.splits(s);
    const std::string name_template =
        split.filepath_template().empty() ? std::string(kTfdsTemplate) : split.filepath_template();
    // A part that is longer than any file name is refused before names are made from it.
    for (const std::string* part : {&name_template, &info.name(), &split.name(), &format}) {
      if (part->size() > kMaxNameBytes) {
        return Wrong(source, absl::StrCat("splits[", s, "]"),
                     absl::StrCat("makes names of more than ", kMaxNameBytes, " bytes"));
      }
    }
    const int count = split.shard_lengths_size();
    SYSTOLE_RETURN_IF_ERROR(CheckNumberListed(listed.size() + count, source));
    for (int i = 0; i < count; ++i) {
      const std::string index = TfdsNumber(i, count);
      const std::string number = TfdsNumber(count, count);
      std::string name = absl::StrReplaceAll(
          name_template, {{"{DATASET}", info.name()},
                          {"{SPLIT}", split.name()},
                          {"{FILEFORMAT}", format},
                          {"{SHARD_INDEX}", index},
                          {"{NUM_SHARDS}", number},
                          {"{SHARD_X_OF_Y}", absl::StrCat(index, "-of-", number)}});
      listed.push_back({std::move(name), split.shard_lengths(i)});
      SYSTOLE_RETURN_IF_ERROR(CheckListed(listed.back(), source,
                                          absl::StrCat("splits[", s, "].shardLengths[", i, "]")));
    }
  }
  return listed;
}

bool IsManifest(absl::string_view name) {
  return absl::EndsWith(name, kManifestSuffix) || name == kTfdsInfoName;
}

// The part of `path` before the base name, with its '/'. Empty if the path is only a base name.
std::string FolderPart(const std::string& path) {
  return path.substr(0, static_cast<size_t>(BaseName(path).data() - path.data()));
}

absl::StatusOr<std::vector<std::string>> ManifestNamesIn(const std::string& folder_part,
                                                         absl::Span<const FolderList> listed) {
  const auto known = std::find_if(listed.begin(), listed.end(), [&](const FolderList& each) {
    return each.folder == folder_part;
  });
  if (known != listed.end()) {
    std::vector<std::string> manifests;
    for (const ListedFile& file : known->files) {
      if (IsManifest(BaseName(file.name))) manifests.push_back(file.name);
    }
    return manifests;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(folder_part));
  absl::StatusOr<std::vector<std::string>> paths = store->ListFolder(folder_part);
  // In a folder that may not be listed, shards can still be opened by their names. So this is no
  // error.
  if (absl::IsPermissionDenied(paths.status())) return std::vector<std::string>();
  if (!paths.ok()) {
    // Clients see this error if the folder is on this machine, so it must not name the folder.
    return absl::Status(
        paths.status().code(),
        absl::StrCat("cannot list the folder of the shards, to look for manifests there",
                     IsOnServer(folder_part) ? ": " : "",
                     IsOnServer(folder_part) ? paths.status().message() : ""));
  }
  std::erase_if(*paths, [](const std::string& path) { return !IsManifest(BaseName(path)); });
  return paths;
}

absl::StatusOr<std::vector<std::string>> ManifestsIn(const std::string& folder_part,
                                                     absl::Span<const FolderList> listed) {
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<std::string> paths, ManifestNamesIn(folder_part, listed));
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The error `status` of the manifest `path`, and what to do. If the manifest is a file of this
// machine, clients see the result, so it does not name the folder.
absl::Status WithHelp(const absl::Status& status, const std::string& path) {
  return absl::Status(
      status.code(),
      absl::StrCat(
          IsOnServer(path) ? std::string(status.message())
                           : absl::StrReplaceAll(status.message(), {{path, BaseName(path)}}),
          "; a manifest is read whenever the shards beside it are opened: correct or remove it"));
}

std::string SaysText(const ListedShard& listed) {
  return absl::StrCat(listed.records, " records",
                      listed.bytes < 0 ? "" : absl::StrCat(" in ", listed.bytes, " bytes"));
}

}  // namespace

absl::StatusOr<std::vector<ListedShard>> ParseManifest(absl::string_view text,
                                                       absl::string_view source) {
  return source == kTfdsInfoName ? ParseTfdsInfo(text, source) : ParseShardManifest(text, source);
}

absl::StatusOr<std::vector<ShardDifference>> CompareWithManifests(
    absl::Span<const std::string> patterns, absl::Span<const ShardCount> opened,
    absl::Span<const FolderList> listed) {
  std::map<std::string, const ShardCount*> by_path;
  std::set<std::string> folders;
  for (const ShardCount& shard : opened) {
    by_path.emplace(shard.path, &shard);
    folders.insert(FolderPart(shard.path));
  }
  std::vector<ShardDifference> differences;
  for (const std::string& folder : folders) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> manifests, ManifestsIn(folder, listed));
    for (const std::string& manifest : manifests) {
      const std::string source(BaseName(manifest));
      const absl::StatusOr<std::string> file = GetStored(
          manifest, source == kTfdsInfoName ? kMaxTfdsInfoBytes : uint64_t{kMaxTextBytes});
      if (!file.ok()) return WithHelp(file.status(), manifest);
      const absl::StatusOr<std::vector<ListedShard>> listed =
          ParseManifest(*file, ForeignName(source));
      if (!listed.ok()) return WithHelp(listed.status(), manifest);
      for (const ListedShard& shard : *listed) {
        if (differences.size() >= kMaxShardDifferences) return differences;
        const std::string path = folder + shard.name;
        const std::string says = absl::StrCat("\"", ForeignName(source), "\" says ");
        if (const auto found = by_path.find(path); found != by_path.end()) {
          const ShardCount& is = *found->second;
          const bool same_bytes = shard.bytes < 0 || static_cast<uint64_t>(shard.bytes) == is.bytes;
          if (is.records == shard.records && same_bytes) continue;
          differences.push_back(
              {.shard = shard.name,
               .manifest = source,
               .text = absl::StrCat("shard \"", ForeignName(shard.name), "\" has ", is.records,
                                    " records in ", is.bytes, " bytes, ", says, SaysText(shard))});
        } else if (shard.records > 0 &&
                   std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
                     return PatternTakes(pattern, path);
                   })) {
          const absl::Status state = StatStored(path).status();
          // If the shard is on a server, the error may be temporary, and does not show whether the
          // shard is there.
          if (!state.ok() && !absl::IsNotFound(state) && IsOnServer(path)) return state;
          if (!absl::IsNotFound(state)) continue;
          differences.push_back({.shard = shard.name,
                                 .manifest = source,
                                 .missing = true,
                                 .text = absl::StrCat("shard \"", ForeignName(shard.name),
                                                      "\" is missing, ", says, SaysText(shard))});
        }
      }
    }
  }
  return differences;
}

absl::Status CheckNoDifferences(absl::Span<const ShardDifference> differences) {
  if (differences.empty()) return absl::OkStatus();
  const ShardDifference& first = differences.front();
  const size_t others = differences.size() - 1;
  return absl::Status(
      first.missing ? absl::StatusCode::kNotFound : absl::StatusCode::kDataLoss,
      absl::StrCat(first.text,
                   others == 0   ? ""
                   : others == 1 ? ", and 1 more shard differs"
                                 : absl::StrCat(", and ", others, " more shards differ"),
                   "; copy or pack the shard again; if the shards are right, correct or remove \"",
                   ForeignName(first.manifest), "\""));
}

std::string ManifestText(absl::Span<const ShardCount> shards) {
  v1::ShardManifest manifest;
  for (const ShardCount& shard : shards) {
    v1::ManifestShard& entry = *manifest.add_shards();
    entry.set_name(std::string(BaseName(shard.path)));
    entry.set_records(shard.records);
    entry.set_bytes(static_cast<int64_t>(shard.bytes));
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(manifest, &text);
  return text;
}

}  // namespace systole
