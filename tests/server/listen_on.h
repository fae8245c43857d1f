// A server's config with an address to listen on. All other fields have their defaults.
#ifndef SYSTOLE_TESTS_SERVER_LISTEN_ON_H_
#define SYSTOLE_TESTS_SERVER_LISTEN_ON_H_

#include <string>

#include "systole/v1/config.pb.h"

namespace systole {

inline v1::ServerConfig ListenOn(const std::string& address) {
  v1::ServerConfig config;
  config.set_listen(address);
  return config;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_SERVER_LISTEN_ON_H_
