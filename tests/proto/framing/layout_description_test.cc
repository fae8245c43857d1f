#include "proto/framing/layout_description.h"

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;

SliceLayout Layout() {
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(
      {{.spec = {.name = "image", .dtype = DType::kBfloat16, .shape = {6, 5, 3, 4}},
        .batch_axis = 3},
       {.spec = {.name = "label", .dtype = DType::kInt64, .shape = {4}}},
       {.spec = {.name = "tiles", .dtype = DType::kBfloat16, .shape = {6, 5, 1, 1, 4, 128, 2}},
        .untiled_shape = {6, 5, 3, 4}},
       {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}},
       {.spec = {.name = "w", .dtype = DType::kFloat32, .shape = {4, 2}}},
       {.spec = {.name = "x", .dtype = DType::kInt32, .shape = {4}}}});
  EXPECT_THAT(layout, IsOk());
  return *std::move(layout);
}

TEST(ElementSpecTest, ALayoutSurvivesTheWire) {
  v1::ResolveFeedResponse response;
  response.add_tensors()->set_name("left over");
  DescribeLayout(Layout(), response);
  v1::ResolveFeedResponse received;
  ASSERT_TRUE(received.ParseFromString(response.SerializeAsString()));
  EXPECT_EQ(received.tensors(0).dtype(), v1::BFLOAT16);
  EXPECT_THAT(LayoutOf(received), IsOkAndHolds(testing::Eq(Layout())));
}

absl::Status LayoutWith(std::function<void(v1::ResolveFeedResponse&)> change) {
  v1::ResolveFeedResponse response;
  DescribeLayout(Layout(), response);
  change(response);
  return LayoutOf(response).status();
}

TEST(ElementSpecTest, InvalidLayoutDescriptionsAreRefused) {
  using R = v1::ResolveFeedResponse;
  const struct {
    const char* message;
    std::function<void(R&)> change;
  } kCases[] = {
      {"at least one tensor", [](R& r) { r.clear_tensors(); }},
      {"unknown type 0", [](R& r) { r.mutable_tensors(1)->set_dtype(v1::DATA_TYPE_UNSPECIFIED); }},
      {"unknown type 7",
       [](R& r) { r.mutable_tensors(1)->set_dtype(static_cast<v1::DataType>(7)); }},
      {"unknown type -1",
       [](R& r) { r.mutable_tensors(1)->set_dtype(static_cast<v1::DataType>(-1)); }},
      {"not in the order of names", [](R& r) { r.mutable_tensors()->SwapElements(0, 1); }},
      {"not in the order of names", [](R& r) { r.mutable_tensors(1)->set_name("image"); }},
      {"'valid' is missing", [](R& r) { r.mutable_tensors(3)->set_name("v"); }},
      {"'valid' must be uint8", [](R& r) { r.mutable_tensors(3)->set_dtype(v1::INT32); }},
      {"in tiles of [6,5,3] needs",
       [](R& r) { r.mutable_tensors(2)->mutable_untiled_shape()->RemoveLast(); }},
      {"in tiles of [6,5,3,4] is float32",
       [](R& r) { r.mutable_tensors(2)->set_dtype(v1::FLOAT32); }},
      {"want [6,5,2,1,4,128,2] and 0", [](R& r) { r.mutable_tensors(2)->set_untiled_shape(2, 9); }},
      {"want [6,5,1,1,4,128,2] and 0", [](R& r) { r.mutable_tensors(2)->set_shape(6, 3); }},
      {"holds 5 examples", [](R& r) { r.mutable_tensors(2)->set_untiled_shape(3, 5); }},
      {"batch axis 1", [](R& r) { r.mutable_tensors(0)->set_batch_axis(1); }},
      {"batch axis -1", [](R& r) { r.mutable_tensors(0)->set_batch_axis(-1); }},
      {"batch axis 4", [](R& r) { r.mutable_tensors(0)->set_batch_axis(4); }},
      {"dimension of 0", [](R& r) { r.mutable_tensors(0)->set_shape(0, 0); }},
      {"dimension of -5", [](R& r) { r.mutable_tensors(0)->set_shape(0, -5); }},
      {"larger than", [](R& r) { r.mutable_tensors(0)->set_shape(0, INT64_MAX); }},
      {"holds 5 examples", [](R& r) { r.mutable_tensors(1)->set_shape(0, 5); }},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT(LayoutWith(test.change),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.message)));
  }
}

TEST(ElementSpecTest, ATensorWithoutDimensionsIsRefused) {
  EXPECT_THAT(LayoutWith([](v1::ResolveFeedResponse& r) { r.mutable_tensors(1)->clear_shape(); }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("label")));
}

}  // namespace
}  // namespace systole
