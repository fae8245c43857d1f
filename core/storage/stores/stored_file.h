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

// `error` comes from opening the file `name`, which may lie beside a shard. Returns whether the
// error means that there is no such file. A bucket answers 403 (forbidden) for a missing object,
// too, if its caller may not list the bucket. So for an object on a server (IsOnServer),
// PermissionDenied may mean the same as NotFound.
bool IsAbsent(const absl::Status& error, absl::string_view name);

absl::Status RemoveStored(const std::string& name);

// Removes the unfinished files of these names that CreateStored() made in processes that were
// killed.
void RemoveLeftovers(absl::Span<const std::string> names);

// Reads a whole file. ResourceExhausted, before anything is read, if the file has more than
// `max_bytes`.
absl::StatusOr<std::string> GetStored(const std::string& name, uint64_t max_bytes);
// Writes a whole file, and replaces an earlier one. The file exists as a whole or not at all.
absl::Status PutStored(const std::string& name, absl::string_view bytes);

// OK if a file that belongs to a shard, such as its index, may be written as `name`. On this
// machine such a file may always be written. In a bucket it may be written only if `write_index` is
// true, because a bucket often belongs to somebody else, costs money, and has other readers.
// Otherwise FailedPrecondition. The message says what to do.
absl::Status CheckMayKeep(const std::string& name, bool write_index);
// PutStored(), if CheckMayKeep() returns OK.
absl::Status KeepStored(const std::string& name, absl::string_view bytes, bool write_index);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORES_STORED_FILE_H_
