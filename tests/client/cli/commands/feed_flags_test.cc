#include "client/cli/commands/feed_flags.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "client/cli/console/command_line.h"
#include "client/lanes/feed_client_options.h"
#include "client/lanes/feed_option_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/command_run.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Stores the options that its flags set.
class OptionsCommand final : public Command {
 public:
  explicit OptionsCommand(FeedClientOptions* options) : options_(options) {}
  std::string name() const override { return "read"; }
  std::string summary() const override { return "Reads."; }
  std::string example() const override { return "systole read"; }
  void Declare(OptionList& options) override { flags_.Declare(options); }
  absl::Status Run(const Console& console) override {
    absl::StatusOr<FeedClientOptions> options = flags_.ToOptions(console);
    if (options.ok()) *options_ = *std::move(options);
    return options.status();
  }

 private:
  FeedClientOptions* options_;
  FeedFlags flags_;
};

CommandRun Read(std::vector<std::string> args, FeedClientOptions& options) {
  args.insert(args.begin(), {"--server", "127.0.0.1:1"});
  return RunCommand(std::make_unique<OptionsCommand>(&options), std::move(args));
}

TEST(FeedFlagsTest, EveryRowOfTheTableIsAFlagWithItsHelp) {
  FeedClientOptions options;
  const CommandRun help = Read({"--help"}, options);
  EXPECT_EQ(help.exit_code, 0);
  for (const FeedOption& option : FeedOptionTable()) {
    EXPECT_THAT(help.out, HasSubstr(FlagOf(option)));
    EXPECT_THAT(help.out, HasSubstr(std::string(option.help)));
  }
}

TEST(FeedFlagsTest, EveryFlagOfTheTableSetsItsFieldAndNoOther) {
  for (const FeedOption& option : FeedOptionTable()) {
    SCOPED_TRACE(option.name);
    std::vector<std::string> args = {FlagOf(option)};
    if (!option.words.empty()) {
      args.emplace_back(option.words.back());  // The first word is the default.
    } else if (option.name == "traceparent") {
      args.push_back("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    } else if (!option.value.empty()) {
      args.push_back("1");
    }
    FeedClientOptions given;
    ASSERT_EQ(Read(args, given).exit_code, 0);
    FeedClientOptions defaults;
    for (const FeedOption& other : FeedOptionTable()) {
      const bool is_default = std::visit(
          [](const auto* a, const auto* b) {
            if constexpr (std::is_same_v<decltype(a), decltype(b)>) return *a == *b;
            return false;
          },
          other.field(given), other.field(defaults));
      EXPECT_EQ(is_default, other.name != option.name) << other.name;
    }
  }
}

TEST(FeedFlagsTest, AValueOutOfBoundsIsRefusedWithTheNameOfItsFlag) {
  FeedClientOptions options;
  const CommandRun run = Read({"--hedge-fraction", "nan"}, options);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--hedge-fraction is nan, want 0 to 1"));
}

TEST(FeedFlagsTest, CoresAreAHalfOpenRange) {
  FeedClientOptions options;
  ASSERT_THAT(ParseCores("", options), IsOk());
  EXPECT_EQ(options.core_end, 0);
  ASSERT_THAT(ParseCores("2:5", options), IsOk());
  EXPECT_EQ(options.core_begin, 2);
  EXPECT_EQ(options.core_end, 5);
  for (const char* wrong : {"2", ":", "2:", ":2", "2:5:7", "5:2", "a:b", "-1:2", "0:0"}) {
    EXPECT_THAT(ParseCores(wrong, options), Not(IsOk())) << wrong;
  }
}

}  // namespace
}  // namespace systole
