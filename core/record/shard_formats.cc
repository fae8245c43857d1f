#include "core/record/shard_formats.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/record/images/image_folder.h"
#include "core/record/source/deferred_shard.h"
#include "core/record/source/index_path.h"
#include "core/record/source/record_index.h"
#include "core/record/source/shard_file.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/record/webdataset/webdataset_shard.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

using Formats = absl::Span<const ShardFormat* const>;

// Endings of compressed shards. In a name, they come after the ending of the format: "x.tar.gz".
constexpr absl::string_view kCompressedEndings[] = {".gz", ".gzip", ".zlib", ".zst", ".zstd"};

// The format whose shards can begin with `begin`; null if there is none.
const ShardFormat* FormatThatBegins(Formats formats, absl::string_view begin) {
  const auto found = std::find_if(formats.begin(), formats.end(), [begin](const ShardFormat* each) {
    return each->begins != nullptr && each->begins(begin);
  });
  return found == formats.end() ? nullptr : *found;
}

absl::StatusOr<const ShardFormat*> FormatOf(Formats formats, const ShardFile& file) {
  std::array<char, kFormatMagicBytes> bytes;
  absl::string_view begin;
  if (file.begin.has_value()) {
    begin = *file.begin;
  } else {
    SYSTOLE_ASSIGN_OR_RETURN(const size_t read, file.bytes->ReadAt(0, absl::MakeSpan(bytes)));
    begin = absl::string_view(bytes.data(), read);
  }
  if (const ShardFormat* const format = FormatThatBegins(formats, begin); format != nullptr) {
    return format;
  }
  absl::string_view name = BaseName(file.bytes->name());  // Without a web address's query.
  for (const absl::string_view ending : kCompressedEndings) {
    if (absl::ConsumeSuffix(&name, ending)) break;
  }
  const auto found = std::find_if(formats.begin(), formats.end(), [name](const ShardFormat* each) {
    return !each->ending.empty() && absl::EndsWith(name, each->ending);
  });
  return found == formats.end() ? formats.front() : *found;
}

// The format in which a file with this name is one record; null if there is none.
const ShardFormat* FormatOfRecord(Formats formats, absl::string_view name) {
  const auto found = std::find_if(formats.begin(), formats.end(), [name](const ShardFormat* each) {
    return each->is_record != nullptr && each->is_record(name);
  });
  return found == formats.end() ? nullptr : *found;
}

}  // namespace

Formats ShardFormats() {
  static const ShardFormat* const formats[] = {
      &TfRecordFormat(),
      &WebDatasetFormat(),
      &ImageFormat(),
  };
  return formats;
}

absl::StatusOr<std::vector<NamedShard>> GroupShards(std::vector<std::string> names,
                                                    Formats formats) {
  std::vector<NamedShard> shards;
  if (names.empty()) return shards;
  if (formats.empty()) formats = ShardFormats();
  const ShardFormat* const format = FormatOfRecord(formats, names[0]);
  for (const std::string& name : names) {
    const ShardFormat* const other = FormatOfRecord(formats, name);
    if (other == format) continue;
    const std::string& record = format != nullptr ? names[0] : name;
    const std::string& shard = format != nullptr ? name : names[0];
    return absl::InvalidArgumentError(absl::StrCat(
        "of the files in one dataset, \"", ForeignName(BaseName(record)),
        "\" is a record by itself (", (format != nullptr ? format : other)->name, ") and \"",
        ForeignName(BaseName(shard)),
        "\" is not; name them by their ending, as in \"*/*.jpg\", and give shards as a dataset "
        "of their own"));
  }
  if (format == nullptr) {
    shards.reserve(names.size());
    for (std::string& name : names) shards.push_back({.path = std::move(name)});
    return shards;
  }
  SYSTOLE_ASSIGN_OR_RETURN(FileGroup group, format->group(std::move(names)));
  std::string path(absl::StripSuffix(group.folder, "/"));
  shards.push_back({.path = std::move(path), .format = format, .group = std::move(group)});
  return shards;
}

std::string IndexPathOf(const NamedShard& shard, absl::string_view index_dir) {
  return IndexPath(
      shard.is_group() ? absl::StrCat(shard.group.folder, shard.format->index_base) : shard.path,
      index_dir);
}

absl::StatusOr<std::unique_ptr<RecordSource>> OpenShard(const std::string& path,
                                                        const ShardOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(std::vector<NamedShard> shards, GroupShards({path}, options.formats));
  return OpenShard(std::move(shards.front()), options);
}

absl::StatusOr<std::unique_ptr<RecordSource>> OpenShard(NamedShard shard,
                                                        const ShardOptions& given) {
  SYSTOLE_RETURN_IF_ERROR(CheckShardOptions(given));
  ShardOptions options = given;
  options.write_index = given.write_index || MustKeepIndex(given.index_use);
  if (shard.is_group()) return shard.format->open_group(std::move(shard.group), options);
  const std::string& path = shard.path;
  const Formats formats = options.formats.empty() ? ShardFormats() : options.formats;
  const bool rebuild = options.index_use == IndexUse::kRebuild;
  const std::string restart_path =
      options.index_use == IndexUse::kIgnore ? "" : RestartPath(IndexPath(path, options.index_dir));
  const StoredState* const listed =
      options.listed_state == nullptr ? nullptr : options.listed_state(path);
  SYSTOLE_ASSIGN_OR_RETURN(ShardFile file, OpenShardFile(path,
                                                         {.compression = options.compression,
                                                          .chunks = options.chunks,
                                                          .restart_path = restart_path,
                                                          .rebuild = rebuild,
                                                          .write_index = options.write_index,
                                                          .state = listed},
                                                         [formats](absl::string_view begin) {
                                                           return FormatThatBegins(
                                                                      formats, begin) != nullptr;
                                                         }));
  if (MustKeepIndex(options.index_use) && file.compression != Compression::kNone &&
      !StatStored(restart_path).ok()) {
    return absl::PermissionDeniedError(absl::StrCat(ShownName(path), ": ", file.note));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const ShardFormat* const format, FormatOf(formats, file));
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<RecordSource> opened,
                           format->open(std::move(file), options));
  if (!restart_path.empty() && !opened->CheckHoldsRecords().ok() &&
      CheckMayKeep(restart_path, options.write_index).ok()) {
    // The file seems not to be a shard. Its restart points were written only for this attempt to
    // read the file, so they must not stay beside the file.
    RemoveStored(restart_path).IgnoreError();  // There may be no such file.
  }
  return opened;
}

absl::StatusOr<std::unique_ptr<RecordSource>> DeferShard(const std::string& path,
                                                         const ShardFacts& facts,
                                                         const ShardOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckShardOptions(options));
  const Formats formats = options.formats.empty() ? ShardFormats() : options.formats;
  const auto found =
      std::find_if(formats.begin(), formats.end(),
                   [&facts](const ShardFormat* each) { return each->name == facts.format; });
  const bool as_is =
      options.compression == Compression::kDetect || options.compression == Compression::kNone;
  if (!as_is || options.index_use != IndexUse::kUse || found == formats.end() ||
      (*found)->examples == nullptr) {
    return nullptr;
  }
  const ShardFormat& format = **found;
  const StoredState state = {.size_bytes = facts.bytes, .identity = facts.identity};
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> file, OpenStoredInState(path, state));
  if (!file->may_wait()) return nullptr;
  return std::make_unique<DeferredShard>(
      std::move(file), facts, format.examples(),
      [&format, state, options](std::unique_ptr<ByteSource> bytes) {
        ShardFile opened = {.bytes = std::move(bytes), .state = state, .note = {}};
        if (!opened.bytes->is_local()) opened.max_records = kMaxFarRecords;
        return format.open(std::move(opened), options);
      });
}

}  // namespace systole
