// Compares how our parser and TensorFlow's parsers read odd records. These records are in
// tests/golden/tensorflow/examples.tfrecord, each with TensorFlow's results. make_examples.py
// beside this file of records shows how the file was made. core/example/README.md describes the
// differences.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_parser.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/storage/local/file_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

// The values of a list of numbers, or nothing if the record is refused.
using Answer = std::optional<std::vector<double>>;

std::vector<double> Values(const FeatureView& feature) {
  const auto count = static_cast<size_t>(feature.count());
  if (feature.kind() == FeatureKind::kFloat) {
    std::vector<float> values(count);
    EXPECT_THAT(feature.CopyFloats(absl::MakeSpan(values)), IsOk());
    return {values.begin(), values.end()};
  }
  std::vector<int64_t> values(count);
  if (count == 0) return {};  // The feature may have no kind.
  EXPECT_THAT(feature.CopyInt64s(absl::MakeSpan(values)), IsOk());
  return {values.begin(), values.end()};
}

// The result of TensorFlow's parser `name` ("single" or "batch") that the case `odd` holds.
Answer TensorFlows(const ExampleView& odd, absl::string_view name) {
  const std::vector<FeatureView> features = odd.Features();
  const bool read = std::any_of(features.begin(), features.end(),
                                [&](const FeatureView& feature) { return feature.name() == name; });
  if (!read) return std::nullopt;
  return Values(odd.Find(name));
}

// Our result for an output that needs the feature "x" as a list of this kind.
Answer Ours(absl::string_view record, FeatureKind kind) {
  const absl::StatusOr<ExampleView> example = ExampleView::Parse(record);
  if (!example.ok()) return std::nullopt;
  const FeatureView feature = example->Find("x");
  if (feature.kind() != FeatureKind::kMissing && feature.kind() != kind) return std::nullopt;
  return Values(feature);
}

struct Differences {
  std::vector<std::string> refused_there;
  std::vector<std::string> refused_here;
  std::vector<std::string> read_otherwise;
  size_t alike = 0;
};

Differences CompareAll() {
  Differences found;
  const auto source = FileSource::Open("tests/golden/tensorflow/examples.tfrecord");
  EXPECT_THAT(source, IsOk());
  absl::StatusOr<RecordReader> reader = RecordReader::Create(**source);
  EXPECT_THAT(reader, IsOk());
  while (true) {
    const auto record = reader->Next();
    EXPECT_THAT(record, IsOk());
    if (!record.ok() || !record->has_value()) return found;
    const absl::StatusOr<ExampleView> odd = ExampleView::Parse(**record);
    EXPECT_THAT(odd, IsOk());
    const std::string name(*odd->Find("case").BytesAt(0));
    const Answer ours =
        Ours(*odd->Find("record").BytesAt(0),
             *odd->Find("kind").BytesAt(0) == "float" ? FeatureKind::kFloat : FeatureKind::kInt64);
    const Answer single = TensorFlows(*odd, "single");
    const Answer batch = TensorFlows(*odd, "batch");
    if (ours == single && ours == batch) {
      ++found.alike;
    } else if (ours.has_value() && !single.has_value() && !batch.has_value()) {
      found.refused_there.push_back(name);
    } else if (!ours.has_value()) {
      found.refused_here.push_back(name);
    } else {
      found.read_otherwise.push_back(name);
    }
  }
}

// The names of all cases that have an unknown field, of any type, in one of `places`.
std::vector<std::string> WithUnknownField(const std::vector<std::string>& places) {
  std::vector<std::string> names;
  for (const char* const field : {"a number", "bytes", "four bytes", "a group"}) {
    for (const std::string& place : places) {
      names.push_back(absl::StrCat("an unknown field, ", field, ", in ", place));
    }
  }
  return names;
}

TEST(TensorFlowExamplesTest, OddRecordsAreReadLikeTensorFlowExceptForListedCases) {
  const Differences found = CompareAll();
  std::vector<std::string> refused_there =
      WithUnknownField({"the Features", "an entry before the name", "an entry after the value",
                        "a Feature before the list", "a list before the values"});
  refused_there.insert(refused_there.end(),
                       {"lists of two kinds, the wanted one last", "a value without a name",
                        "a name without a value", "the wanted name without a value",
                        "an entry of no bytes", "two names in an entry", "two values in an entry",
                        "an unknown field, a group, in the Example"});
  EXPECT_THAT(found.refused_there, UnorderedElementsAreArray(refused_there));
  EXPECT_THAT(
      found.refused_here,
      UnorderedElementsAre("lists of two kinds, the wanted one first",
                           "packed floats that end within one", "a feature beside it that is cut",
                           "a feature beside it with an odd value", "field number 0"));
  EXPECT_THAT(found.read_otherwise,
              UnorderedElementsAre(
                  "a name twice, last without a list", "values packed and not packed",
                  "values packed twice", "floats packed and not packed", "a list in two pieces",
                  "the wanted kind before and after another", "a tag in more bytes than it needs"));
  EXPECT_EQ(found.alike, 34);
}

}  // namespace
}  // namespace systole
