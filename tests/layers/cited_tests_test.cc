#include "tests/layers/cited_tests.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/layers/layer_check.h"

namespace systole::layers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Tree TreeOf(const std::string& document) {
  Tree tree;
  tree.tests = {{"tests/a_test.cc", "TEST(ATest, Reads) {\nTEST_F(\n    BTest, Writes) {\n"}};
  tree.documents = {{"README.md", document}};
  return tree;
}

TEST(CheckCitedTestsTest, AcceptsTestsThatExist) {
  EXPECT_THAT(CheckCitedTests(TreeOf("`ATest.Reads`, `BTest.Writes`\n`BTest.Writes`")), IsEmpty());
}

TEST(CheckCitedTestsTest, RefusesTestsThatDoNotExist) {
  EXPECT_THAT(CheckCitedTests(TreeOf("first\n`ATest.Writes`, `CTest.Reads`")),
              ElementsAre("README.md:2: cites ATest.Writes, but there is no such test",
                          "README.md:2: cites CTest.Reads, but there is no such test"));
}

TEST(CheckCitedTestsTest, ANameWithoutASuiteIsOfTheSuiteBeforeItInTheLine) {
  EXPECT_THAT(CheckCitedTests(TreeOf("`BTest.Writes`, `.Writes`, `.Reads`")),
              ElementsAre("README.md:1: cites BTest.Reads, but there is no such test"));
  EXPECT_THAT(CheckCitedTests(TreeOf("`BTest.Writes`\n`.Reads`")), IsEmpty());
}

TEST(CheckCitedTestsTest, OtherNamesWithADotAreNoCitations) {
  EXPECT_THAT(CheckCitedTests(TreeOf("`feed.Next`, `Step.Values`, ATest.Writes, `ATest.run()`")),
              IsEmpty());
}

}  // namespace
}  // namespace systole::layers
