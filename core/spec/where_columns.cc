#include "core/spec/where_columns.h"

#include <map>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/spec/order_spec.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

using Names = std::set<std::string>;

void AddFeatures(const v1::Where& where, Names& names) {
  if (!where.feature().empty()) names.insert(where.feature());
  for (const v1::Where& part : where.all()) AddFeatures(part, names);
  for (const v1::Where& part : where.any()) AddFeatures(part, names);
}

void AddFeatures(const google::protobuf::RepeatedPtrField<v1::Select>& selects, Names& names) {
  for (const v1::Select& select : selects) {
    if (select.has_where()) AddFeatures(select.where(), names);
  }
}

Names FeaturesOf(const v1::FeedSpec& spec) {
  Names names;
  AddFeatures(spec.select(), names);
  for (const v1::Member& member : MembersOf(spec)) AddFeatures(member.select(), names);
  return names;
}

// "label,width", fit to print.
std::string OptionText(const Names& names) {
  return absl::StrJoin(names, ",", [](std::string* text, const std::string& name) {
    absl::StrAppend(text, ForeignName(name));
  });
}

std::string CommandText(const Names& names) {
  return absl::StrCat("`systole index --columns ", OptionText(names), " --rebuild`");
}

// The features of each dataset of a zip, under the names that they have there.
std::map<std::string, Names> FeaturesOfZip(const v1::FeedSpec& spec) {
  std::map<std::string, Names> features_of;
  for (const std::string& feature : FeaturesOf(spec)) {
    // Only a dataset knows its features. Where several prefixes match, the longest is meant.
    std::optional<int> found;
    for (int i = 0; i < spec.zip_size(); ++i) {
      const std::string& prefix = spec.zip(i).prefix();
      if (!absl::StartsWith(feature, prefix)) continue;
      if (!found.has_value() || prefix.size() > spec.zip(*found).prefix().size()) found = i;
    }
    if (!found.has_value()) continue;
    const v1::Member& member = spec.zip(*found);
    features_of[member.dataset()].insert(feature.substr(member.prefix().size()));
  }
  return features_of;
}

}  // namespace

std::string WhereColumns(const v1::FeedSpec& spec) { return OptionText(FeaturesOf(spec)); }

std::string NoteAnewCommand(const v1::FeedSpec& spec) {
  if (spec.zip().empty()) return CommandText(FeaturesOf(spec));
  return absl::StrJoin(FeaturesOfZip(spec), " and ",
                       [](std::string* text, const std::pair<const std::string, Names>& dataset) {
                         absl::StrAppend(text, CommandText(dataset.second),
                                         " over the shards of dataset '",
                                         ForeignName(dataset.first), "'");
                       });
}

}  // namespace systole
