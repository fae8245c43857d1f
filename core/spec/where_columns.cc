#include "core/spec/where_columns.h"

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
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

// The names as the option takes them: "label,width". Unprintable characters are escaped.
std::string OptionText(const Names& names) {
  return absl::StrJoin(names, ",", [](std::string* text, const std::string& name) {
    absl::StrAppend(text, ForeignName(name));
  });
}

std::string CommandText(const Names& names) {
  return absl::StrCat("`systole index --columns ", OptionText(names), " --rebuild`");
}

// The datasets of a zip that may have a feature, because the feature's name begins with their
// prefix. A spec does not say which of these datasets has the feature. The map's key is the number
// of bytes of the prefix. The longest prefix is first.
using Owners = std::map<size_t, std::vector<std::string>, std::greater<>>;

Owners OwnersOf(const v1::FeedSpec& spec, const std::string& feature) {
  Owners owners;
  for (const v1::Member& member : spec.zip()) {
    if (!absl::StartsWith(feature, member.prefix())) continue;
    std::vector<std::string>& datasets = owners[member.prefix().size()];
    if (absl::c_linear_search(datasets, member.dataset())) continue;
    datasets.push_back(member.dataset());
  }
  return owners;
}

// "`systole index ..` over the shards of dataset 'a', 'b' or 'c'".
std::string CommandOver(const Names& names, absl::Span<const std::string> datasets) {
  std::string text = absl::StrCat(CommandText(names), " over the shards of dataset ");
  for (size_t i = 0; i < datasets.size(); ++i) {
    absl::StrAppend(&text,
                    i == 0                    ? ""
                    : i + 1 < datasets.size() ? ", "
                                              : " or ",
                    "'", ForeignName(datasets[i]), "'");
  }
  return text;
}

std::string CommandsOfZip(const v1::FeedSpec& spec) {
  std::map<std::string, Names> features_of;  // Key: the dataset. Names without prefix.
  std::vector<std::string> texts;
  for (const std::string& feature : FeaturesOf(spec)) {
    const Owners owners = OwnersOf(spec, feature);
    if (owners.empty()) continue;
    if (const auto& [prefix, datasets] = *owners.begin();
        owners.size() == 1 && datasets.size() == 1) {
      features_of[datasets[0]].insert(feature.substr(prefix));
      continue;
    }
    texts.push_back(absl::StrCat(
        absl::StrJoin(owners, ", or ",
                      [&](std::string* text, const Owners::value_type& owner) {
                        absl::StrAppend(text,
                                        CommandOver({feature.substr(owner.first)}, owner.second));
                      }),
        ", whichever has it"));
  }
  const std::string sure =
      absl::StrJoin(features_of, " and ",
                    [](std::string* text, const std::pair<const std::string, Names>& dataset) {
                      absl::StrAppend(text, CommandOver(dataset.second, {dataset.first}));
                    });
  if (!sure.empty()) texts.insert(texts.begin(), sure);
  return absl::StrJoin(texts, "; ");
}

}  // namespace

std::string WhereColumns(const v1::FeedSpec& spec) { return OptionText(FeaturesOf(spec)); }

std::string NoteAnewCommand(const v1::FeedSpec& spec) {
  if (spec.zip().empty()) return CommandText(FeaturesOf(spec));
  return CommandsOfZip(spec);
}

}  // namespace systole
