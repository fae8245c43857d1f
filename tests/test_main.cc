// The main() of every test program: GoogleTest's, with a deadline for each test.
//
//   PROGRAM --tests_of=FILE,..   runs only the tests of these files. Without it, all tests run.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

// Whether each test stands in a file of tests. --tests_of names only such files, so it would leave
// out a test in a header.
bool AllStandInFilesOfTests() {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const char* const file = suite.GetTestInfo(j)->file();
      if (absl::EndsWith(file, "_test.cc")) continue;
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
  absl::string_view files = argc > 1 ? argv[1] : "";
  if (absl::ConsumePrefix(&files, "--tests_of=")) {
    const std::string filter = FilterOf(absl::StrSplit(files, ','));
    if (filter.empty() || !AllStandInFilesOfTests()) return 1;
    GTEST_FLAG_SET(filter, filter);
  }
  testing::UnitTest::GetInstance()->listeners().Append(new systole::TestDeadline);  // Owned there.
  return RUN_ALL_TESTS();
}
