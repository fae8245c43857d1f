// The functions of Store, for a name in any store.
//
// Thread-safe: no state. Errors are those of StoreOf() and of the store.
#ifndef SYSTOLE_CORE_STORAGE_STORES_STORED_FILE_H_
#define SYSTOLE_CORE_STORAGE_STORES_STORED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"

namespace systole {

absl::StatusOr<std::unique_ptr<ByteSource>> OpenStored(const std::string& name);
// Store::OpenInState().
absl::StatusOr<std::unique_ptr<ByteSource>> OpenStoredInState(const std::string& name,
                                                              const StoredState& state);
absl::StatusOr<StoredState> StatStored(const std::string& name);
absl::StatusOr<std::unique_ptr<ByteSink>> CreateStored(const std::string& name);

// Returns whether `error`, the error of opening the file `name`, means that there is no such file.
// For an object on a server (IsOnServer), PermissionDenied counts like NotFound: if the caller may
// not list a bucket, the bucket answers 403 (forbidden) for an object that does not exist.
bool IsAbsent(const absl::Status& error, absl::string_view name);

absl::Status RemoveStored(const std::string& name);

// Removes unfinished files of these names that CreateStored() left behind when processes were
// killed.
void RemoveLeftovers(absl::Span<const std::string> names);

// Reads a whole file. ResourceExhausted, before anything is read, if the file has more than
// `max_bytes`.
absl::StatusOr<std::string> GetStored(const std::string& name, uint64_t max_bytes);
// Writes a whole file, and replaces an earlier file of this name. No reader sees a part of the new
// file.
absl::Status PutStored(const std::string& name, absl::string_view bytes);

// OK if a file that belongs to a shard, such as its index, may be written as `name`.
// FailedPrecondition, with a message that says what to do, if `name` is in a bucket and
// `write_index` is false: a bucket often belongs to somebody else, costs money, and has other
// readers.
absl::Status CheckMayKeep(const std::string& name, bool write_index);
// PutStored(), if CheckMayKeep() returns OK.
absl::Status KeepStored(const std::string& name, absl::string_view bytes, bool write_index);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORES_STORED_FILE_H_
