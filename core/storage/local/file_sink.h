// Writes a file. The file appears only when it is complete. The bytes go to a temporary file in the
// same folder. Close() renames the temporary file to the final name. A sink that is destroyed
// before Close() leaves no file.
//
// Thread-compatible. Owns its file descriptor and the temporary file.
#ifndef SYSTOLE_CORE_STORAGE_LOCAL_FILE_SINK_H_
#define SYSTOLE_CORE_STORAGE_LOCAL_FILE_SINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/storage/byte_sink.h"

namespace systole {

struct FileSinkOptions {
  // Bytes gathered before a write. With a larger number there are fewer system calls, but each open
  // file takes this many bytes of memory.
  size_t buffer_bytes = 256 << 10;
  // Whether Close() waits until the bytes are on the device. If not, a power cut may leave an empty
  // file under the final name. So turn `sync` off only for files that can be made again, such as an
  // index.
  bool sync = true;
  // Whether whole pages bypass the page cache (O_DIRECT), if their address in memory and their
  // place in the file are multiples of kFilePageBytes. This saves most of the processor's time for
  // a write, and memory of the page cache. But the writer and the next reader must wait for the
  // device. If the file system cannot bypass the page cache, ordinary writes are used.
  bool direct = false;
};

class FileSink final : public ByteSink {
 public:
  // Creates the temporary file `.<base name>.<process>.<number>.tmp` beside `path`. The leading dot
  // keeps this file out of globs.
  //   NotFound, PermissionDenied  no file can be created in the folder. The message has the path.
  //   InvalidArgument             `path` exists and is not a regular file, but a folder, device,
  //                               pipe or link.
  static absl::StatusOr<std::unique_ptr<FileSink>> Create(const std::string& path,
                                                          const FileSinkOptions& options = {});
  ~FileSink() override;

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Close() override;
  absl::string_view name() const override { return path_; }

 private:
  FileSink(std::string path, std::string temporary_path, int fd, const FileSinkOptions& options);
  absl::Status WriteOut(absl::string_view bytes);
  // Fills buffer_ from `bytes` up to the end of a page and writes it. Then writes the whole pages
  // of `bytes`, which bypass the page cache. Removes all that was written from `bytes`. Does
  // nothing if no page of `bytes` can bypass the page cache.
  absl::Status WriteDirect(absl::string_view& bytes);
  // False: the file system cannot bypass the page cache.
  bool SetDirect(bool direct);
  // Keeps and returns `status`. Every later call returns it, too.
  absl::Status Fail(absl::Status status);

  const std::string path_;
  const std::string temporary_path_;
  const FileSinkOptions options_;
  int fd_;  // -1 once closed.
  std::string buffer_;
  uint64_t written_ = 0;    // Bytes of the file, without those in buffer_.
  bool is_direct_ = false;  // Whether write() bypasses the page cache now.
  absl::Status status_;
};

// OK if FileSink::Create(path) would succeed now. For programs that work for a long time before
// they write. Leaves no file behind. Removes the temporary files of `path` that killed processes
// have left (RemoveStaleTemporaries).
absl::Status CheckWritable(const std::string& path);

// Removes from `folder` the temporary files of FileSinks whose process was killed, or whose machine
// lost power. `is_ours` gets the base name of the file that was being written. If `is_ours` returns
// false, the temporary file stays. Temporary files of a running process stay, even if the process
// runs on another machine or in another container. A file that cannot be removed stays, and does no
// harm.
void RemoveStaleTemporaries(const std::string& folder,
                            absl::FunctionRef<bool(absl::string_view base_name)> is_ours);

// Writes `bytes` to `path` by way of a FileSink.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes,
                                 const FileSinkOptions& options = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_LOCAL_FILE_SINK_H_
