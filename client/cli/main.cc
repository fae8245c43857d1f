// The `systole` command: makes, packs, indexes and checks data sets, reads and times feeds, trains,
// and says what matrix products and models cost on a chip.

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/console/command_line.h"
#include "client/cli/console/interrupt.h"
#include "core/numeric/simd_target.h"
#include "core/process/allocator.h"
#include "core/process/exit_code.h"
#include "openssl/crypto.h"
#include "proto/framing/grpc_log.h"

namespace {

int TerminalColumns() {
  winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// Prints a line of a log, from any thread. The line replaces a progress bar, which is drawn again
// later.
void PutLogLine(const std::string& line) {
  // A single call of fputs(), so that the lines of several threads are not mixed.
  std::fputs(((isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "") + line + "\n").c_str(), stderr);
}

// Ends the program without destructors, because other threads still use the objects.
void EndNow(int signal) {
  std::cerr << (isatty(STDERR_FILENO) == 1 ? "\r\x1b[K" : "") << "systole: interrupted"
            << std::endl;
  std::_Exit(systole::kExitSignalled + signal);
}

}  // namespace

int main(int argc, char** argv) {
  systole::KeepFreedMemory();
  // gRPC's threads may end after main(). If OpenSSL cleaned up at exit, it would not free the
  // memory that it has for threads that end later, and LeakSanitizer would fail the program.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  systole::SilenceGrpcLog();
  if (const absl::Status status = systole::ForceSimdTargetFromEnvironment(); !status.ok()) {
    std::cerr << "systole: " << status.message() << "\n";
    return systole::ExitCodeFor(status);
  }
  std::vector<std::unique_ptr<systole::Command>> commands;
#define SYSTOLE_PUSH_COMMAND(NAME) commands.push_back(systole::Make##NAME##Command());
  SYSTOLE_COMMANDS(SYSTOLE_PUSH_COMMAND)
#undef SYSTOLE_PUSH_COMMAND
  systole::Interrupt interrupt(EndNow);
  const auto signals = systole::WatchSignals(interrupt);
  if (!signals.ok()) {
    std::cerr << "systole: " << signals.status().message() << "\n";
    return systole::ExitCodeFor(signals.status());
  }
  const std::vector<std::string> args(argv + 1, argv + argc);
  return systole::RunCommandLine(args, commands, SYSTOLE_VERSION,
                                 {.out = std::cout,
                                  .err = std::cerr,
                                  .err_is_terminal = isatty(STDERR_FILENO) == 1,
                                  .terminal_columns = TerminalColumns,
                                  .interrupt = &interrupt,
                                  .log = PutLogLine});
}
