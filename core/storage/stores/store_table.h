// Which store a name belongs to, by its scheme.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_STORES_STORE_TABLE_H_
#define SYSTOLE_CORE_STORAGE_STORES_STORE_TABLE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/store.h"

namespace systole {

struct StoreRow {
  absl::string_view scheme;  // What stands before "://"; empty = names without it.
  absl::string_view called;  // For messages: what its names are.
  const Store& (*store)();
};

// Every store there is.
absl::Span<const StoreRow> StoreTable();

// What stands before "://" in `name`, a view into it; empty if nothing that can be a scheme does.
absl::string_view SchemeOf(absl::string_view name);

// The store of a name or a pattern. The form of the name alone decides it.
//   InvalidArgument  a URL of a scheme that no store has; says which ones there are.
absl::StatusOr<const Store*> StoreOf(absl::string_view name);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORES_STORE_TABLE_H_
