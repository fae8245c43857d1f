#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/console/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/image_folder.h"

namespace systole {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PackCommandTest, InterruptedItLeavesNothingAndSaysSo) {
  const TempFolder images, out;
  FillImageFolder(images, {"a"}, 3);
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakePackCommand());
  std::ostringstream printed, errors;
  int ended = 0;
  Interrupt interrupt([&ended](int) { ++ended; });
  interrupt.Request(SIGINT);  // The command sees the request at its first check.
  EXPECT_NE(RunCommandLine({"pack", images.path(), out / "p", "--shards", "1"}, commands, "test",
                           {.out = printed, .err = errors, .interrupt = &interrupt}),
            0);
  EXPECT_THAT(errors.str(), HasSubstr("interrupted: no shard of this run is left"));
  EXPECT_THAT(out.List(), IsEmpty());
}

}  // namespace
}  // namespace systole
