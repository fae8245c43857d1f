#include "core/engine/kept_bytes.h"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

// An image whose values count up, from 1 (uint8) or 1.5 (float32).
Value ImageOf(ElementType element, std::vector<int64_t> shape) {
  Value image = Value::Create(element, std::move(shape));
  std::iota(image.uint8s.begin(), image.uint8s.end(), uint8_t{1});
  std::iota(image.floats.begin(), image.floats.end(), 1.5f);
  return image;
}

absl::string_view BytesOf(const Value& image) {
  return image.type.element == ElementType::kUint8
             ? absl::string_view(reinterpret_cast<const char*>(image.uint8s.data()),
                                 image.uint8s.size())
             : absl::string_view(reinterpret_cast<const char*>(image.floats.data()),
                                 image.floats.size() * sizeof(float));
}

TEST(KeptBytesTest, ACachedImageHasASizeHeaderOnlyIfItsSizeVaries) {
  for (const ElementType element : {ElementType::kUint8, ElementType::kFloat32}) {
    const Value image = ImageOf(element, {5, 4, 3});
    const ValueType varying = {.element = element, .shape = {kAnySize, kAnySize, 3}};
    for (const ValueType& type : {image.type, varying}) {
      const std::string kept = ToKept(image, type);
      EXPECT_EQ(kept.size(), BytesOf(image).size() + (type.has_size() ? 0 : 12));
      EXPECT_EQ(KeptBytes({.width = 4, .height = 5}, type), static_cast<int64_t>(kept.size()));
      const auto parsed = ParseKept(kept, type);
      ASSERT_TRUE(parsed.has_value());
      EXPECT_EQ(parsed->shape, image.type.shape);
      EXPECT_EQ(parsed->values, BytesOf(image));
    }
  }
}

TEST(KeptBytesTest, InvalidCachedBytesAreNotParsedAsAnImage) {
  const Value image = ImageOf(ElementType::kUint8, {5, 4, 3});
  const ValueType varying = {.element = ElementType::kUint8, .shape = {kAnySize, kAnySize, 3}};
  const std::string kept = ToKept(image, varying);
  const std::vector<std::string> others = {"",
                                           kept.substr(0, 11),
                                           kept.substr(1),
                                           kept + "x",
                                           ToKept(ImageOf(ElementType::kUint8, {5, 4, 1}), varying),
                                           std::string(12, '\0'),
                                           std::string(kept.size(), '\xff')};
  for (const std::string& other : others) EXPECT_FALSE(ParseKept(other, varying).has_value());
  EXPECT_FALSE(ParseKept(kept, image.type).has_value());
}

TEST(KeptBytesTest, IsKeptRequiresTheExactSizeOfAFinishedExample) {
  const KeptForm form = {.value = {.finished = true, .cost = {.bytes = 6}}};
  EXPECT_TRUE(IsKept("sixsix", form));
  EXPECT_FALSE(IsKept("five!", form));
  EXPECT_FALSE(IsKept("sevenxx", form));
}

}  // namespace
}  // namespace systole
