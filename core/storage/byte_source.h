// Bytes that can be read at any position: a file, memory, an object in a store.
//
// Thread-safe: every implementation must allow concurrent calls of all its const methods.
#ifndef SYSTOLE_CORE_STORAGE_BYTE_SOURCE_H_
#define SYSTOLE_CORE_STORAGE_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/mapping.h"

namespace systole {

// ReadAt() copies fastest to an address that equals the offset modulo this many bytes (a cache
// line): 23 GB/s out of the page cache instead of 20.
inline constexpr uint64_t kCopyAlignment = 64;

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `out` with the bytes at `offset` and returns how many there were: out.size(), or fewer
  // only where the source ends (0 at and beyond the end).
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const = 0;

  // Bytes in the source when it was opened.
  virtual absl::StatusOr<uint64_t> Size() const = 0;

  // The identity of the state that was opened (StoredState::identity in store.h). Empty = nothing
  // tells one state from another.
  virtual std::string identity() const { return ""; }

  // FailedPrecondition if what stands under this name now is not what was opened.
  virtual absl::Status CheckUnchanged() const = 0;

  // Where the same bytes can be read in place, by MappedRead; null if they cannot. Valid as long as
  // the source.
  virtual Mapping* mapping() const { return nullptr; }

  // What it was opened by: a path or a URL. Valid as long as the source.
  virtual absl::string_view name() const = 0;

 protected:
  ByteSource() = default;
};

// The part of `path` after the last '/': all that a client may see of a shard's path. A view into
// `path`.
absl::string_view BaseName(absl::string_view path);

// Reads exactly out.size() bytes at `offset`. DataLoss, naming source and offset, if the source
// ends before.
absl::Status ReadExactlyAt(const ByteSource& source, uint64_t offset, absl::Span<char> out);

// All bytes of the source. ResourceExhausted, before anything is read, if there are more than
// `max_bytes`. Errors name the source; ResourceExhausted names its folder, too.
absl::StatusOr<std::string> ReadWhole(const ByteSource& source, uint64_t max_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BYTE_SOURCE_H_
