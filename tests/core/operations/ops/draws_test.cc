#include "core/operations/ops/draws.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

constexpr ExampleKey kExample = {.seed = 3, .epoch = 1, .record = 5};

absl::StatusOr<Draws> DrawsOf(const std::string& fields, uint32_t purpose, int before,
                              bool takes_tf_seed) {
  v1::Transform transform;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(fields, &transform)) << fields;
  return Draws::Create(transform, purpose, before, takes_tf_seed);
}

float FirstOf(const std::string& fields, uint32_t purpose = 3, int before = 0,
              const ExampleKey& example = kExample) {
  const absl::StatusOr<Draws> draws = DrawsOf(fields, purpose, before, /*takes_tf_seed=*/true);
  EXPECT_THAT(draws, IsOk()) << fields;
  return draws->UniformFloat(example);
}

TEST(DrawsTest, DrawsDependOnKindPositionKeySeedEpochAndRecord) {
  const float first = FirstOf("");
  EXPECT_EQ(FirstOf(""), first);
  EXPECT_NE(FirstOf("", 4), first);
  EXPECT_NE(FirstOf("", 3, 1), first);
  EXPECT_NE(FirstOf("key: 'a'"), first);
  EXPECT_NE(FirstOf("key: 'b'"), FirstOf("key: 'a'"));
  EXPECT_NE(FirstOf("", 3, 0, {.seed = 3, .epoch = 1, .record = 6}), first);
  EXPECT_NE(FirstOf("", 3, 0, {.seed = 3, .epoch = 2, .record = 5}), first);
  EXPECT_NE(FirstOf("", 3, 0, {.seed = 4, .epoch = 1, .record = 5}), first);
}

TEST(DrawsTest, WithATfSeedDrawsDependOnlyOnItTheEpochAndTheRecord) {
  const std::string seed = "tf_seed: 1 tf_seed: 2";
  const float first = FirstOf(seed);
  EXPECT_EQ(FirstOf(seed, 4, 1), first);
  EXPECT_EQ(FirstOf(seed, 3, 0, {.seed = 9, .epoch = 1, .record = 5}), first);
  EXPECT_NE(FirstOf("tf_seed: 1 tf_seed: 3"), first);
  EXPECT_NE(FirstOf("tf_seed: 3 tf_seed: 2"), first);
  EXPECT_NE(FirstOf(seed, 3, 0, {.seed = 3, .epoch = 1, .record = 6}), first);
  EXPECT_NE(FirstOf(seed, 3, 0, {.seed = 3, .epoch = 2, .record = 5}), first);
  EXPECT_TRUE(DrawsOf(seed, 3, 0, true)->is_tensorflow());
  EXPECT_FALSE(DrawsOf("key: 'a'", 3, 0, true)->is_tensorflow());
}

TEST(DrawsTest, InvalidKeysAndTfSeedsAreRefusedWithTheReason) {
  const auto refuses = [](const std::string& fields, uint32_t purpose, bool takes_tf_seed,
                          const std::string& message) {
    EXPECT_THAT(DrawsOf(fields, purpose, 0, takes_tf_seed),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << fields;
  };
  refuses(absl::StrCat("key: '", std::string(65, 'k'), "'"), 3, true,
          "has a key of 65 bytes, want at most 64");
  refuses("key: 'a'", 0, false, "has a key, but draws nothing; leave it out");
  refuses("tf_seed: 1", 3, true, "has a tf_seed of 1 values, want 2");
  refuses("tf_seed: [1, 2, 3]", 3, true, "has a tf_seed of 3 values, want 2");
  refuses("tf_seed: [1, 2]", 3, false, "is not one of TensorFlow's stateless random ops");
  refuses("tf_seed: [1, 2]", 0, false, "is not one of TensorFlow's stateless random ops");
  refuses("tf_seed: [1, 2] key: 'a'", 3, true, "has a key and a tf_seed, want one of them");
  EXPECT_THAT(DrawsOf(absl::StrCat("key: '", std::string(64, 'k'), "'"), 3, 0, true), IsOk());
  EXPECT_THAT(DrawsOf("", 0, 0, false), IsOk());
}

}  // namespace
}  // namespace systole
