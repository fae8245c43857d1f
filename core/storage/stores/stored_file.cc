#include "core/storage/stores/stored_file.h"

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/store_table.h"
#include "core/text/foreign_text.h"
#include "core/text/web_address.h"

namespace systole {

absl::StatusOr<std::unique_ptr<ByteSource>> OpenStored(const std::string& name) {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(name));
  return store->Open(name);
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenStoredInState(const std::string& name,
                                                              const StoredState& state) {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(name));
  return store->OpenInState(name, state);
}

absl::StatusOr<StoredState> StatStored(const std::string& name) {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(name));
  return store->Stat(name);
}

absl::StatusOr<std::unique_ptr<ByteSink>> CreateStored(const std::string& name) {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(name));
  return store->Create(name);
}

bool IsAbsent(const absl::Status& error, absl::string_view name) {
  return absl::IsNotFound(error) || (absl::IsPermissionDenied(error) && IsOnServer(name));
}

absl::Status RemoveStored(const std::string& name) {
  SYSTOLE_ASSIGN_OR_RETURN(const Store* const store, StoreOf(name));
  return store->Remove(name);
}

void RemoveLeftovers(absl::Span<const std::string> names) {
  std::map<const Store*, std::vector<std::string>> by_store;
  for (const std::string& name : names) {
    if (const absl::StatusOr<const Store*> store = StoreOf(name); store.ok()) {
      by_store[*store].push_back(name);
    }
  }
  for (const auto& [store, its_names] : by_store) store->RemoveLeftovers(its_names);
}

absl::StatusOr<std::string> GetStored(const std::string& name, uint64_t max_bytes) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, OpenStored(name));
  return ReadWhole(*source, max_bytes);
}

absl::Status PutStored(const std::string& name, absl::string_view bytes) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSink> sink, CreateStored(name));
  SYSTOLE_RETURN_IF_ERROR(sink->Append(bytes));
  return sink->Close();
}

absl::Status CheckMayKeep(const std::string& name, bool write_index) {
  if (write_index || !IsBucketName(name)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "\"", ForeignText(ShownName(name)),
      "\" is in a bucket, and --write-index (in Python write_index) is not set; `systole "
      "index` of the same shards writes it once, or set --index-dir to a folder"));
}

absl::Status KeepStored(const std::string& name, absl::string_view bytes, bool write_index) {
  SYSTOLE_RETURN_IF_ERROR(CheckMayKeep(name, write_index));
  return PutStored(name, bytes);
}

}  // namespace systole
