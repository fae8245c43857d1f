#include "core/storage/bucket/bucket_sink.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr size_t kFirstBufferBytes = size_t{64} << 10;

}  // namespace

BucketSink::BucketSink(WebConnection& connection, const BucketDialect& dialect,
                       const BucketName& name, const BucketSinkOptions& options)
    : connection_(connection),
      name_(name.Text()),
      options_(options),
      upload_(connection, dialect, name) {}

BucketSink::~BucketSink() {
  if (status_.ok()) GiveUp();
}

uint64_t BucketSink::PartBytes() const {
  return options_.first_part_bytes << (parts_ / options_.parts_of_a_size);
}

void BucketSink::GiveUp() {
  unwanted_.Raise();
  threads_.reset();  // Waits for the threads.
  if (upload_.has_begun()) upload_.Abort();
  buffer_ = std::string();
}

absl::Status BucketSink::Fail(absl::Status status) {
  status_ = std::move(status);
  GiveUp();
  return status_;
}

absl::Status BucketSink::Append(absl::string_view bytes) {
  SYSTOLE_RETURN_IF_ERROR(status_);
  while (!bytes.empty()) {
    // A full part is sent only when more bytes come, so that the last part is never empty.
    if (buffer_.size() == PartBytes()) {
      if (absl::Status sent = SendPart(); !sent.ok()) return Fail(std::move(sent));
    }
    if (parts_ == options_.max_parts) {
      return Fail(absl::ResourceExhaustedError(absl::StrCat(
          "\"", ForeignText(name_), "\" would have more than ", options_.max_parts,
          " parts, the most that an object can have; write more and smaller objects")));
    }
    const size_t taken = std::min<uint64_t>(bytes.size(), PartBytes() - buffer_.size());
    const size_t wanted = buffer_.size() + taken;
    if (wanted > buffer_.capacity()) {
      // A string that grows by itself could take the memory of two parts.
      buffer_.reserve(std::min<uint64_t>(PartBytes(), std::max(2 * wanted, kFirstBufferBytes)));
    }
    buffer_.append(bytes.data(), taken);
    bytes.remove_prefix(taken);
  }
  return absl::OkStatus();
}

absl::Status BucketSink::SendPart() {
  if (InterruptRequested()) return InterruptedError();
  if (!upload_.has_begun()) {
    SYSTOLE_ASSIGN_OR_RETURN(threads_, WorkerPool::Create(options_.parts_in_flight));
    SYSTOLE_RETURN_IF_ERROR(upload_.Begin());
  }
  const uint64_t bytes = buffer_.size();
  SYSTOLE_RETURN_IF_ERROR(WaitForParts(/*until_none=*/false, bytes));
  const int number = ++parts_;
  {
    MutexLock lock(mu_);
    etags_.emplace_back();
    ++in_flight_;
    bytes_in_flight_ += bytes;
  }
  threads_->Submit([this, number, body = HttpBody(std::exchange(buffer_, std::string()))] {
    PutPart(number, body);
  });
  return absl::OkStatus();
}

bool BucketSink::HasRoomFor(uint64_t bytes) const {
  return in_flight_ == 0 || (in_flight_ < options_.parts_in_flight &&
                             bytes_in_flight_ + bytes <= options_.bytes_in_flight);
}

absl::Status BucketSink::WaitForParts(bool until_none, uint64_t bytes) {
  const auto waits = [&] {
    MutexLock lock(mu_);
    return failed_.ok() && (until_none ? in_flight_ > 0 : !HasRoomFor(bytes));
  };
  // This wait always ends, because the time for sending a part is bounded.
  while (waits()) {
    SYSTOLE_RETURN_IF_ERROR(connection_.SleepWhile(waits, connection_.options().timeout));
  }
  MutexLock lock(mu_);
  return failed_;
}

void BucketSink::PutPart(int number, const HttpBody& bytes) {
  const InterruptScope scope(unwanted_);
  const absl::StatusOr<std::string> etag = InterruptRequested()
                                               ? absl::StatusOr<std::string>(InterruptedError())
                                               : upload_.PutPart(number, bytes);
  {
    MutexLock lock(mu_);
    if (etag.ok()) {
      etags_[static_cast<size_t>(number - 1)] = *etag;
    } else if (failed_.ok()) {
      failed_ = etag.status();
    }
    --in_flight_;
    bytes_in_flight_ -= bytes.bytes().size();
  }
  connection_.WakeSleepers();
}

absl::Status BucketSink::Finish() {
  if (!upload_.has_begun())
    return upload_.PutWhole(HttpBody(std::exchange(buffer_, std::string())));
  SYSTOLE_RETURN_IF_ERROR(SendPart());
  SYSTOLE_RETURN_IF_ERROR(WaitForParts(/*until_none=*/true, 0));
  std::vector<std::string> etags;
  {
    MutexLock lock(mu_);
    etags.swap(etags_);
  }
  return upload_.End(etags);
}

absl::Status BucketSink::Close() {
  SYSTOLE_RETURN_IF_ERROR(status_);
  absl::Status finished = Finish();
  connection_.NoteWrite(name_);  // The object may exist even after an error.
  if (!finished.ok()) return Fail(std::move(finished));
  threads_.reset();
  status_ =
      absl::FailedPreconditionError(absl::StrCat("\"", ForeignText(name_), "\" is closed already"));
  return absl::OkStatus();
}

}  // namespace systole
