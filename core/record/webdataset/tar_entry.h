// The entries of a tar archive, one at a time: ustar, pax and GNU's long names. Reads them as
// Python's tarfile does, because webdataset uses tarfile.
//   archive := entry*  block of zeros  zeros to the end
//   entry   := [headers of type x, X, g, L or K, each with content]  header  content
//   content := bytes, padded with zeros to whole blocks of 512
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_WEBDATASET_TAR_ENTRY_H_
#define SYSTOLE_CORE_RECORD_WEBDATASET_TAR_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole {

inline constexpr uint64_t kTarBlockBytes = 512;

// The longest name of a file, in bytes. Linux allows paths of at most this length. The limit stops
// a name from filling the memory.
inline constexpr size_t kMaxTarNameBytes = 4096;
// The largest content of a pax header or a long name, in bytes. Those that tarfile writes have some
// hundred bytes.
inline constexpr uint64_t kMaxTarMetaBytes = 64 << 10;
// The most pax headers and long names before one file. Without this limit, an archive of only such
// headers would be read as one huge entry.
inline constexpr int kMaxTarMetaHeaders = 16;

struct TarEntry {
  enum class Kind {
    kFile,     // A regular file.
    kOther,    // A folder, a link, a device. Its content is not read.
    kEnd,      // A block of zeros.
    kDamaged,  // No entry can be read here: see `cause`.
  };
  Kind kind = Kind::kOther;
  std::string name;      // A file's whole path.
  uint64_t content = 0;  // Where a file's content begins.
  uint64_t size = 0;     // Size of a file's content, without padding.
  // Where the next entry begins. If `is_lost`, the place is unknown, and `end` is the first
  // possible place.
  uint64_t end = 0;
  bool is_lost = false;
  std::string cause;  // Why the entry is damaged, without file and offset.
};

// Returns the `bytes` bytes at `offset`. `bytes` is at most kMaxTarMetaBytes. The result is valid
// until the next call.
using TarLook = absl::FunctionRef<absl::StatusOr<const char*>(uint64_t offset, uint64_t bytes)>;

// The entry at `offset` of an archive of `archive_bytes`. Damage is reported in the entry. An error
// of `look` is returned as it is. REQUIRES: offset < archive_bytes.
absl::StatusOr<TarEntry> ReadTarEntry(uint64_t offset, uint64_t archive_bytes, TarLook look);

// Whether the kTarBlockBytes bytes at `block` are a header: they contain "ustar", and the checksum
// matches.
bool IsTarHeader(const char* block);

// Whether a file that begins with `begin` is a tar archive.
bool BeginsAsTar(absl::string_view begin);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_WEBDATASET_TAR_ENTRY_H_
