// Compares our reading of an Example with protobuf's, for the differential test and the fuzzer.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_EXAMPLE_PROTOBUF_ORACLE_H_
#define SYSTOLE_TESTS_CORE_EXAMPLE_PROTOBUF_ORACLE_H_

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/example/example_parser.h"
#include "tests/core/example/example.pb.h"

namespace systole {

// Returns "" if `view` holds the same as `feature`, otherwise the difference.
inline std::string DifferenceOf(const FeatureView& view, const testing::Feature& feature) {
  switch (feature.kind_case()) {
    case testing::Feature::KIND_NOT_SET:
      return view.kind() == FeatureKind::kMissing && view.count() == 0 ? "" : "kind, want missing";
    case testing::Feature::kBytesList: {
      const auto& values = feature.bytes_list().value();
      if (view.kind() != FeatureKind::kBytes) return "kind, want bytes";
      if (view.count() != values.size()) return "bytes count";
      // Each look-up walks the list. So in a long list only some values are compared: the first 20,
      // then every 17th, and the last few.
      for (int i = 0; i < values.size(); i += (i < 20 || i + 20 > values.size()) ? 1 : 17) {
        const absl::StatusOr<absl::string_view> value = view.BytesAt(i);
        if (!value.ok() || *value != values[i]) return absl::StrCat("bytes value ", i);
      }
      return view.BytesAt(values.size()).ok() ? "bytes value beyond the end" : "";
    }
    case testing::Feature::kFloatList: {
      const auto& values = feature.float_list().value();
      if (view.kind() != FeatureKind::kFloat) return "kind, want float";
      if (view.count() != values.size()) return "float count";
      std::vector<float> copy(values.size());
      if (!view.CopyFloats(absl::MakeSpan(copy)).ok()) return "CopyFloats";
      const bool same =
          copy.empty() || std::memcmp(copy.data(), values.data(), 4 * copy.size()) == 0;
      return same ? "" : "float values";
    }
    case testing::Feature::kInt64List: {
      const auto& values = feature.int64_list().value();
      if (view.kind() != FeatureKind::kInt64) return "kind, want int64";
      if (view.count() != values.size()) return "int64 count";
      std::vector<int64_t> copy(values.size());
      if (!view.CopyInt64s(absl::MakeSpan(copy)).ok()) return "CopyInt64s";
      return std::equal(copy.begin(), copy.end(), values.begin()) ? "" : "int64 values";
    }
  }
  return "kind case";
}

// Returns "" if protobuf and our parser both refuse `record`, or if both accept it and see the same
// features. Otherwise returns the difference.
inline std::string DifferenceFromProtobuf(absl::string_view record) {
  const google::protobuf::LogSilencer silence;  // protobuf logs names that are not UTF-8.
  testing::Example example;
  const bool accepted = example.ParseFromArray(record.data(), static_cast<int>(record.size()));
  const absl::StatusOr<ExampleView> view = ExampleView::Parse(record);
  if (accepted != view.ok()) {
    return accepted ? absl::StrCat("protobuf accepts, we say: ", view.status().message())
                    : "protobuf refuses, we accept";
  }

  // ExampleParser must accept the same records as ExampleView, and find the same values.
  const std::map<std::string, testing::Feature> wanted(example.features().feature().begin(),
                                                       example.features().feature().end());
  std::vector<std::string> names = {"a name that no record has"};
  for (const auto& [name, feature] : wanted) names.push_back(name);
  const absl::StatusOr<ExampleParser> parser = ExampleParser::Create(names);
  if (!parser.ok()) return "Create";
  std::vector<FeatureView> chosen(names.size());
  MadeText made;
  if (parser->Parse(TensorFlowExample(), record, made, absl::MakeSpan(chosen)).ok() != accepted)
    return "Parse";
  if (!accepted) return "";

  const std::vector<FeatureView> features = view->Features();
  if (features.size() != wanted.size()) return "number of features";
  if (chosen[0].kind() != FeatureKind::kMissing) return "a feature that is not there";
  size_t i = 0;
  for (const auto& [name, feature] : wanted) {
    if (features[i].name() != name || chosen[i + 1].name() != name) return "name";
    for (const FeatureView& seen : {features[i], chosen[i + 1], view->Find(name)}) {
      if (std::string what = DifferenceOf(seen, feature); !what.empty()) {
        return absl::StrCat("feature \"", name, "\": ", what);
      }
    }
    ++i;
  }
  return "";
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_EXAMPLE_PROTOBUF_ORACLE_H_
