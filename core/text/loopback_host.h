// Whether bytes that are sent to a host stay on this machine.
//
// Thread-safe: a pure function.
#ifndef SYSTOLE_CORE_TEXT_LOOPBACK_HOST_H_
#define SYSTOLE_CORE_TEXT_LOOPBACK_HOST_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace systole {

// `host` is the HOST of "HOST:PORT". Names are not looked up: the only name that counts is
// "localhost".
inline bool IsLoopbackHost(absl::string_view host) {
  if (host == "localhost" || host == "[::1]") return true;
  // The name of another host may also begin with "127.", such as 127.example.com.
  return absl::StartsWith(host, "127.") &&
         host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_LOOPBACK_HOST_H_
