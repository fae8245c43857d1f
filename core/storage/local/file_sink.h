// Writes a file. The file appears only when it is complete. The bytes go to a temporary file in the
// same folder, and Close() renames this file into place. A sink that is destroyed before Close()
// leaves nothing.
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
  // Bytes gathered before a write. A larger number makes fewer calls, but each open file takes this
  // many bytes of memory.
  size_t buffer_bytes = 256 << 10;
  // Whether Close() waits until the bytes are on the device. If not, a power cut may leave an empty
  // file under the final name. So turn `sync` off only for files that can be made again, such as an
  // index.
  bool sync = true;
  // Whether whole pages bypass the page cache. Only pages whose address in memory and place in the
  // file are multiples of kFilePageBytes can bypass it. Bypassing saves most of the processor's
  // time, and the page cache's memory. But the writer waits for the device, and so does the next
  // reader. If the file system cannot bypass the cache, ordinary writes are used.
  bool direct = false;
};

class FileSink final : public ByteSink {
 public:
  // Creates the temporary file `.<base name>.<process>.<number>.tmp` beside `path`. The leading dot
  // keeps this file out of globs.
  //   NotFound, PermissionDenied  no file can be created in the folder. The message has the path.
  //   InvalidArgument             `path` exists and is not a regular file: a folder, or a device or
  //                               link that the rename would replace.
  static absl::StatusOr<std::unique_ptr<FileSink>> Create(const std::string& path,
                                                          const FileSinkOptions& options = {});
  ~FileSink() override;

  absl::Status Append(absl::string_view bytes) override;
  absl::Status Close() override;
  absl::string_view name() const override { return path_; }

 private:
  FileSink(std::string path, std::string temporary_path, int fd, const FileSinkOptions& options);
  absl::Status WriteOut(absl::string_view bytes);
  // Writes buffer_ and then the longest beginning of `bytes` that may bypass the page cache, and
  // removes this beginning from `bytes`. Writes nothing if less than a page may bypass the page
  // cache.
  absl::Status WriteDirect(absl::string_view& bytes);
  // False: the file system cannot bypass the page cache.
  bool SetDirect(bool direct);
  // Keeps `status`, which every later call returns.
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

// Whether FileSink::Create(path) would succeed now. Leaves no file behind, and removes temporary
// files of `path` that killed processes have left (RemoveStaleTemporaries). This is for programs
// that work for a long time before they write.
absl::Status CheckWritable(const std::string& path);

// Removes from `folder` temporary files that FileSinks left there because their process was killed
// or lost power. Removes only files for which `is_ours` returns true. `is_ours` gets the base name
// of the file that was being written. Files of a running process stay, even if the process runs on
// another machine or in another container. A file that cannot be removed stays. It does no harm.
void RemoveStaleTemporaries(const std::string& folder,
                            absl::FunctionRef<bool(absl::string_view base_name)> is_ours);

// Writes `bytes` to `path` by way of a FileSink.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes,
                                 const FileSinkOptions& options = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_LOCAL_FILE_SINK_H_
