// The options of all commands that talk to servers: how to reach them safely, and who asks.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_SECURITY_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_SECURITY_FLAGS_H_

#include "client/cli/console/command_line.h"
#include "client/servers/server_security.h"

namespace systole {

class SecurityFlags {
 public:
  // --tls, --tls-ca, --tls-certificate, --tls-key, --tls-server-name, --token-file.
  void Declare(OptionList& options);
  const ServerSecurity& security() const { return security_; }

 private:
  ServerSecurity security_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_SECURITY_FLAGS_H_
