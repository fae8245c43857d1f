// Answers of a server to a client that may not have every permission.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_PERMITTED_ANSWER_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_PERMITTED_ANSWER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace systole {

// Turns PermissionDenied and Unauthenticated into an empty answer. Use this function only for an
// additional answer, which a command can do without: a client that may get the main answer may lack
// the permission for the additional one.
template <typename Response>
absl::StatusOr<Response> PermittedAnswer(absl::StatusOr<Response> answer) {
  if (absl::IsPermissionDenied(answer.status()) || absl::IsUnauthenticated(answer.status())) {
    return Response();
  }
  return answer;
}

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_PERMITTED_ANSWER_H_
