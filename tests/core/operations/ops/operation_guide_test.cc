// Checks the descriptions in the table of operations, and the table in core/README.md that is made
// from these descriptions.
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/operations/ops/mix_draws.h"
#include "core/operations/ops/operation_table.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(OperationGuideTest, TheTableHasEveryTransformOnce) {
  const auto& kinds = *v1::Transform::descriptor()->FindOneofByName("kind");
  EXPECT_EQ(Operations().size(), static_cast<size_t>(kinds.field_count()));
  for (int i = 0; i < kinds.field_count(); ++i) {
    const auto kind = static_cast<v1::Transform::KindCase>(kinds.field(i)->number());
    EXPECT_NE(FindOperation(kind), nullptr) << kinds.field(i)->name();
  }
}

TEST(OperationGuideTest, EveryExampleIsATransformOfItsKindThatWorks) {
  for (const OperationRow& row : Operations()) {
    SCOPED_TRACE(OperationName(row.kind));
    v1::Transform transform;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(std::string(row.guide.example), &transform));
    EXPECT_EQ(transform.kind_case(), row.kind);
    // decode_raw needs a stored shape, and decode_jpeg refuses a stored shape.
    std::vector<int64_t> shape;
    if (row.kind == v1::Transform::kDecodeRaw) shape = {8, 8, 3};
    const v1::Transform complete = WithDefaults(row, transform);
    const OperationArguments arguments = {
        .transform = complete, .draws = Draws(row.draws, 0, ""), .stored_shape = shape};
    EXPECT_THAT(row.create(arguments), IsOk());
  }
  for (const MixRow& row : MixOperations()) {
    SCOPED_TRACE(row.name);
    v1::FeedSpec spec;
    ASSERT_TRUE(
        google::protobuf::TextFormat::ParseFromString(std::string(row.guide.example), &spec));
    const auto* const field = v1::Mix::descriptor()->FindFieldByName(std::string(row.name));
    ASSERT_NE(field, nullptr);
    EXPECT_TRUE(v1::Mix::GetReflection()->HasField(spec.mix(), field));
    EXPECT_THAT(MixDraws::Create(spec.mix(), 8, 8), IsOk());
  }
}

TEST(OperationGuideTest, NoTwoOperationsShareTheirDraws) {
  std::set<uint32_t> numbers = {kMixPurpose};
  for (const OperationRow& row : Operations()) {
    if (row.draws == 0) continue;
    EXPECT_TRUE(numbers.insert(row.draws).second) << OperationName(row.kind);
  }
}

TEST(OperationGuideTest, EverySummaryIsASentenceAndEveryTensorFlowOpHasAParity) {
  for (const OperationRow& row : Operations()) {
    SCOPED_TRACE(OperationName(row.kind));
    EXPECT_THAT(std::string(row.guide.summary), EndsWith("."));
    EXPECT_EQ(row.guide.tensorflow.empty(), row.guide.parity.empty());
    EXPECT_EQ(row.guide.combined_tensorflow.empty(), row.guide.combined_parity.empty());
  }
  for (const MixRow& row : MixOperations()) {
    EXPECT_THAT(std::string(row.guide.summary), EndsWith(".")) << row.name;
  }
}

std::string Code(absl::string_view name) {
  return name.empty() ? "" : absl::StrCat("`", name, "`");
}

TEST(OperationGuideTest, TheReadmeTableMatchesTheOperationTable) {
  std::ifstream file("core/README.md");  // Tests run at the top of the tree.
  std::stringstream readme;
  readme << file.rdbuf();
  std::string rows;
  for (const OperationRow& row : Operations()) {
    if (row.guide.tensorflow.empty()) continue;
    absl::StrAppend(&rows, "| ", Code(row.guide.tensorflow), " | `", OperationName(row.kind),
                    "` | ", row.guide.parity, " |\n");
    if (row.guide.combined_tensorflow.empty()) continue;
    absl::StrAppend(&rows, "| ", Code(row.guide.combined_tensorflow), " | `",
                    OperationName(row.kind), "` | ", row.guide.combined_parity, " |\n");
  }
  for (const MixRow& row : MixOperations()) {
    absl::StrAppend(&rows, "| ", Code(row.guide.tensorflow), " | `", row.name, "` | ",
                    row.guide.parity, " |\n");
  }
  EXPECT_THAT(readme.str(), HasSubstr(rows));
}

}  // namespace
}  // namespace systole
