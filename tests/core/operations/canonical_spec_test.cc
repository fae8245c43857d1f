#include "core/operations/canonical_spec.h"

#include <string>

#include "core/operations/compact_form.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

uint64_t FingerprintOf(const std::string& transform) {
  return SpecFingerprint(
      FromText<v1::FeedSpec>("outputs { name: 'a' transforms { " + transform + " } }"));
}

TEST(CanonicalSpecTest, DefaultsAreTheirValues) {
  const std::pair<const char*, const char*> same[] = {
      {"decode_jpeg {}", "decode_jpeg { channels: 3 }"},
      {"center_crop { height: 2 }", "center_crop { height: 2 fraction: 1 }"},
      {"random_resized_crop {}", "random_resized_crop { area_max: 1 area_min: 0.08 }"},
      {"normalize {}", "normalize { scale: 1 }"}};
  for (const auto& [one, other] : same) EXPECT_EQ(FingerprintOf(one), FingerprintOf(other)) << one;
  const char* const others[] = {"decode_jpeg { channels: 1 }", "center_crop { height: 3 }",
                                "random_flip {}", "random_flip {} key: 'k'",
                                "brightness { delta_max: 1 }"};
  for (const char* one : others) {
    for (const char* other : others) {
      EXPECT_EQ(FingerprintOf(one) == FingerprintOf(other), one == other) << one << other;
    }
  }
}

TEST(CanonicalSpecTest, IsItsOwnCanonicalForm) {
  const v1::FeedSpec once =
      CanonicalSpec(FromText<v1::FeedSpec>("outputs { name: 'b' transforms { random_resized_crop "
                                           "{} } } outputs { name: 'a' } wire: AUTO "
                                           "shuffle { block_records: 3 }"));
  EXPECT_EQ(CanonicalSpec(once).SerializeAsString(), once.SerializeAsString());
  EXPECT_EQ(once.outputs(0).name(), "a");
}

constexpr char kCrop[] =
    "transforms { decode_jpeg {} } transforms { center_crop { height: 2 width: 2 } } ";
constexpr char kRound[] = "transforms { round_to_uint8 {} } ";
constexpr char kNormalize[] = "transforms { normalize { mean: [1, 2, 3] } } ";

std::optional<CompactForm> FormOf(const std::string& text) {
  return CompactFormOf(FromText<v1::Output>("name: 'a' feature: 'f' " + text));
}

TEST(CompactFormTest, WholeNumbersTravelAndTheClientNormalises) {
  const std::string transforms = std::string(kCrop) + kRound + kNormalize;
  const auto form = FormOf("dtype: BFLOAT16 " + transforms);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->travels.dtype(), v1::UINT8);
  EXPECT_EQ(form->travels.transforms_size(), 3);
  EXPECT_EQ(form->factors.bias, (std::vector<float>{-1, -2, -3}));
  const auto cast = FormOf("dtype: FLOAT32 shape: 7 transforms { decode_raw {} }");
  ASSERT_TRUE(cast.has_value());
  EXPECT_EQ(cast->factors.scale, std::vector<float>{1});
}

TEST(CompactFormTest, WhatFollowsARoundingMayMovePixels) {
  EXPECT_TRUE(FormOf("dtype: FLOAT32 " + std::string(kCrop) + kRound +
                     "transforms { random_flip {} } transforms { random_crop { height: 1 width: 1 "
                     "} } transforms { brightness { delta_max: 1 } }" +
                     kNormalize)
                  .has_value());
}

TEST(CompactFormTest, OthersTravelAsTheyAre) {
  EXPECT_FALSE(FormOf("dtype: UINT8 " + std::string(kCrop) + kRound).has_value());
  EXPECT_FALSE(FormOf("dtype: FLOAT32 " + std::string(kCrop) + kNormalize).has_value());
  EXPECT_FALSE(FormOf("dtype: FLOAT32 " + std::string(kCrop) + kRound + kNormalize + kNormalize)
                   .has_value());
  EXPECT_FALSE(FormOf("dtype: FLOAT32 " + std::string(kCrop) + kRound + kNormalize +
                      "transforms { random_flip {} }")
                   .has_value());
  EXPECT_FALSE(FormOf("dtype: FLOAT32 transforms { normalize {} }").has_value());
  EXPECT_FALSE(FormOf("dtype: INT64").has_value());
  EXPECT_FALSE(FormOf("dtype: FLOAT32").has_value());
  EXPECT_FALSE(FormOf("dtype: FLOAT32 transforms {}").has_value());
}

}  // namespace
}  // namespace systole
