#include "tests/system/process.h"

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

Finished RunShell(const std::string& command) { return Process({"/bin/sh", "-c", command}).Wait(); }

TEST(ProcessTest, ReturnsTheExitCodeAndTheOutput) {
  const Finished finished = RunShell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.signal, 0);
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
}

TEST(ProcessTest, ACrashBySignalFailsTheTestAndHasNoExitCode) {
  Finished finished;
  EXPECT_NONFATAL_FAILURE(finished = RunShell("echo last words >&2; kill -SEGV $$"),
                          "died of signal 11 (Segmentation fault); it wrote:\nlast words");
  EXPECT_EQ(finished.exit_code, -1);
  EXPECT_EQ(finished.signal, SIGSEGV);
}

TEST(ProcessTest, ACrashBySignalFailsTheTestWithoutACallOfWait) {
  EXPECT_NONFATAL_FAILURE(
      {
        Process process({"/bin/sh", "-c", "echo; kill -ABRT $$"}, {.stdout_pipe_bytes = 4096});
        while (process.ReadLine() != "") {
        }
      },
      "died of signal 6");
}

TEST(ProcessTest, ASanitizersReportIsAFailure) {
  EXPECT_NONFATAL_FAILURE(RunShell("exit 99"), "ended by a sanitizer");
}

TEST(ProcessTest, ASignalThatTheTestSentDoesNotFailTheTest) {
  Process process({"/bin/sleep", "1000"});
  process.Signal(SIGTERM);
  const Finished finished = process.Wait();
  EXPECT_EQ(finished.signal, SIGTERM);
  EXPECT_EQ(finished.exit_code, -1);
}

TEST(ProcessTest, AnotherSignalThanTheOneSentIsAFailure) {
  EXPECT_NONFATAL_FAILURE(
      {
        Process process({"/bin/sh", "-c",
                         "trap 'kill -SEGV $$' TERM; echo ready; while :; do sleep 0.01; done"},
                        {.stdout_pipe_bytes = 4096});
        EXPECT_EQ(process.ReadLine(), "ready\n");
        process.Signal(SIGTERM);
        process.Wait();
      },
      "died of signal 11");
}

}  // namespace
}  // namespace systole
