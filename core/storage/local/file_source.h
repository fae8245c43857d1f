// A regular file, opened once and read by position. FileSource remembers the state that the file
// had when it was opened. So CheckUnchanged() notices if the file is replaced, resized or rewritten
// while it is served, and bytes of another file cannot get into a feed.
//
// Thread-safe. Owns its file descriptor: one per open shard.
#ifndef SYSTOLE_CORE_STORAGE_LOCAL_FILE_SOURCE_H_
#define SYSTOLE_CORE_STORAGE_LOCAL_FILE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/byte_source.h"
#include "core/storage/local/file_mapping.h"
#include "core/storage/mapping.h"

namespace systole {

// The facts that distinguish two states of a file on this machine.
struct FileState {
  uint64_t size_bytes = 0;
  int64_t mtime_ns = 0;  // Since the Unix epoch.
  uint64_t inode = 0;
  uint64_t device = 0;

  bool operator==(const FileState&) const = default;

  // "<size> <mtime ns>". A copy with the same modification time has the identity of its original.
  // So index files that were copied together with a shard are valid for the copy, too.
  std::string Identity() const;
};

class FileSource final : public ByteSource {
 public:
  enum class Where { kAsItsFileSystemSays, kOnANetwork };
  // NotFound; PermissionDenied; ResourceExhausted if no file descriptor is left; InvalidArgument if
  // `path` is not a regular file. Each message has the path. Only tests set `where`.
  static absl::StatusOr<std::unique_ptr<FileSource>> Open(
      const std::string& path, Where where = Where::kAsItsFileSystemSays);
  ~FileSource() override;

  // Errors of an open file name the file without its folder. Clients see these errors, and must not
  // see the names of the server's folders.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override;
  absl::StatusOr<uint64_t> Size() const override { return state_.size_bytes; }
  bool is_local() const override { return true; }
  // Whether the file is in a file system on the network, or in a file system that a process serves
  // (FUSE).
  bool may_wait() const override { return may_wait_; }
  std::string identity() const override { return state_.Identity(); }
  // Compares all fields of FileState, also those that identity() leaves out. Makes one system call
  // and reads no bytes. A removed file counts as changed, because no other server could open that
  // file.
  absl::Status CheckUnchanged() const override;
  // Null if may_wait() is true: if the network failed, a thread that reads mapped memory would wait
  // for ever.
  Mapping* mapping() const override { return may_wait_ ? nullptr : &mapping_; }
  absl::string_view name() const override { return path_; }

  // The state when the file was opened.
  const FileState& state() const { return state_; }

 private:
  FileSource(std::string path, int fd, const FileState& state, bool may_wait)
      : path_(std::move(path)),
        fd_(fd),
        state_(state),
        may_wait_(may_wait),
        mapping_(fd, state.size_bytes) {}

  const std::string path_;
  const int fd_;
  const FileState state_;
  const bool may_wait_;
  mutable FileMapping mapping_;
};

// The present state of the regular file at `path`. Errors are those of FileSource::Open().
absl::StatusOr<FileState> StatFile(const std::string& path);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_LOCAL_FILE_SOURCE_H_
