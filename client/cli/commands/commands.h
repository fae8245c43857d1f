// The subcommands of `systole`: one factory each. A new one takes its own NAME_command.cc, a line
// here, and a line in main.cc.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_COMMANDS_COMMANDS_H_
#define SYSTOLE_CLIENT_CLI_COMMANDS_COMMANDS_H_

#include <memory>

#include "client/cli/console/command_line.h"

namespace systole {

std::unique_ptr<Command> MakeMakeFlowersCommand();
std::unique_ptr<Command> MakePackCommand();
std::unique_ptr<Command> MakeIndexCommand();
std::unique_ptr<Command> MakeInspectCommand();
std::unique_ptr<Command> MakeVerifyCommand();
std::unique_ptr<Command> MakeDatasetsCommand();
std::unique_ptr<Command> MakeStatusCommand();
std::unique_ptr<Command> MakeTokenCommand();
std::unique_ptr<Command> MakeFeedCommand();
std::unique_ptr<Command> MakeLookCommand();
std::unique_ptr<Command> MakeOpsCommand();
std::unique_ptr<Command> MakeTrainCommand();
std::unique_ptr<Command> MakePaceCommand();
std::unique_ptr<Command> MakeReplayCommand();
std::unique_ptr<Command> MakeLoadCommand();
std::unique_ptr<Command> MakeGemmCommand();
std::unique_ptr<Command> MakeCompileCommand();

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_COMMANDS_COMMANDS_H_
