#include <sys/stat.h>

#include <string>

#include "absl/strings/strip.h"
#include "client/cli/commands/commands.h"
#include "core/access_token/token_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/command_run.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TokenCommandTest, ItsOutputIsTheTokenAloneAndTheFileHasTheHash) {
  const TempFolder folder;
  const CommandRun run = RunCommand(
      MakeTokenCommand(), {"--name", "a", "--file", folder / "tokens", "--expires", "2030-01-31"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  ASSERT_THAT(run.out, EndsWith("\n"));
  const std::string token(absl::StripSuffix(run.out, "\n"));
  EXPECT_THAT(token, Not(HasSubstr("\n")));
  EXPECT_THAT(run.err, HasSubstr("only time"));
  EXPECT_EQ(ReadWholeFile(folder / "tokens"), TokenLine({.name = "a",
                                                         .hash = HashOfToken(token),
                                                         .last_day = absl::CivilDay(2030, 1, 31)}));
}

TEST(TokenCommandTest, AnInvalidExpiryDayIsRefusedBeforeAFileIsCreated) {
  const TempFolder folder;
  const CommandRun run = RunCommand(
      MakeTokenCommand(), {"--name", "a", "--file", folder / "tokens", "--expires", "tomorrow"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("--expires 'tomorrow'"));
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(folder.List().empty());
}

TEST(TokenCommandTest, AFileThatOthersCanReadGetsNoToken) {
  const TempFolder folder;
  const std::string path = folder.Write("tokens", "");
  ::chmod(path.c_str(), 0644);
  const CommandRun run = RunCommand(MakeTokenCommand(), {"--name", "a", "--file", path});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("chmod 600"));
  EXPECT_EQ(run.out, "");
}

}  // namespace
}  // namespace systole
