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
  absl::string_view scheme;  // The part before "://". Empty: for names without a scheme.
  absl::string_view called;  // The word for names of this kind in messages.
  const Store& (*store)();
};

// All stores.
absl::Span<const StoreRow> StoreTable();

// The part of `name` before "://", as a view into `name`. Empty if no such part can be a scheme.
absl::string_view SchemeOf(absl::string_view name);

// The store of a name or a pattern. Only the form of the name decides which store this is.
//   InvalidArgument  a URL of a scheme that no store has. The message lists the stores.
absl::StatusOr<const Store*> StoreOf(absl::string_view name);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORES_STORE_TABLE_H_
