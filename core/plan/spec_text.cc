#include "core/plan/spec_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace systole {

std::string EnumValues(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

std::string EnumText(const google::protobuf::EnumDescriptor& type, int value) {
  const google::protobuf::EnumValueDescriptor* const known = type.FindValueByNumber(value);
  return known == nullptr ? absl::StrCat(value) : known->name();
}

std::string FieldNames(const google::protobuf::Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return absl::StrJoin(names, ", ");
}

}  // namespace systole
