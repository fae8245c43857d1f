// The options of all commands that talk to servers: TLS, certificates, a token.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_SECURITY_FLAGS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_SECURITY_FLAGS_H_

#include "client/cli/console/command_line.h"
#include "client/lanes/feed_client_options.h"
#include "client/lanes/feed_option_table.h"
#include "client/servers/server_security.h"

namespace systole {

class SecurityFlags {
 public:
  // Declares a flag for each row of FeedOptionTable() that is about security.
  void Declare(OptionList& options);
  const ServerSecurity& security() const { return feed_.security; }

 private:
  FeedClientOptions feed_;  // Only its `security` is used.
};

// Declares the flag of one row. The flag sets the row's field in `feed`.
void DeclareFeedOption(const FeedOption& option, FeedClientOptions& feed, OptionList& options);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_SECURITY_FLAGS_H_
