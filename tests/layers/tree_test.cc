// Checks this repository against its own rules.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/folders.h"
#include "tests/layers/cited_tests.h"
#include "tests/layers/layer_check.h"
#include "tests/layers/layer_rules.h"
#include "tests/layers/room_picture.h"
#include "tests/status_matchers.h"

namespace systole::layers {
namespace {

class TreeTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Tree> tree = ReadTree(SourceFolder());
    ASSERT_THAT(tree, IsOk());
    tree_ = *std::move(tree);
    // An empty tree would obey every rule.
    ASSERT_GT(tree_.sources.size(), 50u);
    ASSERT_GT(tree_.programs.size(), tree_.sources.size());
  }

  const LayerRules rules_ = SystoleRules();
  Tree tree_;
};

void ExpectNone(const std::vector<std::string>& violations) {
  EXPECT_TRUE(violations.empty()) << absl::StrJoin(violations, "\n");
}

TEST_F(TreeTest, RulesOnlyPointDownwards) { ExpectNone(CheckRules(rules_)); }
TEST_F(TreeTest, IncludesFollowTheLayerRules) { ExpectNone(CheckIncludes(rules_, tree_.sources)); }
TEST_F(TreeTest, RoomsLinkWhatTheyInclude) { ExpectNone(CheckLinks(rules_, tree_)); }
TEST_F(TreeTest, FilesHaveNoIncludeCycles) { ExpectNone(CheckCircles(tree_.sources)); }
TEST_F(TreeTest, ReservedWordsAreUsedOnlyWhereAllowed) {
  ExpectNone(CheckReservedWords(rules_, tree_.sources));
}
TEST_F(TreeTest, HeadersHaveIncludeGuardsAndSayTheirThreadSafety) {
  ExpectNone(CheckHeaders(tree_.sources));
}
TEST_F(TreeTest, PrecompiledHeadersAreIncludedWhereTheyAreUsed) {
  ExpectNone(CheckPrecompiledNames(rules_, tree_.sources));
}
TEST_F(TreeTest, PrecompiledHeadersInCMakeMatchTheLayerRules) {
  const std::string list = ReadWholeFile(SourceFolder() + "/CMakeLists.txt");
  const size_t begin = list.find("set(systole_precompiled_headers");
  ASSERT_NE(begin, std::string::npos);
  std::vector<std::string> headers;
  for (const absl::string_view word :
       absl::StrSplit(list.substr(begin, list.find(')', begin) - begin), absl::ByAnyChar(" \n"))) {
    if (absl::StartsWith(word, "<")) headers.emplace_back(word.substr(1, word.find('>') - 1));
  }
  // This header needs no row in rules_.precompiled, because generated headers include it.
  std::vector<std::string> rows = {"google/protobuf/message.h"};
  for (const PrecompiledHeader& row : rules_.precompiled) rows.push_back(row.path);
  EXPECT_THAT(headers, testing::UnorderedElementsAreArray(rows));
}
TEST_F(TreeTest, TestsThatDocumentsCiteExist) {
  ASSERT_GT(tree_.tests.size(), 50u);
  ASSERT_GT(tree_.documents.size(), 50u);
  ExpectNone(CheckCitedTests(tree_));
}
TEST_F(TreeTest, FilesKeepTheLineLimits) { ExpectNone(CheckSizes(rules_, tree_.programs)); }
TEST_F(TreeTest, TheTopLevelIsFixedAndNoFolderHasACatchAllName) {
  ExpectNone(CheckFolders(rules_, tree_));
}
TEST_F(TreeTest, ThePictureOfTheRoomsMatchesTheLayerRules) {
  EXPECT_EQ(ReadWholeFile(SourceFolder() + "/deploy/images/rooms.svg"), RoomPicture(rules_))
      << "draw it again: build/release/tests/draw_rooms >deploy/images/rooms.svg";
}

}  // namespace
}  // namespace systole::layers
