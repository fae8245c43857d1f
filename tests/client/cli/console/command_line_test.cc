#include "client/cli/console/command_line.h"

#include <csignal>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Prints its fields, then returns `result_`.
class EchoCommand final : public Command {
 public:
  explicit EchoCommand(absl::Status result = absl::OkStatus()) : result_(std::move(result)) {}

  std::string name() const override { return "echo"; }
  std::string summary() const override { return "Say what was said"; }
  std::string example() const override { return "systole echo here a b --count 3"; }
  void Declare(OptionList& options) override {
    options.Positional("DIR", &dir_, "A folder");
    options.PositionalList("GLOB", &globs_, "Patterns");
    options.Required("--count", "N", &count_, "How many");
    options.Optional("--seed", "S", &seed_, "A key");
    options.Optional("--part", "FRACTION", &part_, "A part");
    options.Optional("--limit", "N", &limit_, "At most");
    options.Optional("--share", "X", &share_, "How much");
    options.Optional("--label", "TEXT", &label_, "A word");
    options.Flag("--loud", &loud_, "Shout");
    options.FlagWithValue("--digest", "step", &digest_, "Print hashes");
  }
  absl::Status Run(const Console& console) override {
    console.out << dir_ << "|" << absl::StrJoin(globs_, ",") << "|" << count_ << "|" << seed_ << "|"
                << part_ << "|" << (limit_.has_value() ? absl::StrCat(*limit_) : "none") << "|"
                << (share_.has_value() ? absl::StrCat(*share_) : "none") << "|" << label_ << "|"
                << loud_ << "|" << digest_ << "|" << console.json;
    return result_;
  }

 private:
  absl::Status result_;
  std::string dir_;
  std::vector<std::string> globs_;
  int64_t count_ = 0;
  uint64_t seed_ = 7;
  double part_ = 0.25;
  std::optional<int64_t> limit_;
  std::optional<double> share_;
  std::string label_ = "plain";
  bool loud_ = false;
  std::string digest_;
};

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome RunEcho(const std::vector<std::string>& args, absl::Status result = absl::OkStatus()) {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<EchoCommand>(std::move(result)));
  std::ostringstream out, err;
  const int exit_code = RunCommandLine(args, commands, "1.2.3", {.out = out, .err = err});
  return {exit_code, out.str(), err.str()};
}

TEST(CommandLineTest, FillsFieldsAndKeepsDefaults) {
  const Outcome plain = RunEcho({"echo", "here", "a", "b", "--count", "3"});
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_EQ(plain.out, "here|a,b|3|7|0.25|none|none|plain|0||0");
  EXPECT_EQ(plain.err, "");
  const Outcome full = RunEcho({"echo", "--count=-3", "--seed", "18446744073709551615", "--part",
                                "0.5", "--share", "-1.5", "--limit", "9", "--label", "x y",
                                "--loud", "--digest", "--json", "here", "a"});
  EXPECT_EQ(full.out, "here|a|-3|18446744073709551615|0.5|9|-1.5|x y|1|step|1");
}

TEST(CommandLineTest, FlagMayCarryAValue) {
  const Outcome outcome = RunEcho({"echo", "here", "a", "--count", "3", "--digest=example"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("|example|"));
}

TEST(CommandLineTest, ReadsNumbersAsDecimal) {
  EXPECT_THAT(RunEcho({"echo", "here", "a", "--count", "010"}).out, HasSubstr("|10|"));
}

TEST(CommandLineTest, WrongUsageExitsWithTwoAndSaysWhy) {
  const struct {
    std::vector<std::string> args;
    std::string message;
  } cases[] = {
      {{}, "subcommand is required"},
      {{"sing"}, "no command 'sing'"},
      {{"echo", "here", "a"}, "--count is required"},
      {{"echo", "--count", "3"}, "DIR is required"},
      {{"echo", "here", "--count", "3"}, "GLOB is required"},
      {{"echo", "here", "a", "--count"}, "--count"},
      {{"echo", "here", "a", "--count", "many"}, "needs a whole number, got 'many'"},
      {{"echo", "here", "a", "--count", "3.5"}, "needs a whole number, got '3.5'"},
      {{"echo", "here", "a", "--count", "9223372036854775808"}, "needs a whole number"},
      {{"echo", "here", "a", "--count", "3", "--seed=-1"}, "not negative, got '-1'"},
      {{"echo", "here", "a", "--count", "3", "--part", "half"}, "needs a number, got 'half'"},
      {{"echo", "here", "a", "--count", "3", "--limit", ""}, "needs a whole number"},
      {{"echo", "here", "a", "--count", "3", "--share", "much"}, "needs a number"},
      {{"echo", "here", "a", "--count", "3", "--shout"}, "--shout"},
      {{"echo", "here", "a", "--count", "3", "--count", "4"}, "--count"},
  };
  for (const auto& c : cases) {
    const Outcome outcome = RunEcho(c.args);
    EXPECT_EQ(outcome.exit_code, 2) << absl::StrJoin(c.args, " ");
    EXPECT_THAT(outcome.err, HasSubstr(c.message)) << absl::StrJoin(c.args, " ");
    EXPECT_EQ(outcome.out, "") << absl::StrJoin(c.args, " ");
  }
}

TEST(CommandLineTest, AMisspelledNameIsReportedWithASuggestion) {
  EXPECT_EQ(RunEcho({"ecko"}).err,
            "systole: there is no command 'ecko'; `systole --help` lists them; did you mean "
            "'echo'?\n");
  EXPECT_EQ(RunEcho({"echo", "here", "a", "--count", "3", "--sed=4"}).err,
            "systole echo: there is no option '--sed'; `systole echo --help` lists them; did you "
            "mean '--seed'?\n");
  // Because of the typing error, a required option is missing. The error names the typing error.
  EXPECT_THAT(RunEcho({"echo", "here", "a", "--coutn", "3"}).err,
              HasSubstr("no option '--coutn'; `systole echo --help` lists them; did you mean "
                        "'--count'?\n"));
  EXPECT_THAT(RunEcho({"--vresion"}).err, HasSubstr("did you mean '--version'?"));
  EXPECT_EQ(RunEcho({"echo", "here", "a", "--count", "3", "--zzzzzz"}).err,
            "systole echo: there is no option '--zzzzzz'; `systole echo --help` lists them\n");
}

TEST(CommandLineTest, ACommandInterruptedBySigintExitsWithCode130) {
  const absl::Status cancelled = absl::CancelledError("interrupted after 3 steps");
  std::ostringstream out, err;
  Interrupt interrupt([](int) {});
  Console console = {.out = out, .err = err, .interrupt = &interrupt};
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(std::make_unique<EchoCommand>(cancelled));
  const std::vector<std::string> args = {"echo", "here", "a", "--count", "3"};
  // If the command was cancelled without an interrupt, the exit code is another one.
  EXPECT_EQ(RunCommandLine(args, commands, "1", console), 5);
  interrupt.Request(SIGINT);
  EXPECT_EQ(RunCommandLine(args, commands, "1", console), 130);
  EXPECT_THAT(err.str(), EndsWith("systole echo: interrupted after 3 steps\n"));
}

TEST(CommandLineTest, HelpOfASubcommandShowsOptionsDefaultsAndExample) {
  const Outcome outcome = RunEcho({"echo", "--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("Say what was said"), HasSubstr("--part FRACTION"), HasSubstr("0.25"),
                    HasSubstr("--json"), HasSubstr("Example:\n  systole echo here a b --count 3")));
}

TEST(CommandLineTest, TheProgramPrintsItsHelpAndVersion) {
  const Outcome help = RunEcho({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("echo"), HasSubstr("1 damage found")));
  const Outcome version = RunEcho({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr("systole 1.2.3"));
}

TEST(CommandLineTest, StatusBecomesMessageAndExitCode) {
  const Outcome outcome =
      RunEcho({"echo", "here", "a", "--count", "3"}, absl::UnavailableError("no server at x:1"));
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.err, "systole echo: no server at x:1\n");
}

}  // namespace
}  // namespace systole
