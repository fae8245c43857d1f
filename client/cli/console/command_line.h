// The base class of `systole`'s subcommands, and the function that runs a command line. A
// subcommand declares its options and does its work. RunCommandLine() does the parsing, the help,
// `--json` and the exit codes. Only command_line.cc includes the CLI11 library.
//
// Single-thread.
#ifndef SYSTOLE_CLIENT_CLI_CONSOLE_COMMAND_LINE_H_
#define SYSTOLE_CLIENT_CLI_CONSOLE_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cli/console/interrupt.h"

namespace systole {

// A command declares its options here. Each call binds a field of the command. The field's value
// before parsing is the default that `--help` shows. Parsing overwrites the value. `name` is
// "--some-option", or "SOMETHING" for a positional argument. `value` names the value in the help.
class OptionList {
 public:
  virtual ~OptionList() = default;

  // A flag that, if given, sets the field to the opposite of its default.
  virtual void Flag(const std::string& name, bool* field, const std::string& help) = 0;
  // A flag that may carry a value: `--digest` stores `bare`, `--digest=example` stores "example".
  virtual void FlagWithValue(const std::string& name, const std::string& bare, std::string* field,
                             const std::string& help) = 0;

  // Positional arguments, which are always required. The list takes one argument or more.
  virtual void Positional(const std::string& name, std::string* field, const std::string& help) = 0;
  virtual void PositionalList(const std::string& name, std::vector<std::string>* field,
                              const std::string& help) = 0;

  // Options that must be given.
  virtual void Required(const std::string& name, const std::string& value, std::string* field,
                        const std::string& help) = 0;
  virtual void Required(const std::string& name, const std::string& value, int64_t* field,
                        const std::string& help) = 0;

  // Options that may be left out. Numbers are decimal and must fit the field.
  virtual void Optional(const std::string& name, const std::string& value, std::string* field,
                        const std::string& help) = 0;
  virtual void Optional(const std::string& name, const std::string& value, int64_t* field,
                        const std::string& help) = 0;
  virtual void Optional(const std::string& name, const std::string& value, uint64_t* field,
                        const std::string& help) = 0;
  virtual void Optional(const std::string& name, const std::string& value, double* field,
                        const std::string& help) = 0;
  virtual void Optional(const std::string& name, const std::string& value,
                        std::optional<int64_t>* field, const std::string& help) = 0;
  virtual void Optional(const std::string& name, const std::string& value,
                        std::optional<double>* field, const std::string& help) = 0;

  // A time (core/text/duration_text.h says how it is written), which may be left out.
  virtual void Optional(const std::string& name, absl::Duration* field,
                        const std::string& help) = 0;
  virtual void Optional(const std::string& name, std::optional<absl::Duration>* field,
                        const std::string& help) = 0;
};

// The streams that a command writes to, and the interrupt that asks it to stop. Results go to
// `out`, progress and remarks to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool err_is_terminal = false;  // If false, progress bars are not drawn.
  bool json = false;             // `--json`: `out` gets one JSON object and nothing else.
  absl::string_view version;     // The program's version.
  // Returns the current width of the terminal, in columns. If null, the width is 80.
  std::function<int()> terminal_columns;
  Interrupt* interrupt = nullptr;  // May be null.
  // Writes a log line to where `err` goes. Any thread may call the function. May be null.
  std::function<void(const std::string& line)> log;

  int Columns() const { return terminal_columns != nullptr ? terminal_columns() : 80; }
};

class Command {
 public:
  virtual ~Command() = default;

  virtual std::string name() const = 0;     // "verify"
  virtual std::string summary() const = 0;  // One sentence.
  virtual std::string example() const = 0;  // A command line that works, shown by --help.
  virtual void Declare(OptionList& options) = 0;
  // Runs with the fields filled in. The status decides the exit code (core/process/exit_code.h). If
  // the status is not OK, the caller prints the status's message to `err`, so a command must not
  // print this message.
  virtual absl::Status Run(const Console& console) = 0;
};

// Parses `args` (without the program's name), runs the command they name, and returns the exit
// code, which depends on the command's status. If the status is Cancelled because of
// `console.interrupt`, the exit code is 128 + signal, as in shells. The command gets a copy of
// `console`, with `json` set from the command line and `version` from the parameter.
int RunCommandLine(absl::Span<const std::string> args,
                   absl::Span<const std::unique_ptr<Command>> commands, absl::string_view version,
                   const Console& console);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_CONSOLE_COMMAND_LINE_H_
