#include "core/operations/operation_table.h"

#include "absl/strings/str_join.h"
#include "core/operations/operation_rows.h"

namespace systole {

absl::Span<const OperationRow> Operations() {
#define SYSTOLE_CALL_ROW(NAME) NAME(),
  static const std::vector<OperationRow>* const rows =
      new std::vector<OperationRow>{SYSTOLE_OPERATIONS(SYSTOLE_CALL_ROW)};
#undef SYSTOLE_CALL_ROW
  return *rows;
}

const OperationRow* FindOperation(v1::Transform::KindCase kind) {
  for (const OperationRow& row : Operations()) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

std::string OperationName(v1::Transform::KindCase kind) {
  return v1::Transform::descriptor()->FindFieldByNumber(static_cast<int>(kind))->name();
}

std::string OperationNames() {
  return absl::StrJoin(Operations(), ", ", [](std::string* out, const OperationRow& row) {
    out->append(OperationName(row.kind));
  });
}

}  // namespace systole
