// Tests the values that a trainer gets from every operation, with every parameter and every type of
// output, through a server process and through LocalFeed. The bytes must be those that the
// interpreter (Program::Interpret) makes. The cases come from the table of operations, so a new row
// is tested without a new test.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/feed/feed_client.h"
#include "client/local/local_feed.h"
#include "core/dataset/dataset.h"
#include "core/example/example_builder.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "core/operations/data_type.h"
#include "core/operations/ops/operation_table.h"
#include "core/operations/program.h"
#include "core/plan/feed_plan.h"
#include "core/status/check.h"
#include "core/tensor/cast_int64s.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "systole/v1/feed.pb.h"
#include "tests/core/image/png/png_builder.h"
#include "tests/core/operations/plain_cast.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr int kRecords = 3;
constexpr uint64_t kSeed = 5;
constexpr int kHeight = 12;
constexpr int kWidth = 10;
// Heights and widths in the examples of the table are reduced to each of these edges. The edge 9 is
// smaller than the images, and 16 is larger.
constexpr int kEdges[] = {9, 16};
constexpr int kMaxOffset = 1;

// The contents of a record. The values differ from record to record.
struct Record {
  std::string jpeg, png, bytes;
  std::vector<int64_t> ints;
  std::vector<float> floats;
};

Record RecordOf(int number) {
  Record record;
  std::vector<uint8_t> pixels;
  for (int i = 0; i < kHeight * kWidth * 3; ++i) {
    pixels.push_back(static_cast<uint8_t>(i * i * 7 + number * 50 + i / 9));
  }
  record.jpeg = EncodeJpeg(pixels, kWidth, kHeight, 3).value();
  record.bytes.assign(pixels.begin(), pixels.end());
  record.png = PngOf(record.bytes, kWidth, kHeight, 3);
  for (int i = 0; i < 6; ++i) record.ints.push_back((i + number) % 4);
  for (int i = 0; i < kHeight * kWidth * 3; ++i) {
    record.floats.push_back(static_cast<float>((i * 37 + number) % 300) / 1.5f - 20);
  }
  return record;
}

std::string Serialize(const Record& record) {
  std::string raw_floats(record.floats.size() * sizeof(float), '\0');
  std::copy_n(reinterpret_cast<const char*>(record.floats.data()), raw_floats.size(),
              raw_floats.data());
  return ExampleBuilder()
      .AddBytes("jpeg", record.jpeg)
      .AddBytes("png", record.png)
      .AddBytes("bytes", record.bytes)
      .AddBytes("raw_floats", raw_floats)
      .AddInt64s("ints", record.ints)
      .AddFloats("floats", record.floats)
      .Serialize();
}

// The input of the transform under test: a feature, or the result of other transforms.
struct Beginning {
  std::string feature;
  std::string transforms;
  std::vector<int64_t> shape;
  ElementType stored = ElementType::kBytes;
  // If true, only the example of the table is tested after this beginning, without variants. The
  // reason is that a feed has room for only few images of unknown size.
  bool only_example = false;
};

std::vector<Beginning> Beginnings() {
  const std::vector<int64_t> image = {kHeight, kWidth, 3};
  return {
      {"jpeg", "", {}},
      {"png", "", {}},
      {"bytes", "", image},
      {"raw_floats", "", image},
      {"bytes", "", {kHeight * kWidth * 3 / 2}},
      {"jpeg", "transforms { decode_jpeg {} }", {}, ElementType::kBytes, /*only_example=*/true},
      {"bytes", "transforms { decode_raw {} }", image},
      {"bytes", "transforms { decode_raw { stored: UINT16 } }", {kHeight * kWidth * 3 / 2}},
      {"raw_floats", "transforms { decode_raw { stored: FLOAT32 } }", image},
      {"floats", "", image, ElementType::kFloat32},
      {"ints", "", {6}, ElementType::kInt64},
  };
}

ValueType TypeOf(const Beginning& beginning) {
  if (beginning.stored == ElementType::kBytes) return {};
  return {.element = beginning.stored, .shape = beginning.shape};
}

Value ValueOf(const Beginning& beginning, const Record& record) {
  Value value;
  value.type = TypeOf(beginning);
  if (beginning.feature == "jpeg") value.bytes = record.jpeg;
  if (beginning.feature == "png") value.bytes = record.png;
  if (beginning.feature == "bytes") value.bytes = record.bytes;
  if (beginning.feature == "raw_floats") {
    value.bytes = absl::string_view(reinterpret_cast<const char*>(record.floats.data()),
                                    record.floats.size() * sizeof(float));
  }
  if (beginning.feature == "floats") value.floats = record.floats;
  if (beginning.feature == "ints") value.int64s = record.ints;
  return value;
}

// The message of the transform's operation.
Message* OperationOf(v1::Transform& transform) {
  const FieldDescriptor* const field =
      v1::Transform::descriptor()->FindFieldByNumber(static_cast<int>(transform.kind_case()));
  return transform.GetReflection()->MutableMessage(&transform, field);
}

// The values that the tests give to a field, as textproto.
std::vector<std::string> ValuesFor(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM: {
      std::vector<std::string> names;
      for (int i = 0; i < field.enum_type()->value_count(); ++i) {
        names.push_back(field.enum_type()->value(i)->name());
      }
      return names;
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return {"false", "true"};
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return {"1", "2", "3"};
    default:
      return {"0.25", "0.5", "1", "2"};
  }
}

// Sets each of the named fields to `most` if its value is larger.
void CutDown(Message& operation, std::initializer_list<const char*> names, int32_t most) {
  for (const char* name : names) {
    const FieldDescriptor* const field = operation.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    const int32_t value = operation.GetReflection()->GetInt32(operation, field);
    operation.GetReflection()->SetInt32(&operation, field, std::min(value, most));
  }
}

// Adds variants of `example`. For each parameter, adds one variant without the parameter, and some
// variants with other values of the parameter.
void AddVariants(const v1::Transform& example, std::vector<v1::Transform>& variants) {
  v1::Transform copy = example;
  const Message& operation = *OperationOf(copy);
  for (int i = 0; i < operation.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *operation.GetDescriptor()->field(i);
    v1::Transform without = example;
    OperationOf(without)->GetReflection()->ClearField(OperationOf(without), &field);
    variants.push_back(without);
    for (const std::string& value : ValuesFor(field)) {
      for (const int count : field.is_repeated() ? std::vector<int>{1, 3} : std::vector<int>{1}) {
        std::string text;
        for (int n = 0; n < count; ++n) absl::StrAppend(&text, field.name(), ": ", value, " ");
        SYSTOLE_CHECK(google::protobuf::TextFormat::MergeFromString(
            text, OperationOf(variants.emplace_back(without))));
      }
    }
  }
}

// Returns the example of the row, cut down to each edge of kEdges, and the variants of each of
// these examples. A variant differs from its example in one field.
std::vector<v1::Transform> VariantsOf(const OperationRow& row) {
  std::vector<v1::Transform> variants;
  for (const int edge : kEdges) {
    v1::Transform example;
    SYSTOLE_CHECK(
        google::protobuf::TextFormat::ParseFromString(std::string(row.guide.example), &example));
    CutDown(*OperationOf(example), {"height", "width"}, edge);
    CutDown(*OperationOf(example), {"offset_height", "offset_width"}, kMaxOffset);
    variants.push_back(example);
    AddVariants(example, variants);
    if (row.draws != 0) variants.emplace_back(example).set_key("another");
    if (!row.tensorflow_draws) continue;
    v1::Transform& seeded = variants.emplace_back(example);
    seeded.add_tf_seed(3);
    seeded.add_tf_seed(4);
  }
  return variants;
}

// The types in which an output can ask for the result of a program.
std::vector<v1::DataType> TypesFor(const Beginning& beginning, const ValueType& made) {
  std::vector<v1::DataType> types;
  for (int i = 0; i < v1::DataType_descriptor()->value_count(); ++i) {
    const auto type = static_cast<v1::DataType>(v1::DataType_descriptor()->value(i)->number());
    const bool whole = type == v1::INT32 || type == v1::INT64;
    const bool good =
        made.element == ElementType::kInt64
            ? whole
            : IsFloat(type) || (type == v1::UINT8 && (beginning.stored != ElementType::kFloat32 ||
                                                      made.element == ElementType::kUint8));
    if (good) types.push_back(type);
  }
  return types;
}

// An output, and its bytes in a batch of all records.
struct Case {
  v1::Output output;
  std::string bytes;
};

// Returns nullopt if the interpreter finds a damaged record.
std::optional<std::string> InterpretedBytes(const Program& program, const Beginning& beginning,
                                            v1::DataType type) {
  std::string all;
  for (int number = 0; number < kRecords; ++number) {
    const Record record = RecordOf(number);
    const absl::StatusOr<Value> value = program.Interpret(
        ValueOf(beginning, record), {.seed = kSeed, .epoch = 0, .record = number});
    if (!value.ok()) return std::nullopt;
    const auto dtype = static_cast<DType>(type);
    std::string bytes(static_cast<size_t>(value->type.num_elements() * DTypeBytes(dtype)), '\0');
    const absl::Span<uint8_t> out(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
    if (value->type.element == ElementType::kInt64) {
      SYSTOLE_CHECK(CastInt64s(value->int64s, dtype, out).ok());
    } else {
      CastPlainly(*value, dtype, out);
    }
    all += bytes;
  }
  return all;
}

// The fields of an operation that no case has set. Each value of an enumeration counts as a field.
class Untried {
 public:
  explicit Untried(const OperationRow& row) {
    v1::Transform transform;
    const FieldDescriptor* const kind =
        v1::Transform::descriptor()->FindFieldByNumber(static_cast<int>(row.kind));
    for (int i = 0; i < kind->message_type()->field_count(); ++i) {
      const FieldDescriptor& field = *kind->message_type()->field(i);
      if (field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
        names_.insert(field.name());
        continue;
      }
      for (const std::string& value : ValuesFor(field)) {
        if (field.enum_type() == v1::DataType_descriptor() && !Takes(row, value)) continue;
        names_.insert(field.name() + ": " + value);
      }
    }
    if (row.draws != 0) names_.insert("key");
    if (row.tensorflow_draws) names_.insert("tf_seed");
    names_.insert("");  // The operation itself.
  }

  // Whether `transform` sets a field that no case has set yet.
  bool Has(const v1::Transform& transform) const {
    const std::set<std::string> set = NamesIn(transform);
    return std::any_of(set.begin(), set.end(),
                       [this](const std::string& name) { return names_.contains(name); });
  }
  void Remove(const v1::Transform& transform) {
    for (const std::string& name : NamesIn(transform)) names_.erase(name);
  }

  const std::set<std::string>& names() const { return names_; }

 private:
  // Whether the operation can give values of type `dtype`.
  static bool Takes(const OperationRow& row, const std::string& dtype) {
    v1::Transform transform;
    const std::string text = absl::StrCat(OperationName(row.kind), " { dtype: ", dtype, " }");
    SYSTOLE_CHECK(google::protobuf::TextFormat::ParseFromString(text, &transform));
    return row
        .create({.transform = transform, .draws = Draws(row.draws, 0, ""), .stored_shape = {}})
        .ok();
  }

  static std::set<std::string> NamesIn(v1::Transform transform) {
    std::set<std::string> names = {""};  // The operation itself.
    if (!transform.key().empty()) names.insert("key");
    if (transform.tf_seed_size() > 0) names.insert("tf_seed");
    const Message& operation = *OperationOf(transform);
    for (int i = 0; i < operation.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *operation.GetDescriptor()->field(i);
      if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
        const EnumDescriptor& values = *field.enum_type();
        const int number = operation.GetReflection()->GetEnumValue(operation, &field);
        names.insert(field.name() + ": " + values.FindValueByNumber(number)->name());
      } else if (field.is_repeated() ? operation.GetReflection()->FieldSize(operation, &field) > 0
                                     : operation.GetReflection()->HasField(operation, &field)) {
        names.insert(field.name());
      }
    }
    return names;
  }

  std::set<std::string> names_;
};

// Applies `transform` after `beginning`. Returns a case for each type in which an output can ask
// for the result, or only for the first of these types (kOne). Returns no case if the transform
// does not fit after `beginning`, or finds a damaged record.
enum class Types { kAll, kOne };
std::vector<Case> CasesOf(const Beginning& beginning, const v1::Transform& transform, Types types) {
  v1::Output output;
  SYSTOLE_CHECK(google::protobuf::TextFormat::ParseFromString(beginning.transforms, &output));
  output.set_feature(beginning.feature);
  for (const int64_t size : beginning.shape) output.add_shape(size);
  *output.add_transforms() = transform;
  const auto program = [&] {
    return Program::Create(output.transforms(), TypeOf(beginning), beginning.shape);
  };
  absl::StatusOr<Program> made = program();
  if (!made.ok() || made->output().element == ElementType::kBytes) return {};
  if (!made->output().has_size()) {
    v1::CropOrPad& size = *output.add_transforms()->mutable_crop_or_pad();
    size.set_height(kEdges[0]);
    size.set_width(kEdges[0]);
    made = program();
    if (!made.ok()) return {};
  }
  std::vector<Case> cases;
  for (const v1::DataType type : TypesFor(beginning, made->output())) {
    std::optional<std::string> bytes = InterpretedBytes(*made, beginning, type);
    if (!bytes.has_value()) return {};
    output.set_dtype(type);
    cases.push_back({.output = output, .bytes = *std::move(bytes)});
    if (types == Types::kOne) break;
  }
  return cases;
}

// Returns the cases of a row. After every beginning that fits, the first example has a case for
// every type, and each variant has one case. If a parameter needs another parameter, a further case
// sets both.
std::vector<Case> CasesOf(const OperationRow& row) {
  std::vector<Case> cases;
  Untried untried(row);
  const auto add = [&](const Beginning& beginning, const v1::Transform& transform, Types types) {
    std::vector<Case> more = CasesOf(beginning, transform, types);
    if (more.empty()) return;
    untried.Remove(transform);
    cases.insert(cases.end(), more.begin(), more.end());
  };
  const std::vector<v1::Transform> variants = VariantsOf(row);
  for (const Beginning& beginning : Beginnings()) {
    add(beginning, variants[0], Types::kAll);
    if (beginning.only_example) continue;
    for (size_t i = 1; i < variants.size(); ++i) add(beginning, variants[i], Types::kOne);
  }
  for (size_t i = 0; i < variants.size() && !untried.names().empty(); ++i) {
    std::vector<v1::Transform> pairs;
    AddVariants(variants[i], pairs);
    for (const v1::Transform& pair : pairs) {
      for (const Beginning& beginning : Beginnings()) {
        if (untried.Has(pair)) add(beginning, pair, Types::kOne);
      }
    }
  }
  EXPECT_THAT(untried.names(), testing::IsEmpty())
      << OperationName(row.kind) << ": no case sets these fields; add values to ValuesFor() or "
      << "Beginnings()";
  return cases;
}

std::string BytesOf(const Step& step, const std::string& tensor) {
  const absl::Span<const uint8_t> bytes = step.Tensor(0, tensor).bytes();
  return std::string(bytes.begin(), bytes.end());
}

// Expects that the feed's only step has the bytes that the interpreter made.
void ExpectAll(absl::string_view way, Feed& feed, const std::vector<Case>& cases) {
  const absl::StatusOr<std::optional<Step>> step = feed.Next();
  ASSERT_THAT(step, IsOk()) << way;
  ASSERT_TRUE(step->has_value());
  for (const Case& one : cases) {
    EXPECT_TRUE(BytesOf(**step, one.output.name()) == one.bytes)
        << way << " differs from the interpreter: " << one.output.ShortDebugString();
  }
}

class OperationsTest : public testing::Test {
 protected:
  OperationsTest() {
    ShardBuilder shard;
    for (int number = 0; number < kRecords; ++number) shard.Add(Serialize(RecordOf(number)));
    folder_.Write("a.tfrecord", shard.Build());
    const std::string path = folder_ / "a.tfrecord";
    absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start({"--dataset", absl::StrCat("test=", path)});
    EXPECT_THAT(server, IsOk());
    server_ = *std::move(server);
    dataset_ = Dataset::Open("test", {path}).value();
  }

  // Feeds the cases through the server and through LocalFeed, with as many outputs at a time as a
  // spec may have. The plan counts an image of unknown size as one of the largest size, so only few
  // outputs with such images fit into a spec.
  void ExpectFed(const std::vector<Case>& cases) {
    v1::FeedSpec spec;
    spec.set_dataset("test");
    spec.set_seed(kSeed);
    spec.set_epochs(1);
    spec.set_global_batch(kRecords);
    std::vector<Case> some;
    for (const Case& one : cases) {
      v1::FeedSpec larger = spec;
      some.push_back(one);
      some.back().output.set_name(absl::StrCat("case", some.size()));
      *larger.add_outputs() = some.back().output;
      if (some.size() > 1 && !FeedPlan::Create(larger, dataset_).ok()) {
        some.pop_back();
        ExpectFed(spec, some);
        spec.clear_outputs();
        some = {one};
        some.back().output.set_name("case1");
        *spec.add_outputs() = some.back().output;
      } else {
        spec = std::move(larger);
      }
    }
    ExpectFed(spec, some);
  }

  void ExpectFed(const v1::FeedSpec& spec, const std::vector<Case>& cases) {
    const auto served = FeedClient::Create(spec, {.servers = {server_->address()}});
    ASSERT_THAT(served, IsOk()) << spec.ShortDebugString();
    ExpectAll("the server", **served, cases);
    const auto local = LocalFeed::Create(spec, dataset_, {});
    ASSERT_THAT(local, IsOk());
    ExpectAll("LocalFeed", **local, cases);
  }

  TempFolder folder_;
  std::unique_ptr<ServerProcess> server_;
  std::shared_ptr<const Dataset> dataset_;
};

TEST_F(OperationsTest, EveryOperationParameterAndTypeFeedsWhatTheInterpreterMakes) {
  for (const OperationRow& row : Operations()) {
    SCOPED_TRACE(OperationName(row.kind));
    ExpectFed(CasesOf(row));
  }
}

}  // namespace
}  // namespace systole
