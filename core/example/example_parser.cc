#include "core/example/example_parser.h"

#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {

ExampleParser::ExampleParser(std::vector<std::string> names) : names_(std::move(names)) {
  for (size_t i = 0; i < names_.size(); ++i) index_.emplace(names_[i], i);
}

absl::StatusOr<ExampleParser> ExampleParser::Create(std::vector<std::string> names) {
  ExampleParser parser(std::move(names));
  for (size_t i = 0; i < parser.names_.size(); ++i) {
    if (parser.index_.at(parser.names_[i]) != i) {
      return absl::InvalidArgumentError(absl::StrCat("feature \"", ForeignName(parser.names_[i]),
                                                     "\" is asked for twice; want each name once"));
    }
  }
  return parser;
}

absl::Status ExampleParser::Parse(const ExampleFormat& format, absl::string_view record,
                                  MadeText& made, absl::Span<FeatureView> out) const {
  SYSTOLE_CHECK(out.size() == names_.size());
  for (size_t i = 0; i < names_.size(); ++i) out[i] = FeatureView(names_[i]);
  return format.Decode(record, made, [&](const FeatureView& feature) {
    const auto found = index_.find(feature.name());
    if (found != index_.end()) out[found->second] = feature;  // The last feature of a name wins.
  });
}

absl::StatusOr<ExampleView> ExampleView::Parse(absl::string_view record,
                                               const ExampleFormat& format) {
  ExampleView view(record, format);
  MadeText made;  // Freed when this function returns, because no feature is used after that.
  SYSTOLE_RETURN_IF_ERROR(format.Decode(record, made, [](const FeatureView&) {}));
  return view;
}

void ExampleView::Decode(absl::FunctionRef<void(const FeatureView&)> visit) const {
  SYSTOLE_CHECK(format_->Decode(record_, made_, visit).ok());  // Parse() checked the record.
}

FeatureView ExampleView::Find(absl::string_view name) const {
  FeatureView found(name);
  Decode([&](const FeatureView& feature) {
    if (feature.name() == name) found = feature;
  });
  return found;
}

std::vector<FeatureView> ExampleView::Features() const {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  return Features(kAll, kAll);
}

std::vector<FeatureView> ExampleView::FirstFeatures() const {
  return Features(kMaxFirstFeatures, kMaxFirstNameBytes);
}

std::vector<FeatureView> ExampleView::Features(size_t at_most, size_t name_bytes) const {
  std::map<absl::string_view, FeatureView> by_name;
  Decode([&](const FeatureView& feature) {
    if (const auto known = by_name.find(feature.name()); known != by_name.end()) {
      known->second = feature;
    } else if (by_name.size() < at_most && feature.name().size() <= name_bytes) {
      by_name.emplace(feature.name(), feature);
      name_bytes -= feature.name().size();
    }
  });
  std::vector<FeatureView> features;
  features.reserve(by_name.size());
  for (const auto& [name, view] : by_name) features.push_back(view);
  return features;
}

absl::StatusOr<std::vector<FeatureDescription>> DescribeFeatures(absl::string_view record,
                                                                 const ExampleFormat& format) {
  SYSTOLE_ASSIGN_OR_RETURN(const ExampleView example, ExampleView::Parse(record, format));
  std::vector<FeatureDescription> descriptions;
  for (const FeatureView& view : example.FirstFeatures()) {
    descriptions.push_back(
        {.name = std::string(view.name()), .kind = view.kind(), .count = view.count()});
  }
  return descriptions;
}

}  // namespace systole
