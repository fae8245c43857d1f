// Whether what is sent to a host stays on this machine.
//
// Thread-safe: a pure function.
#ifndef SYSTOLE_CORE_TEXT_LOOPBACK_HOST_H_
#define SYSTOLE_CORE_TEXT_LOOPBACK_HOST_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace systole {

// `host` is that of "HOST:PORT". Names are not looked up: the only one that counts is "localhost".
inline bool IsLoopbackHost(absl::string_view host) {
  if (host == "localhost" || host == "[::1]") return true;
  // A name may begin with "127." too, and lead anywhere.
  return absl::StartsWith(host, "127.") &&
         host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_LOOPBACK_HOST_H_
