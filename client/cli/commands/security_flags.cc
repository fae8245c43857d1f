#include "client/cli/commands/security_flags.h"

namespace systole {

void SecurityFlags::Declare(OptionList& options) {
  options.Flag("--tls", &security_.tls,
               "Encrypt, and check the server's certificate; never falls back to plain text");
  options.Optional("--tls-ca", "FILE", &security_.ca_file,
                   "Who vouches for servers (PEM). Default: whom this system trusts");
  options.Optional("--tls-certificate", "FILE", &security_.certificate_file,
                   "A certificate that shows the server who asks (PEM)");
  options.Optional("--tls-key", "FILE", &security_.key_file, "Its key (PEM)");
  options.Optional("--tls-server-name", "NAME", &security_.server_name,
                   "The name that the server's certificate is for. Default: the address's");
  options.Optional("--token-file", "FILE", &security_.token_file,
                   "A token that shows the server who asks, as `systole token` makes it. Default: "
                   "$SYSTOLE_TOKEN_FILE, or the token in $SYSTOLE_TOKEN");
}

}  // namespace systole
