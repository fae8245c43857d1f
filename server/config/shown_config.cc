#include "server/config/shown_config.h"

#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/text/web_address.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace systole {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

void MaskTexts(Message& message) {
  const google::protobuf::Reflection& fields = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  fields.ListFields(message, &set);
  for (const FieldDescriptor* const field : set) {
    const int values = field->is_repeated() ? fields.FieldSize(message, field) : 1;
    for (int i = 0; i < values; ++i) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        MaskTexts(field->is_repeated() ? *fields.MutableRepeatedMessage(&message, field, i)
                                       : *fields.MutableMessage(&message, field));
      } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
        continue;
      } else if (field->is_repeated()) {
        fields.SetRepeatedString(&message, field, i,
                                 ShownText(fields.GetRepeatedString(message, field, i)));
      } else {
        fields.SetString(&message, field, ShownText(fields.GetString(message, field)));
      }
    }
  }
}

}  // namespace

std::string ShownText(absl::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    // An address begins with a letter. The blanks before it are not a part of it.
    if (absl::ascii_isalpha(text[at]) && MayHoldSecrets(text.substr(at))) {
      return absl::StrCat(text.substr(0, at), ShownAddress(text.substr(at)));
    }
  }
  return std::string(text);
}

std::string ShownConfig(const v1::ServerConfig& config) {
  v1::ServerConfig masked = config;
  MaskTexts(masked);
  std::string text;
  google::protobuf::TextFormat::PrintToString(masked, &text);
  return text;
}

}  // namespace systole
