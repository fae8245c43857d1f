// The formats that shards may have, and the only way to open a shard.
//
//   names from ListShards() --> GroupShards --> NamedShard, one for each shard --> OpenShard
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SHARD_FORMATS_H_
#define SYSTOLE_CORE_RECORD_SHARD_FORMATS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_facts.h"
#include "core/record/source/shard_format.h"

namespace systole {

// The table of all formats. A shard has the first format of the table that fits the shard's first
// bytes. If no format fits, the ending of the shard's name decides. If no format has this ending,
// the shard has the first format of the table. The name alone decides whether a file is a record
// (ShardFormat::is_record).
absl::Span<const ShardFormat* const> ShardFormats();

// The files of one shard: one file, or all files of a format whose records are files.
struct NamedShard {
  std::string path;                     // The file, or a group's folder, without '/' at the end.
  const ShardFormat* format = nullptr;  // The format of a group. Null: `path` is the only file.
  FileGroup group = {};

  bool is_group() const { return format != nullptr; }
};

// The shards that consist of the files `names`, in the order of `names`. Opens no file. `formats`
// is like ShardOptions::formats.
//   InvalidArgument  some files are records and others are shards, or all files are records but
//                    cannot form one group. The message has only the parts of names that clients
//                    may see.
absl::StatusOr<std::vector<NamedShard>> GroupShards(
    std::vector<std::string> names, absl::Span<const ShardFormat* const> formats = {});

// The path of a shard's index.
std::string IndexPathOf(const NamedShard& shard, absl::string_view index_dir);

// Opens the shard. Undoes its compression, finds its format, and reads its index or builds it. The
// source keeps the names of a group's files, so pass a group by std::move if you can.
//   InvalidArgument   an option is out of range.
//   PermissionDenied  MustKeepIndex(), and an index file cannot be written.
// Also the errors of OpenShardFile(), of ShardFormat::open and of ShardFormat::open_group.
absl::StatusOr<std::unique_ptr<RecordSource>> OpenShard(NamedShard shard,
                                                        const ShardOptions& options = {});

// Opens the shard whose only file is `path`.
absl::StatusOr<std::unique_ptr<RecordSource>> OpenShard(const std::string& path,
                                                        const ShardOptions& options = {});

// The shard `path`, whose `facts` are known. Sends no request: the first read opens the shard, and
// returns the errors of opening it. DeferShard() itself returns the errors of Store::OpenInState().
// It returns null if the shard must be opened now:
//   - options.index_use is not kUse, or options.compression is neither kDetect nor kNone, or
//   - no format has the name facts.format, or this format has no ShardFormat::examples, or
//   - a read of the file never waits for a server.
absl::StatusOr<std::unique_ptr<RecordSource>> DeferShard(const std::string& path,
                                                         const ShardFacts& facts,
                                                         const ShardOptions& options = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SHARD_FORMATS_H_
