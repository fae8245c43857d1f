#include "core/spec/where_columns.h"

#include <set>

#include "absl/strings/str_join.h"
#include "core/spec/order_spec.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

using Names = std::set<std::string>;

void AddFeatures(const v1::Where& where, Names& names) {
  if (!where.feature().empty()) names.insert(ForeignName(where.feature()));
  for (const v1::Where& part : where.all()) AddFeatures(part, names);
  for (const v1::Where& part : where.any()) AddFeatures(part, names);
}

void AddFeatures(const google::protobuf::RepeatedPtrField<v1::Select>& selects, Names& names) {
  for (const v1::Select& select : selects) {
    if (select.has_where()) AddFeatures(select.where(), names);
  }
}

}  // namespace

std::string WhereColumns(const v1::FeedSpec& spec) {
  Names names;
  AddFeatures(spec.select(), names);
  for (const v1::Member& member : MembersOf(spec)) AddFeatures(member.select(), names);
  return absl::StrJoin(names, ",");
}

}  // namespace systole
