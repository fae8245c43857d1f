#include "client/cli/console/command_line.h"

#include <algorithm>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/process/exit_code.h"
#include "core/text/did_you_mean.h"
#include "core/text/duration_text.h"
#include "core/text/foreign_text.h"
#include "core/text/unknown_argument.h"

namespace systole {
namespace {

// Stores `text` in `*field`. Returns false if the text is not a value of the field's type. CLI11's
// own parser would read 010 as 8.
bool ParseValue(const std::string& text, std::string* field) {
  *field = text;
  return true;
}
bool ParseValue(const std::string& text, int64_t* field) { return absl::SimpleAtoi(text, field); }
bool ParseValue(const std::string& text, uint64_t* field) { return absl::SimpleAtoi(text, field); }
bool ParseValue(const std::string& text, double* field) { return absl::SimpleAtod(text, field); }
bool ParseValue(const std::string& text, absl::Duration* field) {
  const std::optional<absl::Duration> duration = ParseDurationText(text);
  if (duration.has_value()) *field = *duration;
  return duration.has_value();
}
template <typename Value>
bool ParseValue(const std::string& text, std::optional<Value>* field) {
  Value value;
  if (!ParseValue(text, &value)) return false;
  *field = value;
  return true;
}

const char* Wanted(const std::string*) { return "a text"; }
const char* Wanted(const int64_t*) { return "a whole number"; }
const char* Wanted(const std::optional<int64_t>*) { return "a whole number"; }
const char* Wanted(const uint64_t*) { return "a whole number, not negative"; }
const char* Wanted(const double*) { return "a number"; }
const char* Wanted(const std::optional<double>*) { return "a number"; }
const char* Wanted(const absl::Duration*) { return "a time, such as 3s or 500ms"; }
const char* Wanted(const std::optional<absl::Duration>*) { return "a time, such as 3s or 500ms"; }

std::string DefaultText(const std::string* field) { return *field; }
std::string DefaultText(const int64_t* field) { return absl::StrCat(*field); }
std::string DefaultText(const uint64_t* field) { return absl::StrCat(*field); }
std::string DefaultText(const double* field) { return absl::StrCat(*field); }
std::string DefaultText(const absl::Duration* field) { return absl::FormatDuration(*field); }

class Cli11Options final : public OptionList {
 public:
  explicit Cli11Options(CLI::App* app) : app_(app) {}

  void Flag(const std::string& name, bool* field, const std::string& help) override {
    app_->add_flag_callback(
        name, [field, given = !*field] { *field = given; }, help);
  }
  void FlagWithValue(const std::string& name, const std::string& bare, std::string* field,
                     const std::string& help) override {
    app_->add_flag(absl::StrCat(name, "{", bare, "}"), *field, help);
  }
  void Positional(const std::string& name, std::string* field, const std::string& help) override {
    Add(name, "", field, help)->required();
  }
  void PositionalList(const std::string& name, std::vector<std::string>* field,
                      const std::string& help) override {
    app_->add_option(name, *field, help)->required()->type_name("");
  }
  void Required(const std::string& name, const std::string& value, std::string* field,
                const std::string& help) override {
    Add(name, value, field, help)->required();
  }
  void Required(const std::string& name, const std::string& value, int64_t* field,
                const std::string& help) override {
    Add(name, value, field, help)->required();
  }
  void Optional(const std::string& name, const std::string& value, std::string* field,
                const std::string& help) override {
    Add(name, value, field, help)->default_str(DefaultText(field));
  }
  void Optional(const std::string& name, const std::string& value, int64_t* field,
                const std::string& help) override {
    Add(name, value, field, help)->default_str(DefaultText(field));
  }
  void Optional(const std::string& name, const std::string& value, uint64_t* field,
                const std::string& help) override {
    Add(name, value, field, help)->default_str(DefaultText(field));
  }
  void Optional(const std::string& name, const std::string& value, double* field,
                const std::string& help) override {
    Add(name, value, field, help)->default_str(DefaultText(field));
  }
  void Optional(const std::string& name, const std::string& value, std::optional<int64_t>* field,
                const std::string& help) override {
    Add(name, value, field, help);
  }
  void Optional(const std::string& name, const std::string& value, std::optional<double>* field,
                const std::string& help) override {
    Add(name, value, field, help);
  }
  void Optional(const std::string& name, absl::Duration* field, const std::string& help) override {
    takes_time_ = true;
    Add(name, "TIME", field, help)->default_str(DefaultText(field));
  }
  void Optional(const std::string& name, std::optional<absl::Duration>* field,
                const std::string& help) override {
    takes_time_ = true;
    Add(name, "TIME", field, help);
  }

  // Whether an option takes a time. The help then explains how a time is written.
  bool takes_time() const { return takes_time_; }

 private:
  template <typename T>
  CLI::Option* Add(const std::string& name, const std::string& value, T* field,
                   const std::string& help) {
    CLI::callback_t store = [field](const CLI::results_t& texts) {
      return ParseValue(texts.back(), field);
    };
    CLI::Option* option = app_->add_option(name, std::move(store), help);
    option->type_name(value);
    option->check([field](const std::string& text) -> std::string {
      T ignored{};
      if (ParseValue(text, &ignored)) return "";
      return absl::StrCat("needs ", Wanted(field), ", got '", text, "'");
    });
    return option;
  }

  CLI::App* const app_;
  bool takes_time_ = false;
};

// The message about an argument that no option takes, most likely a typing error. Empty if there is
// no such argument. If an option is missing, too, only this message is shown, because the argument
// may be a misspelling of the missing option.
std::string UnexpectedText(const CLI::App& app,
                           absl::Span<const std::pair<CLI::App*, Command*>> subcommands) {
  const CLI::App* at = &app;
  for (const auto& [subcommand, command] : subcommands) {
    if (subcommand->parsed()) at = subcommand;
  }
  if (at->remaining().empty()) return "";
  const std::string program = at == &app ? "systole" : absl::StrCat("systole ", at->get_name());
  std::vector<std::string> known;
  for (const CLI::Option* option : at->get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back(absl::StrCat("--", name));
  }
  return UnknownArgumentText(program, at->remaining().front(), known);
}

}  // namespace

int RunCommandLine(absl::Span<const std::string> args,
                   absl::Span<const std::unique_ptr<Command>> commands, absl::string_view version,
                   const Console& console) {
  CLI::App app("Feeds accelerators from TFRecord shards.", "systole");
  app.set_version_flag("--version", absl::StrCat("systole ", version));
  app.require_subcommand(1);
  app.footer(absl::StrCat(kExitCodesText,
                          "\nAfter a signal the exit code is 128 + signal (Ctrl-C: 130).\n`systole "
                          "COMMAND --help` shows a command's options and an example."));
  bool json = false;
  std::vector<std::pair<CLI::App*, Command*>> added;
  for (const std::unique_ptr<Command>& command : commands) {
    CLI::App* subcommand = app.add_subcommand(command->name(), command->summary());
    Cli11Options options(subcommand);
    command->Declare(options);
    subcommand->add_flag("--json", json, "Print the result as one JSON object");
    subcommand->footer(absl::StrCat(options.takes_time() ? kDurationText : "",
                                    options.takes_time() ? "\n" : "", "Example:\n  ",
                                    command->example()));
    added.emplace_back(subcommand, command.get());
  }

  // An unknown command is handled here. CLI11 would only say that a subcommand is missing.
  std::vector<std::string> names;
  for (const std::unique_ptr<Command>& command : commands) names.push_back(command->name());
  if (!args.empty() && !absl::StartsWith(args[0], "-") &&
      std::find(names.begin(), names.end(), args[0]) == names.end()) {
    console.err << "systole: there is no command '" << ForeignName(args[0])
                << "'; `systole --help` lists them" << DidYouMean(args[0], names) << std::endl;
    return kExitUsage;
  }

  // CLI11 takes the arguments in reverse order.
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    if (const std::string unexpected = UnexpectedText(app, added); !unexpected.empty()) {
      console.err << unexpected << std::endl;
      return kExitUsage;
    }
    // CLI11 also throws for --help and --version, with exit code 0. All else is wrong usage.
    return app.exit(error, console.out, console.err) == 0 ? kExitOk : kExitUsage;
  }

  for (const auto& [subcommand, command] : added) {
    if (!subcommand->parsed()) continue;
    Console to = console;
    to.json = json;
    to.version = version;
    const absl::Status status = command->Run(to);
    console.out.flush();
    if (!status.ok()) {
      console.err << "systole " << command->name() << ": " << status.message() << std::endl;
    }
    if (absl::IsCancelled(status) && to.interrupt != nullptr && to.interrupt->requested()) {
      return kExitSignalled + *to.interrupt->signal();
    }
    return ExitCodeFor(status);
  }
  return kExitUsage;  // Not reached: one subcommand is required.
}

}  // namespace systole
