#include "core/text/did_you_mean.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace systole {
namespace {

const std::vector<std::string>& Fields() {
  static const std::vector<std::string> fields = {"dataset", "seed",      "epochs",
                                                  "shuffle", "num_cores", "global_batch"};
  return fields;
}

TEST(DidYouMeanTest, NamesTheNearestWord) {
  EXPECT_EQ(DidYouMean("datset", Fields()), "; did you mean 'dataset'?");
  EXPECT_EQ(DidYouMean("suhffle", Fields()), "; did you mean 'shuffle'?");
  EXPECT_EQ(DidYouMean("globalbatch", Fields()), "; did you mean 'global_batch'?");
  EXPECT_EQ(DidYouMean("epoch", Fields()), "; did you mean 'epochs'?");
  EXPECT_EQ(DidYouMean("sed", Fields()), "; did you mean 'seed'?");
}

TEST(DidYouMeanTest, CaseIsIgnoredAndADashMatchesAnUnderscore) {
  EXPECT_EQ(DidYouMean("NUM-CORES", Fields()), "; did you mean 'num_cores'?");
}

TEST(DidYouMeanTest, SaysNothingWhereNoWordIsNear) {
  EXPECT_EQ(DidYouMean("batchsize", Fields()), "");
  EXPECT_EQ(DidYouMean("xyz", Fields()), "");
  EXPECT_EQ(DidYouMean("", Fields()), "");
  EXPECT_EQ(DidYouMean("dataset", {}), "");
  EXPECT_EQ(DidYouMean("x", {"a"}), "") << "every letter would have to change";
}

TEST(DidYouMeanTest, OfEquallyNearWordsTheFirstIsSuggested) {
  EXPECT_EQ(DidYouMean("raw-3", {"raw-1", "raw-2"}), "; did you mean 'raw-1'?");
}

TEST(DidYouMeanTest, WordsOver64BytesOrAfterTheFirst1000AreIgnored) {
  const std::string longest(64, 'a');
  EXPECT_NE(DidYouMean(longest, {longest}), "");
  EXPECT_EQ(DidYouMean(longest + "a", {longest}), "");
  EXPECT_EQ(DidYouMean(longest, {longest + "a"}), "");
  std::vector<std::string> many(1'000, "other");
  many.push_back("dataset");
  EXPECT_EQ(DidYouMean("datset", many), "");
}

TEST(DidYouMeanTest, ControlCharactersInTheSuggestedWordAreEscaped) {
  EXPECT_EQ(DidYouMean("name", {"name\n"}), "; did you mean 'name\\n'?");
}

}  // namespace
}  // namespace systole
