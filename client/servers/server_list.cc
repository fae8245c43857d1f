#include "client/servers/server_list.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/servers/server_link.h"
#include "core/status/status_macros.h"
#include "core/storage/local/small_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

constexpr absl::string_view kDns = "dns:///";
constexpr absl::string_view kFile = "file:";

// A file is read more often than a name is looked up, because many clients share a name service.
constexpr absl::Duration kFilePeriod = absl::Seconds(1);
constexpr absl::Duration kDnsPeriod = absl::Seconds(5);

absl::Status LookUp(absl::string_view name_and_port, std::vector<std::string>& addresses) {
  const size_t colon = name_and_port.rfind(':');
  const std::string port(name_and_port.substr(colon + 1));
  absl::string_view name = name_and_port.substr(0, colon);
  // A text in brackets is an IPv6 address. It is valid even if this host has no IPv6 address.
  const bool is_address = absl::ConsumePrefix(&name, "[") && absl::ConsumeSuffix(&name, "]");
  const addrinfo hints = {
      .ai_flags = AI_NUMERICSERV | (is_address ? AI_NUMERICHOST : AI_ADDRCONFIG),
      .ai_socktype = SOCK_STREAM};
  addrinfo* list = nullptr;
  const int error = getaddrinfo(std::string(name).c_str(), port.c_str(), &hints, &list);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("no address of ", kDns, name_and_port, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    addresses.push_back(one->ai_family == AF_INET6 ? absl::StrCat("[", text, "]:", port)
                                                   : absl::StrCat(text, ":", port));
    if (addresses.size() > kMaxServers) break;  // Read() returns the error.
  }
  return absl::OkStatus();
}

absl::Status ReadList(const std::string& path, std::vector<std::string>& addresses) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMaxServerFileBytes));
  const size_t before = addresses.size();
  int line_number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    const absl::string_view address = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (address.empty()) continue;
    if (const absl::Status valid = CheckServerAddress(address); !valid.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ", line ", line_number, ": ", ForeignText(valid.message())));
    }
    addresses.emplace_back(address);
    if (addresses.size() > kMaxServers) break;  // Read() returns the error.
  }
  if (addresses.size() > before) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " lists no server: write HOST:PORT or unix:PATH, one a line"));
}

}  // namespace

absl::StatusOr<ServerList> ServerList::Create(std::vector<std::string> servers) {
  if (servers.empty() || servers.size() > kMaxServers) {
    return absl::InvalidArgumentError(
        absl::StrCat("servers has ", servers.size(), " addresses, want 1 to ", kMaxServers));
  }
  ServerList list(std::move(servers));
  for (const std::string& server : list.servers_) {
    absl::string_view rest = server;
    if (absl::ConsumePrefix(&rest, kFile)) {
      if (rest.empty()) {
        return absl::InvalidArgumentError("server address 'file:': want file:PATH");
      }
      list.period_ = std::min(list.period_, kFilePeriod);
    } else if (absl::ConsumePrefix(&rest, kDns)) {
      SYSTOLE_RETURN_IF_ERROR(CheckServerAddress(rest));
      list.period_ = std::min(list.period_, kDnsPeriod);
    } else {
      SYSTOLE_RETURN_IF_ERROR(CheckServerAddress(server));
    }
  }
  return list;
}

absl::StatusOr<std::vector<std::string>> ServerList::Read() const {
  std::vector<std::string> addresses;
  for (const std::string& server : servers_) {
    absl::string_view rest = server;
    if (absl::ConsumePrefix(&rest, kFile)) {
      SYSTOLE_RETURN_IF_ERROR(ReadList(std::string(rest), addresses));
    } else if (absl::ConsumePrefix(&rest, kDns)) {
      SYSTOLE_RETURN_IF_ERROR(LookUp(rest, addresses));
    } else {
      addresses.push_back(server);
    }
    if (addresses.size() > kMaxServers) {
      return absl::ResourceExhaustedError(absl::StrCat(server, " brings the servers to more than ",
                                                       kMaxServers,
                                                       ", the most in a list: list fewer of them"));
    }
  }
  // Keeps each address once. Equal addresses need not be neighbours, because the order of a name's
  // addresses changes from answer to answer.
  std::set<std::string> seen;
  std::vector<std::string> unique;
  for (std::string& address : addresses) {
    if (seen.insert(address).second) unique.push_back(std::move(address));
  }
  return unique;
}

}  // namespace systole
