// The subcommands of `systole`, in the order of --help. A new subcommand needs a file
// NAME_command.cc, which defines Make..Command(), and a line in SYSTOLE_COMMANDS.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include <memory>

#include "client/cli/console/command_line.h"

namespace systole {

#define SYSTOLE_COMMANDS(COMMAND) \
  COMMAND(MakeFlowers)            \
  COMMAND(Pack)                   \
  COMMAND(Index)                  \
  COMMAND(Inspect)                \
  COMMAND(Verify)                 \
  COMMAND(Datasets)               \
  COMMAND(Status)                 \
  COMMAND(Token)                  \
  COMMAND(Feed)                   \
  COMMAND(Look)                   \
  COMMAND(Ops)                    \
  COMMAND(Train)                  \
  COMMAND(Pace)                   \
  COMMAND(Replay)                 \
  COMMAND(Load)                   \
  COMMAND(Gemm)                   \
  COMMAND(Compile)

#define SYSTOLE_DECLARE_COMMAND(NAME) std::unique_ptr<Command> Make##NAME##Command();
SYSTOLE_COMMANDS(SYSTOLE_DECLARE_COMMAND)
#undef SYSTOLE_DECLARE_COMMAND

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_COMMANDS_H_
