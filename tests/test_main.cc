// The main() of every test program: GoogleTest's, with a deadline for each test.
//
//   PROGRAM --tests_of=FILE,..   runs only the tests of these files. Without it, all tests run.
//   PROGRAM --one_thread         fails if the program has started a thread.
#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/started_threads.h"
#include "tests/test_deadline.h"

namespace {

// Returns GoogleTest's filter for the tests of these files. "" if one of the files has none.
std::string FilterOf(const std::vector<std::string>& files) {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  std::string filter;
  for (const std::string& file : files) {
    const size_t before = filter.size();
    for (int i = 0; i < program.total_test_suite_count(); ++i) {
      const testing::TestSuite& suite = *program.GetTestSuite(i);
      for (int j = 0; j < suite.total_test_count(); ++j) {
        const testing::TestInfo& test = *suite.GetTestInfo(j);
        if (!absl::EndsWith(test.file(), file)) continue;
        absl::StrAppend(&filter, suite.name(), ".", test.name(), ":");
      }
    }
    if (filter.size() == before) {
      std::fprintf(stderr, "FAILED: this program has no test of %s\n", file.c_str());
      return "";
    }
  }
  return filter;
}

// Whether each test stands in a file *_test.cc or *_fuzzer.cc. --tests_of names only such files, so
// a run with --tests_of would leave out a test in a header.
bool AllStandInFilesOfTests() {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const char* const file = suite.GetTestInfo(j)->file();
      if (absl::EndsWith(file, "_test.cc") || absl::EndsWith(file, "_fuzzer.cc")) continue;
      std::fprintf(stderr, "FAILED: a test of %s stands in %s; move it to a file *_test.cc\n",
                   suite.name(), file);
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  // abseil makes its table of errno's texts at first use, under a lock. Debian's abseil is not
  // instrumented, so ThreadSanitizer does not see this lock and would report a race. So the table
  // is made before there are threads.
  absl::ErrnoToStatus(ENOENT, "").IgnoreError();
  bool one_thread = false;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (absl::ConsumePrefix(&argument, "--tests_of=")) {
      const std::string filter = FilterOf(absl::StrSplit(argument, ','));
      if (filter.empty() || !AllStandInFilesOfTests()) return 1;
      GTEST_FLAG_SET(filter, filter);
    } else if (argument == "--one_thread") {
      one_thread = true;
    }
  }
  // GoogleTest deletes this listener.
  testing::UnitTest::GetInstance()->listeners().Append(new systole::TestDeadline);
  const int result = RUN_ALL_TESTS();
  if (one_thread && systole::StartedThreads() > 0) {
    std::fprintf(
        stderr,
        "FAILED: these tests have started %d threads: give their systole_test() THREADS, so "
        "that ThreadSanitizer runs them\n",
        systole::StartedThreads());
    return 1;
  }
  return result;
}
