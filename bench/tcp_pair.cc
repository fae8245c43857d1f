#include "bench/tcp_pair.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/status/check.h"

namespace systole::bench {

int ConnectTo(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const int connected = socket(AF_INET, SOCK_STREAM, 0);
  SYSTOLE_CHECK(connect(connected, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  return connected;
}

std::pair<int, int> TcpPair() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  SYSTOLE_CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  SYSTOLE_CHECK(listen(listener, 1) == 0);
  SYSTOLE_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const int sender = ConnectTo(ntohs(address.sin_port));
  const int receiver = accept(listener, nullptr, nullptr);
  SYSTOLE_CHECK(receiver >= 0);
  close(listener);
  return {sender, receiver};
}

}  // namespace systole::bench
