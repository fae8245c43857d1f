// Tells whether a request failed because no connection to a server could be made.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_HTTP_NO_SERVER_H_
#define SYSTOLE_CORE_HTTP_NO_SERVER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

// An Unavailable error for which IsNoServer() is true.
absl::Status NoServerError(absl::string_view message);

// Whether an error of HttpClient::Fetch() says that no connection was made: the connection was
// refused, the server is unreachable, no connection was made in time, or the server's name cannot
// be resolved. A server that does not run, or that is just starting, causes such an error. False if
// a server was reached. False for the error with which HttpRetrier gives up, because it covers
// several attempts. (If a wait took all the time that was left, HttpRetrier returns the last error
// as it is.)
bool IsNoServer(const absl::Status& error);

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_NO_SERVER_H_
