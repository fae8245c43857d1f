// Writes an object of a bucket. A small object is sent when it is closed. A larger object is sent
// in parts while it is written, several parts at a time.
#ifndef SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_SINK_H_
#define SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_SINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"
#include "core/storage/bucket/bucket_dialect.h"
#include "core/storage/bucket/bucket_name.h"
#include "core/storage/bucket/object_upload.h"
#include "core/storage/byte_sink.h"
#include "core/storage/web/web_source.h"

namespace systole {

// An object has at most kMaxUploadParts parts, and its size is not known before its end. So the
// size of a part doubles after each `parts_of_a_size` parts. With the defaults an object has at
// most 484 GiB. The sink keeps in memory the parts that are being sent, and the part that is being
// filled. With the defaults these parts take at most 40 MiB for an object of up to 15 GiB, and at
// most 256 MiB for any object.
struct BucketSinkOptions {
  // The size of the first parts, and the largest object that is sent in one request. Servers
  // require at least 5 MiB.
  uint64_t first_part_bytes = uint64_t{8} << 20;
  int parts_of_a_size = 2000;
  int max_parts = kMaxUploadParts;
  // The most parts, and the most bytes of parts, that are sent at a time. A part that is sent alone
  // may have more bytes. Larger numbers are faster over long distances, and take more memory and
  // connections.
  int parts_in_flight = 4;
  uint64_t bytes_in_flight = uint64_t{64} << 20;
};

// Thread-compatible. Borrows connection and dialect. Errors are those of ObjectUpload, and:
//   ResourceExhausted  the object would have too many parts, or no thread can be started.
//   Cancelled          InterruptRequested(), or the process ends.
// After an error, or if it is destroyed before Close(), the sink makes the server forget the parts
// (ObjectUpload::Abort()). The new object is not visible before Close().
class BucketSink final : public ByteSink {
 public:
  BucketSink(WebConnection& connection, const BucketDialect& dialect, const BucketName& name,
             const BucketSinkOptions& options);
  ~BucketSink() override;

  absl::Status Append(absl::string_view bytes) override;
  // Sends all remaining bytes, and waits until the object exists. Even after an error the object
  // may exist. If it exists, it is complete.
  absl::Status Close() override;
  absl::string_view name() const override { return name_; }

 private:
  // The size of the part that is being filled.
  uint64_t PartBytes() const;
  // Waits until another part may be sent, and then hands `buffer_` to a thread as a part.
  absl::Status SendPart();
  bool HasRoomFor(uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // If `until_none`, sleeps until no part is being sent. Otherwise sleeps until a part of `bytes`
  // may be sent. If a part fails, returns its error at once.
  absl::Status WaitForParts(bool until_none, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void PutPart(int number, const HttpBody& bytes) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Finish() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the upload. Every later call returns `status`.
  absl::Status Fail(absl::Status status);
  void GiveUp();

  WebConnection& connection_;
  const std::string name_;
  const BucketSinkOptions options_;
  ObjectUpload upload_;
  absl::Status status_;
  std::string buffer_;
  int parts_ = 0;  // How many parts were handed to threads so far.
  InterruptFlag unwanted_;

  Mutex mu_;
  std::vector<std::string> etags_ ABSL_GUARDED_BY(mu_);  // etags_[i] is the ETag of part i + 1.
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t bytes_in_flight_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status failed_ ABSL_GUARDED_BY(mu_);  // The first error of a part.
  std::unique_ptr<WorkerPool> threads_;       // Last: it ends before the members that it uses.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BUCKET_BUCKET_SINK_H_
