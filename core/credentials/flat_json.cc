#include "core/credentials/flat_json.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/textproto/message_text.h"
#include "google/protobuf/struct.pb.h"

namespace systole {

absl::StatusOr<FlatJson> FlatJson::Parse(absl::string_view text, absl::string_view source) {
  if (text.size() > kMaxJsonBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(source, " has ", text.size(), " bytes, want at most ", kMaxJsonBytes));
  }
  google::protobuf::Struct object;
  // The parser's own message quotes the text.
  if (!ParseForeignJson(text, source, object).ok()) {
    return absl::DataLossError(absl::StrCat(source, " is no JSON object"));
  }
  FlatJson json;
  for (const auto& [name, value] : object.fields()) {
    if (value.has_string_value()) json.values_.emplace(name, value.string_value());
    if (value.has_number_value()) {
      json.values_.emplace(name, absl::StrCat(value.number_value()));
    }
  }
  return json;
}

absl::string_view FlatJson::Get(absl::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : absl::string_view(found->second);
}

}  // namespace systole
