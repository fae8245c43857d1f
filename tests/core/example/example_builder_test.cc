#include "core/example/example_builder.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/example/protobuf_oracle.h"

namespace systole {
namespace {

std::string ProtobufBytes(const testing::Example& example) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    example.SerializeToCodedStream(&coded);
  }
  return bytes;
}

TEST(ExampleBuilderTest, WritesTheBytesOfProtobuf) {
  const std::vector<int64_t> ints = {
      0, 1, -1, 127, 128, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  const std::vector<float> floats = {0.0f, -0.0f, 1.5f, std::numeric_limits<float>::infinity()};
  ExampleBuilder builder;
  builder.AddInt64s("ints", ints)
      .AddBytes("image", std::string(300, '\xff'))
      .AddFloats("floats", floats)
      .AddBytes("words", {"b", "", "a"})
      .AddBytes("", "nameless")
      .AddInt64s("no ints", {})
      .AddFloats("no floats", {})
      .AddBytes("no bytes", absl::Span<const absl::string_view>());

  testing::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["ints"].mutable_int64_list()->mutable_value()->Add(ints.begin(), ints.end());
  features["floats"].mutable_float_list()->mutable_value()->Add(floats.begin(), floats.end());
  features["image"].mutable_bytes_list()->add_value(std::string(300, '\xff'));
  for (const char* word : {"b", "", "a"}) features["words"].mutable_bytes_list()->add_value(word);
  features[""].mutable_bytes_list()->add_value("nameless");
  features["no ints"].mutable_int64_list();
  features["no floats"].mutable_float_list();
  features["no bytes"].mutable_bytes_list();
  EXPECT_EQ(builder.Serialize(), ProtobufBytes(example));
}

TEST(ExampleBuilderTest, WritesTheKnownBytesOfOneLabel) {
  EXPECT_EQ(ExampleBuilder().AddInt64s("l", {3}).Serialize(),
            "\x0a\x0c\x0a\x0a\x0a\x01l\x12\x05\x1a\x03\x0a\x01\x03");
}

TEST(ExampleBuilderTest, ABuilderWithoutFeaturesWritesAnEmptyRecord) {
  EXPECT_EQ(ExampleBuilder().Serialize(), "");
  EXPECT_EQ(DifferenceFromProtobuf(""), "");
}

TEST(ExampleBuilderTest, OrderOfAddingDoesNotMatter) {
  EXPECT_EQ(ExampleBuilder().AddBytes("a", "x").AddInt64s("b", {1}).Serialize(),
            ExampleBuilder().AddInt64s("b", {1}).AddBytes("a", "x").Serialize());
}

TEST(ExampleBuilderTest, ALaterFeatureReplacesAnEarlierOneOfTheSameName) {
  ExampleBuilder builder;
  builder.AddBytes("a", "x");
  const std::string before = builder.Serialize();
  builder.AddInt64s("a", {1});
  EXPECT_NE(builder.Serialize(), before);
  EXPECT_EQ(builder.Serialize(), ExampleBuilder().AddInt64s("a", {1}).Serialize());
}

TEST(ExampleBuilderTest, SerializeAroundABytesValueGivesTheBytesOfSerialize) {
  for (const std::string name : {"a", "m", "z"}) {
    for (const size_t bytes : {0, 1, 120, 128, 16'300, 100'000}) {
      const std::string value(bytes, 'v');
      ExampleBuilder builder;
      builder.AddBytes("b", "text").AddInt64s("n", {1, 2, 300});
      const RecordAround around = builder.SerializeAround(name, bytes);
      builder.AddBytes(name, value);
      EXPECT_EQ(around.before + value + around.after, builder.Serialize());
      EXPECT_EQ(around.size() + bytes, builder.Serialize().size());
      // What the builder already has under this name does not count.
      EXPECT_EQ(builder.SerializeAround(name, bytes).before, around.before);
    }
  }
}

TEST(ExampleBuilderTest, SerializeAroundFloatsGivesTheBytesOfSerialize) {
  for (const size_t count : {1, 31, 32, 5000}) {
    const std::vector<float> values(count, 1.5f);
    ExampleBuilder builder;
    builder.AddBytes("b", "text");
    const RecordAround around =
        builder.SerializeAround("f", count * sizeof(float), FeatureKind::kFloat);
    builder.AddFloats("f", values);
    EXPECT_EQ(around.before +
                  std::string(reinterpret_cast<const char*>(values.data()), count * sizeof(float)) +
                  around.after,
              builder.Serialize());
  }
}

}  // namespace
}  // namespace systole
