// A MemorySource that fails where the test says, and that counts its reads. After MoveAway() it is
// a source that is not local.
//
// Not thread-safe, unlike real sources: reads change the counts without a lock.
#ifndef SYSTOLE_TESTS_CORE_STORAGE_ERROR_SOURCE_H_
#define SYSTOLE_TESTS_CORE_STORAGE_ERROR_SOURCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/byte_source.h"
#include "core/storage/memory_source.h"

namespace systole {

class ErrorSource final : public ByteSource {
 public:
  explicit ErrorSource(std::string bytes, std::string name = "error-source")
      : memory_(std::move(bytes), std::move(name)) {}

  // Every read that touches byte `offset` fails with `status`.
  void FailAt(uint64_t offset, absl::Status status) {
    fail_offset_ = offset;
    fail_status_ = std::move(status);
  }
  // Every read fails with `status`.
  void FailAll(absl::Status status) { fail_all_status_ = std::move(status); }
  // Makes Size() fail.
  void FailSize(absl::Status status) { size_status_ = std::move(status); }
  // Makes Size() return `bytes`, which may be more than the source has.
  void ClaimSize(uint64_t bytes) { claimed_size_ = bytes; }
  // Reads get no bytes at or after `offset`, but Size() stays the same. A file that is cut after it
  // was opened behaves like this.
  void CutAt(uint64_t offset) { cut_offset_ = offset; }
  // From now on is_local() is false.
  void MoveAway() { is_local_ = false; }
  // Makes CheckUnchanged() return `status`.
  void SetChanged(absl::Status status) { changed_status_ = std::move(status); }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    ++num_reads_;
    bytes_read_ += out.size();
    longest_read_ = std::max<uint64_t>(longest_read_, out.size());
    if (!fail_all_status_.ok()) return fail_all_status_;
    if (!fail_status_.ok() && offset <= fail_offset_ && fail_offset_ - offset < out.size()) {
      return fail_status_;
    }
    if (offset >= cut_offset_) return 0;
    return memory_.ReadAt(offset, out.subspan(0, cut_offset_ - offset));
  }
  absl::StatusOr<uint64_t> Size() const override {
    if (!size_status_.ok()) return size_status_;
    if (claimed_size_ > 0) return claimed_size_;
    return memory_.Size();
  }
  bool is_local() const override { return is_local_; }
  absl::Status CheckUnchanged() const override {
    ++num_checks_;
    return changed_status_;
  }
  absl::string_view name() const override { return memory_.name(); }

  int64_t num_reads() const { return num_reads_; }
  uint64_t bytes_read() const { return bytes_read_; }
  // The number of bytes that the longest read asked for.
  uint64_t longest_read() const { return longest_read_; }
  // Calls of CheckUnchanged().
  int64_t num_checks() const { return num_checks_; }
  void ResetCounts() {
    num_reads_ = num_checks_ = 0;
    bytes_read_ = longest_read_ = 0;
  }

 private:
  MemorySource memory_;
  uint64_t fail_offset_ = 0;
  absl::Status fail_status_;
  absl::Status fail_all_status_;
  uint64_t claimed_size_ = 0;
  absl::Status size_status_;
  absl::Status changed_status_;
  uint64_t cut_offset_ = std::numeric_limits<uint64_t>::max();
  bool is_local_ = true;
  mutable int64_t num_reads_ = 0;
  mutable uint64_t bytes_read_ = 0;
  mutable uint64_t longest_read_ = 0;
  mutable int64_t num_checks_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_STORAGE_ERROR_SOURCE_H_
