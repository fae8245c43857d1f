// Runs the `systole` command inside the test.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CLIENT_CLI_COMMAND_RUN_H_
#define SYSTOLE_TESTS_CLIENT_CLI_COMMAND_RUN_H_

#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/console/command_line.h"

namespace systole {

struct CommandRun {
  int exit_code = 0;
  std::string out;
  std::string err;
};

inline CommandRun RunCommand(std::unique_ptr<Command> command, std::vector<std::string> args) {
  args.insert(args.begin(), command->name());
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::move(command));
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = RunCommandLine(args, commands, "test", {.out = out, .err = err});
  return {exit_code, out.str(), err.str()};
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_CLI_COMMAND_RUN_H_
