// Compares our operations on images and labels with TensorFlow's results
// (tests/golden/tensorflow/README.md). Our results are made in two ways: by the reference
// operations alone (Program::Interpret), and as a feed makes them (ProgramRunner).
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_parser.h"
#include "core/numeric/bf16.h"
#include "core/operations/program.h"
#include "core/operations/program_runner.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/storage/memory_source.h"
#include "core/tensor/cast_int64s.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/core/operations/plain_cast.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr char kPath[] = "tests/golden/tensorflow/colour.tfrecord";  // From the top of the tree.

// A case as make_colour.py writes it.
struct Case {
  std::string name;
  std::string transforms;
  std::string type;
  std::vector<int64_t> shape;
  std::string input;
  ExampleKey example;
  std::string want_type;
  std::string want;

  std::string operation() const { return name.substr(0, name.find('/')); }
};

template <typename T>
std::vector<T> ElementsOf(const std::string& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

std::string TextOf(const ExampleView& example, absl::string_view name) {
  const absl::StatusOr<absl::string_view> text = example.Find(name).BytesAt(0);
  EXPECT_THAT(text, IsOk());
  return std::string(*text);
}

std::vector<int64_t> IntsOf(const ExampleView& example, absl::string_view name) {
  const FeatureView feature = example.Find(name);
  std::vector<int64_t> ints(static_cast<size_t>(feature.count()));
  EXPECT_THAT(feature.CopyInt64s(absl::MakeSpan(ints)), IsOk());
  return ints;
}

const std::vector<Case>& Cases() {
  static const std::vector<Case>* const cases = [] {
    auto* made = new std::vector<Case>();
    const MemorySource source(ReadWholeFile(kPath));
    absl::StatusOr<RecordReader> reader = RecordReader::Create(source);
    EXPECT_THAT(reader, IsOk());
    while (true) {
      const auto record = reader->Next();
      EXPECT_THAT(record, IsOk());
      if (!record.ok() || !record->has_value()) break;
      const absl::StatusOr<ExampleView> example = ExampleView::Parse(**record);
      EXPECT_THAT(example, IsOk());
      // One record has no case, but the version of TensorFlow.
      if (example->Find("case").kind() == FeatureKind::kMissing) continue;
      made->push_back({.name = TextOf(*example, "case"),
                       .transforms = TextOf(*example, "transforms"),
                       .type = TextOf(*example, "type"),
                       .shape = IntsOf(*example, "shape"),
                       .input = TextOf(*example, "input"),
                       .example = {.epoch = IntsOf(*example, "epoch").at(0),
                                   .record = IntsOf(*example, "record_id").at(0)},
                       .want_type = TextOf(*example, "want_type"),
                       .want = TextOf(*example, "want")});
    }
    return made;
  }();
  return *cases;
}

// The largest allowed difference from TensorFlow's values in the cases of an operation. All bits
// must be equal if the operation has no bound. parity_test checks the bounds that hold for all
// inputs.
struct Bound {
  double relative = 0;
  double absolute = 0;
  int levels = 0;  // Levels of uint8.
};

Bound BoundOf(const Case& one) {
  static const std::map<std::string, Bound> bounds = {
      // TensorFlow's x ^ gamma is off by up to a little more than an ulp, ours by up to half an
      // ulp. The multiplication by the gain rounds once more. The cast to uint8 rounds down, so an
      // error in the last bit may change the level.
      {"gamma", {.relative = 3e-7, .levels = 1}},
      // TensorFlow adds in float32, in an order that depends on its number of threads. Our sums are
      // float64. So TensorFlow's mean and deviation differ from ours in their last bits. If a value
      // is near the mean, its result is near 0. The relative difference may then be large, although
      // the absolute difference is small.
      {"per_image_standardization", {.relative = 1e-6, .absolute = 1e-6}},
  };
  const auto found = bounds.find(one.operation());
  return found == bounds.end() ? Bound() : found->second;
}

// Describes the first value of `got` that differs from the case's value by more than the bound.
// Returns "" if no value does.
std::string Compare(const Case& one, absl::Span<const uint8_t> got) {
  const Bound bound = BoundOf(one);
  const std::string bytes(got.begin(), got.end());
  if (bytes.size() != one.want.size()) {
    return absl::StrCat(bytes.size(), " bytes, want ", one.want.size());
  }
  if (one.want_type == "uint8") {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int ours = static_cast<uint8_t>(bytes[i]);
      const int theirs = static_cast<uint8_t>(one.want[i]);
      if (std::abs(ours - theirs) > bound.levels) {
        return absl::StrCat("value ", i, " is ", ours, ", want ", theirs);
      }
    }
    return "";
  }
  if (one.want_type == "int64") return bytes == one.want ? "" : "other values";
  const auto floats = [&one](const std::string& from) {
    if (one.want_type == "float32") return ElementsOf<float>(from);
    std::vector<float> wide;
    for (const uint16_t x : ElementsOf<uint16_t>(from)) wide.push_back(Bf16ToFloat(x));
    return wide;
  };
  const std::vector<float> ours = floats(bytes);
  const std::vector<float> theirs = floats(one.want);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (std::isnan(ours[i]) && std::isnan(theirs[i])) continue;
    if (std::bit_cast<uint32_t>(ours[i]) == std::bit_cast<uint32_t>(theirs[i])) continue;
    const double difference = std::abs(static_cast<double>(ours[i]) - theirs[i]);
    if (difference <= bound.absolute + bound.relative * std::abs(theirs[i])) continue;
    return absl::StrCat("value ", i, " of ", ours.size(), " is ", ours[i], ", want ", theirs[i],
                        ", difference ", difference);
  }
  return "";
}

DType WantedType(const Case& one) {
  if (one.want_type == "uint8") return DType::kUint8;
  if (one.want_type == "int64") return DType::kInt64;
  return one.want_type == "float32" ? DType::kFloat32 : DType::kBfloat16;
}

// The case's program and its input.
struct Compiled {
  std::shared_ptr<const Program> program;
  Value input;
};

std::optional<Compiled> Compile(const Case& one) {
  const bool is_uint8 = one.type == "uint8";
  v1::Output output;
  if (!google::protobuf::TextFormat::ParseFromString(
          absl::StrCat(is_uint8 ? "transforms { decode_raw {} } " : "", one.transforms), &output)) {
    ADD_FAILURE() << one.transforms;
    return std::nullopt;
  }
  Value input;
  if (is_uint8) {
    input.bytes = one.input;
  } else if (one.type == "float32") {
    input.type = {.element = ElementType::kFloat32, .shape = one.shape};
    input.floats = ElementsOf<float>(one.input);
  } else {
    input.type = {.element = ElementType::kInt64, .shape = one.shape};
    input.int64s = ElementsOf<int64_t>(one.input);
  }
  absl::StatusOr<Program> program = Program::Create(output.transforms(), input.type, one.shape);
  EXPECT_THAT(program, IsOk());
  if (!program.ok()) return std::nullopt;
  return Compiled{.program = std::make_shared<const Program>(*std::move(program)),
                  .input = std::move(input)};
}

TEST(TensorFlowColourTest, InterpreterMatchesTensorFlow) {
  std::map<std::string, int> seen;
  for (const Case& one : Cases()) {
    SCOPED_TRACE(absl::StrCat(one.name, " ", one.transforms));
    const std::optional<Compiled> compiled = Compile(one);
    if (!compiled.has_value()) continue;
    const absl::StatusOr<Value> value = compiled->program->Interpret(compiled->input, one.example);
    EXPECT_THAT(value, IsOk());
    if (!value.ok()) continue;
    std::vector<uint8_t> got(static_cast<size_t>(compiled->program->output().num_elements() *
                                                 DTypeBytes(WantedType(one))));
    if (one.want_type == "int64") {
      EXPECT_THAT(CastInt64s(value->int64s, DType::kInt64, absl::MakeSpan(got)), IsOk());
    } else {
      CastPlainly(*value, WantedType(one), absl::MakeSpan(got));
    }
    EXPECT_EQ(Compare(one, got), "");
    ++seen[one.operation()];
  }
  // The file must have cases of all these operations.
  for (const char* operation :
       {"contrast", "brightness", "saturation", "hue", "gamma", "grayscale", "cast", "bfloat16",
        "per_image_standardization", "clip_by_value", "one_hot", "label_map", "tf_seed"}) {
    EXPECT_GT(seen[operation], 0) << operation;
  }
}

TEST(TensorFlowColourTest, ProgramRunnerMatchesTensorFlow) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(absl::StrCat(one.name, " ", one.transforms));
    const std::optional<Compiled> compiled = Compile(one);
    if (!compiled.has_value()) continue;
    const LoweredProgram lowered = Lower(compiled->program, WantedType(one), /*read_soon=*/false);
    absl::StatusOr<ProgramRunner> runner = ProgramRunner::Create(lowered, nullptr);
    ASSERT_THAT(runner, IsOk());
    std::vector<uint8_t> got(static_cast<size_t>(compiled->program->output().num_elements() *
                                                 DTypeBytes(WantedType(one))));
    std::vector<uint8_t> pixels;
    EXPECT_THAT(runner->Run(lowered,
                            {.bytes = compiled->input.bytes,
                             .floats = compiled->input.floats,
                             .int64s = compiled->input.int64s},
                            one.example, pixels, absl::MakeSpan(got)),
                IsOk());
    EXPECT_EQ(Compare(one, got), "");
  }
}

}  // namespace
}  // namespace systole
