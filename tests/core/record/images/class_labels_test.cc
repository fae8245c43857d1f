#include "core/record/images/class_labels.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ClassLabelsTest, AreReadAsTheyAreWritten) {
  const std::vector<std::string> classes = {"daisy", "sun flower", "\xff"};
  const absl::StatusOr<std::string> text = LabelsText(classes);
  EXPECT_THAT(text, IsOkAndHolds(std::string("daisy\nsun flower\n\xff\n")));
  EXPECT_THAT(ParseLabels(*text), IsOkAndHolds(classes));
  EXPECT_THAT(ParseLabels(""), IsOkAndHolds(ElementsAre()));
}

TEST(ClassLabelsTest, WindowsLineEndsAndAMissingLastLineEndAreRead) {
  EXPECT_THAT(ParseLabels("a\r\nb"), IsOkAndHolds(ElementsAre("a", "b")));
}

TEST(ClassLabelsTest, InvalidAndRepeatedClassNamesAreRefused) {
  const auto refused = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  EXPECT_THAT(ParseLabels("a\n\nb\n"), refused("labels.txt, line 2: want the name of a class"));
  EXPECT_THAT(ParseLabels("a\nb\na\n"), refused("line 3: the class \"a\" has a line above"));
  EXPECT_THAT(ParseLabels(std::string(kMaxClassBytes, 'a')), IsOk());
  EXPECT_THAT(ParseLabels(std::string(kMaxClassBytes + 1, 'a')), refused("line 1"));
  EXPECT_THAT(LabelsText({"a", "b\nc"}), refused("line break"));
  EXPECT_THAT(LabelsText({"a", "b\r"}), refused("b\\r has a line break"));
  EXPECT_THAT(LabelsText({"a", ""}), refused("labels.txt, line 2"));
  EXPECT_THAT(LabelsText({"a", "a"}), refused("line 2: the class \"a\" has a line above"));
  EXPECT_THAT(LabelsText({std::string(kMaxClassBytes + 1, 'a')}), refused("line 1"));
}

TEST(ClassLabelsTest, AreBoundedInNumber) {
  std::string text;
  for (size_t i = 0; i <= kMaxClasses; ++i) absl::StrAppend(&text, i, "\n");
  EXPECT_THAT(ParseLabels(text),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("line 1000001: it has more than 1000000 classes")));
}

}  // namespace
}  // namespace systole
