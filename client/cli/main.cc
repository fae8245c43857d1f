// The `systole` command: makes, packs, indexes and checks data sets, drains feeds, trains,
// prices products and models.

#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/command_line.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "core/memory/allocator.h"
#include "core/numeric/simd_target.h"

int main(int argc, char** argv) {
  systole::KeepFreedMemory();
  if (const absl::Status status = systole::ForceSimdTargetFromEnvironment(); !status.ok()) {
    std::cerr << "systole: " << status.message() << "\n";
    return systole::ExitCodeFor(status);
  }
  std::vector<std::unique_ptr<systole::Command>> commands;
  commands.push_back(systole::MakeMakeFlowersCommand());
  commands.push_back(systole::MakePackCommand());
  commands.push_back(systole::MakeIndexCommand());
  commands.push_back(systole::MakeInspectCommand());
  commands.push_back(systole::MakeVerifyCommand());
  commands.push_back(systole::MakeFeedCommand());
  commands.push_back(systole::MakeTrainCommand());
  commands.push_back(systole::MakePaceCommand());
  commands.push_back(systole::MakeReplayCommand());
  commands.push_back(systole::MakeLoadCommand());
  commands.push_back(systole::MakeGemmCommand());
  commands.push_back(systole::MakeCompileCommand());
  const std::vector<std::string> args(argv + 1, argv + argc);
  return systole::RunCommandLine(
      args, commands, SYSTOLE_VERSION,
      {.out = std::cout, .err = std::cerr, .err_is_terminal = isatty(STDERR_FILENO) == 1});
}
