// Macros that pass an absl::Status on to the caller.
//
// Thread-safe: they keep no state.
#ifndef SYSTOLE_CORE_STATUS_STATUS_MACROS_H_
#define SYSTOLE_CORE_STATUS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expr` (an absl::Status) from the enclosing function unless it is OK.
#define SYSTOLE_RETURN_IF_ERROR(expr)                                 \
  do {                                                                \
    if (absl::Status systole_status = (expr); !systole_status.ok()) { \
      return systole_status;                                          \
    }                                                                 \
  } while (false)

// Evaluates `expr` (an absl::StatusOr<T>); moves its value into `lhs` (a declaration or an lvalue)
// or returns its status from the enclosing function.
#define SYSTOLE_ASSIGN_OR_RETURN(lhs, expr) \
  SYSTOLE_ASSIGN_OR_RETURN_IMPL_(SYSTOLE_STATUS_CONCAT_(systole_or_, __LINE__), lhs, expr)

#define SYSTOLE_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                                   \
  if (!tmp.ok()) {                                     \
    return std::move(tmp).status();                    \
  }                                                    \
  lhs = *std::move(tmp)
#define SYSTOLE_STATUS_CONCAT_(a, b) SYSTOLE_STATUS_CONCAT_IMPL_(a, b)
#define SYSTOLE_STATUS_CONCAT_IMPL_(a, b) a##b

#endif  // SYSTOLE_CORE_STATUS_STATUS_MACROS_H_
