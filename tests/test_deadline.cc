#include "tests/test_deadline.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"

namespace systole {
namespace {

// The message is written before the alarm is set, so the handler that reads it allocates nothing.
char message[512];

void Fail(int) {
  // An error of write() is ignored, because the exit code reports the failure too.
  if (write(STDERR_FILENO, message, std::strlen(message)) < 0) _exit(1);
  _exit(1);
}

std::string NameOf(const testing::TestInfo& test) {
  return absl::StrCat(test.test_suite_name(), ".", test.name());
}

}  // namespace

void SetDeadline(const std::string& what, unsigned seconds) {
  alarm(0);
  const std::string text = absl::StrCat("\nFAILED: ", what, " is still running after ", seconds,
                                        " s: perhaps it waits for something that never comes\n");
  message[text.copy(message, sizeof(message) - 1)] = '\0';
  struct sigaction action = {};
  action.sa_handler = Fail;
  SYSTOLE_CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
  alarm(seconds);
}

TestDeadline::TestDeadline() { SetDeadline("the start of the program", kTestSeconds); }

void TestDeadline::OnTestSuiteStart(const testing::TestSuite& suite) {
  SetDeadline(absl::StrCat("the set-up of ", suite.name()), kTestSeconds);
}

void TestDeadline::OnTestStart(const testing::TestInfo& test) {
  SetDeadline(NameOf(test), kTestSeconds);
}

void TestDeadline::OnTestEnd(const testing::TestInfo& test) {
  SetDeadline(absl::StrCat("what comes after ", NameOf(test)), kTestSeconds);
}

}  // namespace systole
