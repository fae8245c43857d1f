// Bytes that can be read at any position: a file, memory, an object in a store.
//
// Thread-safe: every implementation must allow concurrent calls of all its const methods.
#ifndef SYSTOLE_CORE_STORAGE_BYTE_SOURCE_H_
#define SYSTOLE_CORE_STORAGE_BYTE_SOURCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/mapping.h"
#include "core/storage/stored_pieces.h"

namespace systole {

// ReadAt() copies fastest if the address in memory and the offset in the source are equal modulo
// this number of bytes (a cache line): 23 GB/s from the page cache instead of 20.
inline constexpr uint64_t kCopyAlignment = 64;
// Bytes may bypass the page cache if both their place in the file and their address in memory are
// multiples of this number.
inline constexpr uint64_t kFilePageBytes = 4096;

// The sizes of reads for code that walks through a source that is not local. Each read of such a
// source may be a request. The first read asks for kFirstFarReadBytes. Each later read asks for
// twice as many bytes as the read before it, up to kMostFarReadBytes.
inline constexpr uint64_t kFirstFarReadBytes = 256 << 10;
inline constexpr uint64_t kMostFarReadBytes = 8 << 20;

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Fills `out` with the bytes at `offset` and returns their number. This is out.size(), except at
  // the end of the source (0 at and beyond the end). A source that may_wait() reports bytes as soon
  // as they come (NoteRead), so that a slow read does not look like a read that hangs.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const = 0;

  // Bytes in the source when it was opened.
  virtual absl::StatusOr<uint64_t> Size() const = 0;

  // Whether small reads are cheap and Size() is certain: the bytes are in memory, in a cache, or in
  // a file, even one on a network file system. If false, a read may be a request to a server, and
  // Size() is only what the server claims. In this case, code that needs most of the bytes must
  // read many bytes at a time, and no code may allocate memory for all bytes before they have come.
  virtual bool is_local() const { return false; }

  // Whether a read may wait for another machine, or hang. True for an object on a server, and for a
  // file on a network file system. Feeds read such sources ahead (core/fetch).
  virtual bool may_wait() const { return !is_local(); }

  // The pieces of a stored file, such as a compressed file, from which the bytes are made. Feeds
  // read these pieces ahead. Null if the bytes are not made from a stored file, or if a read of the
  // stored file does not wait. Valid as long as the source.
  virtual const StoredPieces* pieces() const { return nullptr; }

  // The identity of the state that was opened (StoredState::identity in store.h). Empty: states
  // cannot be told apart.
  virtual std::string identity() const { return ""; }

  // FailedPrecondition if name() no longer refers to the file or object that was opened.
  virtual absl::Status CheckUnchanged() const = 0;

  // A mapping for reading the bytes in place with MappedRead; null if they cannot be mapped. Valid
  // as long as the source.
  virtual Mapping* mapping() const { return nullptr; }

  // The name by which the source was opened: a path or a URL. Valid as long as the source.
  virtual absl::string_view name() const = 0;

  // A number that no other source of this process has or had. Some code remembers facts about a
  // source longer than the source lives. Such code must use this number as the key, because another
  // source may later get the same address in memory.
  uint64_t number() const { return number_; }

 protected:
  ByteSource() = default;

 private:
  static inline std::atomic<uint64_t> made_ = 0;

  const uint64_t number_ = made_.fetch_add(1, std::memory_order_relaxed);
};

// The form in which messages, logs and outputs show `name`, a path or the name of an object in any
// store. If the name may hold secrets (MayHoldSecrets), as each address of the web may, this form
// leaves them out (ShownAddress). Otherwise it is `name` itself. It is not escaped.
std::string ShownName(absl::string_view name);

// The part of `path` after the last '/'. For a name that may hold secrets this is
// AddressBaseName(), which leaves out the secrets. A view into `path`.
absl::string_view BaseName(absl::string_view path);

// The part of `path` that clients may see: its base name. "/" if there is none, or if `path` is a
// whole server or bucket, because clients must not learn the names of servers and buckets.
absl::string_view NameForClients(absl::string_view path);

// Whether `name` names an object on a server: an address of the web, or a name in a bucket. If
// opening such an object fails, the error names its server. PermissionDenied may mean that the
// object does not exist.
bool IsOnServer(absl::string_view name);

// Reads exactly out.size() bytes at `offset`. DataLoss if the source has fewer bytes. The message
// names the source and the offset.
absl::Status ReadExactlyAt(const ByteSource& source, uint64_t offset, absl::Span<char> out);

// All bytes of the source. ResourceExhausted, before anything is read, if there are more than
// `max_bytes`; DataLoss if the source has fewer bytes than its Size(). Errors name the source;
// ResourceExhausted names its folder, too. A source that is not local is read in growing pieces,
// because its Size() may be false. So ReadWhole() takes at most 1 MiB of memory, plus three times
// the bytes that have come.
absl::StatusOr<std::string> ReadWhole(const ByteSource& source, uint64_t max_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_BYTE_SOURCE_H_
