// gMock matchers for absl::Status and absl::StatusOr, which Debian's abseil does not have.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_STATUS_MATCHERS_H_
#define SYSTOLE_TESTS_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace systole {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

// Matches an OK Status or StatusOr.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "status " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// Matches a StatusOr that is OK and whose value matches `inner`.
MATCHER_P(IsOkAndHolds, inner, "is OK and its value matches") {
  if (!arg.ok()) {
    *result_listener << "status " << arg.status().ToString();
    return false;
  }
  return testing::ExplainMatchResult(inner, *arg, result_listener);
}

// Matches a Status or StatusOr with this code whose message matches `message`.
MATCHER_P2(StatusIs, code, message, "has the wanted code and message") {
  *result_listener << "status " << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         testing::ExplainMatchResult(message, std::string(StatusOf(arg).message()),
                                     result_listener);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_STATUS_MATCHERS_H_
