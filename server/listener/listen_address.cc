#include "server/listener/listen_address.h"

#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"
#include "core/text/loopback_host.h"

namespace systole {

absl::StatusOr<HostAndPort> HostAndPortOf(absl::string_view flag, absl::string_view text,
                                          absl::string_view wanted) {
  const size_t colon = text.rfind(':');
  const absl::string_view port = colon == absl::string_view::npos ? "" : text.substr(colon + 1);
  int number = 0;
  const bool good_port = port.find_first_not_of("0123456789") == absl::string_view::npos &&
                         absl::SimpleAtoi(port, &number) && number < 65536;
  if (colon == absl::string_view::npos || colon == 0 || !good_port) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " '", ForeignName(text), "': want ", wanted));
  }
  return HostAndPort{.host = std::string(text.substr(0, colon)), .port = number};
}

absl::Status CheckReach(absl::string_view text, absl::string_view host, bool tls, bool insecure) {
  if (tls || insecure || IsLoopbackHost(host)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' can be reached from other machines, and nothing is encrypted or authenticated; listen "
      "on 127.0.0.1, give --tls-certificate and --tls-key, or give --insecure if the network "
      "is trusted"));
}

absl::StatusOr<ListeningSockets> ListenAt(absl::string_view flag, absl::string_view text,
                                          const HostAndPort& where) {
  absl::StatusOr<ListeningSockets> sockets = ListenOnTcp(where.host, where.port);
  if (sockets.ok()) return sockets;
  return absl::UnavailableError(absl::StrCat(
      "cannot listen on '", ForeignName(text),
      "': another process listens there, or the address is not this machine's; choose another ",
      flag, " (", sockets.status().message(), ")"));
}

}  // namespace systole
