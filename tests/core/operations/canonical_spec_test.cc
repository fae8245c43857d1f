#include "core/operations/canonical_spec.h"

#include <string>

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

TEST(CanonicalSpecTest, WrittenAndOmittedDefaultsHaveTheSameFingerprint) {
  const std::pair<const char*, const char*> same[] = {
      {"decode_jpeg {}", "decode_jpeg { channels: 3 }"},
      {"center_crop { height: 2 }", "center_crop { height: 2 fraction: 1 }"},
      {"random_resized_crop {}", "random_resized_crop { area_max: 1 area_min: 0.08 }"},
      {"normalize {}", "normalize { scale: 1 }"},
      {"rot90 {}", "rot90 { k: 1 }"},
      {"random_resized_crop {}", "random_resized_crop { rule: TORCHVISION attempts: 10 }"},
      {"random_resized_crop { rule: TF_DISTORTED_BOX }",
       "random_resized_crop { rule: TF_DISTORTED_BOX area_min: 0.05 aspect_max: 1.33 attempts: 100 "
       "min_object_covered: 0.1 }"},
      {"random_resized_crop { rule: TPU_RESNET }",
       "random_resized_crop { rule: TPU_RESNET area_min: 0.08 attempts: 10 }"},
      {"resize { height: 2 width: 3 }",
       "resize { height: 2 width: 3 method: BILINEAR sampling: HALF_PIXEL antialias: false }"}};
  for (const auto& [one, other] : same) EXPECT_EQ(FingerprintOf(one), FingerprintOf(other)) << one;
  const char* const others[] = {"decode_jpeg { channels: 1 }",
                                "center_crop { height: 3 }",
                                "random_flip {}",
                                "random_flip {} key: 'k'",
                                "random_resized_crop {}",
                                "random_resized_crop { rule: TF_DISTORTED_BOX }",
                                "random_resized_crop { rule: TPU_RESNET }",
                                "center_crop { rule: TPU_RESNET }",
                                "resize { method: AREA }",
                                "brightness { delta_max: 1 }"};
  for (const char* one : others) {
    for (const char* other : others) {
      EXPECT_EQ(FingerprintOf(one) == FingerprintOf(other), one == other) << one << other;
    }
  }
}

TEST(CanonicalSpecTest, CacheSettingsDoNotChangeTheFingerprint) {
  const auto fingerprint = [](const std::string& output) {
    return SpecFingerprint(FromText<v1::FeedSpec>("outputs { name: 'a' " + output + " }"));
  };
  EXPECT_EQ(fingerprint("cache: MEMORY"), fingerprint(""));
  EXPECT_EQ(fingerprint("cache: DISK"), fingerprint(""));
}

// A spec that writes out a default has the same canonical form as a spec that leaves it out.
TEST(CanonicalSpecTest, TheCanonicalFormHoldsTheDefaultValues) {
  const std::pair<const char*, const char*> forms[] = {
      {"random_resized_crop { height: 8 width: 9 }",
       "random_resized_crop { height: 8 width: 9 area_min: 0.08 area_max: 1 aspect_min: 0.75 "
       "aspect_max: 1.3333334 attempts: 10 }"},
      {"random_resized_crop { height: 8 width: 9 rule: TF_DISTORTED_BOX }",
       "random_resized_crop { height: 8 width: 9 area_min: 0.05 area_max: 1 aspect_min: 0.75 "
       "aspect_max: 1.33 attempts: 100 min_object_covered: 0.1 rule: TF_DISTORTED_BOX }"},
      {"center_crop { height: 8 width: 9 }", "center_crop { height: 8 width: 9 fraction: 1 }"},
      {"resize { height: 8 width: 9 }", "resize { height: 8 width: 9 }"},
      {"decode_jpeg { scale: FULL }", "decode_jpeg { channels: 3 }"},
      {"decode_jpeg { scale: AUTO }", "decode_jpeg { channels: 3 scale: AUTO }"},
  };
  for (const auto& [written, canonical] : forms) {
    v1::FeedSpec spec;
    const auto transform = FromText<v1::Transform>(written);
    *spec.add_outputs()->add_transforms() = transform;
    EXPECT_EQ(CanonicalSpec(spec).outputs(0).transforms(0).SerializeAsString(),
              FromText<v1::Transform>(canonical).SerializeAsString())
        << written;
  }
}

TEST(CanonicalSpecTest, OmittedNumCoresMeansOneCore) {
  EXPECT_EQ(SpecFingerprint(FromText<v1::FeedSpec>("global_batch: 4")),
            SpecFingerprint(FromText<v1::FeedSpec>("global_batch: 4 num_cores: 1")));
}

TEST(CanonicalSpecTest, MixtureWeightsOfEqualRatiosHaveTheSameFingerprint) {
  const auto fingerprint = [](const std::string& weights) {
    return SpecFingerprint(FromText<v1::FeedSpec>(
        "mixture { dataset: 'a' weight: 3 } mixture { dataset: 'b' weight: 6 } " + weights));
  };
  const uint64_t first = fingerprint("weights { from_step: 5 weights: [0, 4] }");
  EXPECT_EQ(fingerprint("weights { from_step: 0 weights: [1, 2] } "
                        "weights { from_step: 5 weights: [0, 1] }"),
            first);
  EXPECT_EQ(fingerprint("weights { from_example: 0 weights: [1, 2] } "
                        "weights { from_step: 5 weights: [0, 1] }"),
            first);
  EXPECT_NE(fingerprint("weights { from_step: 5 weights: [4, 0] }"), first);
  EXPECT_NE(fingerprint("weights { from_example: 5 weights: [0, 4] }"), first);
  EXPECT_NE(fingerprint("weights { from_example: 5 weights: [0, 4] }"),
            fingerprint("weights { weights: [0, 4] }"));
  EXPECT_NE(fingerprint("weights { from_step: 6 weights: [0, 4] }"), first);
  EXPECT_NE(fingerprint(""), first);
}

TEST(CanonicalSpecTest, CanonicalSpecSortsOutputsAndIsIdempotent) {
  const v1::FeedSpec once =
      CanonicalSpec(FromText<v1::FeedSpec>("outputs { name: 'b' transforms { random_resized_crop "
                                           "{} } } outputs { name: 'a' } "
                                           "shuffle { block_records: 3 }"));
  EXPECT_EQ(CanonicalSpec(once).SerializeAsString(), once.SerializeAsString());
  EXPECT_EQ(once.outputs(0).name(), "a");
}

}  // namespace
}  // namespace systole
