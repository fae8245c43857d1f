// Reads any bytes as a file of servers. An accepted file is a bounded list of addresses. Each
// address is listed once and is valid by itself.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/servers/server_list.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(server_file, const uint8_t* data, size_t size) {
  using namespace systole;
  static const int file = ::memfd_create("servers", MFD_CLOEXEC);
  SYSTOLE_CHECK(file >= 0 && ::ftruncate(file, 0) == 0);
  SYSTOLE_CHECK(::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
  const absl::StatusOr<ServerList> list =
      ServerList::Create({absl::StrCat("file:/proc/self/fd/", file)});
  SYSTOLE_CHECK(list.ok());
  const absl::StatusOr<std::vector<std::string>> servers = list->Read();
  if (!servers.ok()) return 0;
  SYSTOLE_CHECK(!servers->empty() && servers->size() <= kMaxServers);
  SYSTOLE_CHECK(std::set<std::string>(servers->begin(), servers->end()).size() == servers->size());
  for (const std::string& server : *servers) SYSTOLE_CHECK(ServerList::Create({server}).ok());
  return 0;
}
