#include "core/credentials/credential_json.h"

#include "absl/strings/str_cat.h"
#include "core/textproto/message_text.h"

namespace systole {

absl::Status ParseCredentialJson(absl::string_view text, absl::string_view source,
                                 google::protobuf::Message& message) {
  if (text.size() > kMaxJsonBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(source, " has ", text.size(), " bytes, want at most ", kMaxJsonBytes));
  }
  // The parser's error is not returned, because it quotes the text.
  if (ParseForeignJson(text, source, message).ok()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(source, " is not a JSON object of a known form"));
}

}  // namespace systole
