#include "client/emulator/shipped/shipped_files.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/textproto/message_text.h"

namespace systole::emulator {
namespace {

absl::Status Read(absl::Span<const ShippedFile> shipped, absl::string_view what,
                  const std::string& name_or_file, google::protobuf::Message& message) {
  for (const ShippedFile& file : shipped) {
    if (file.name == name_or_file) return ParseTextproto(file.text, file.name, message);
  }
  absl::Status status = LoadMessage(name_or_file, message);
  if (!absl::IsNotFound(status)) return status;
  const auto append_name = [](std::string* out, const ShippedFile& file) {
    absl::StrAppend(out, file.name);
  };
  return absl::NotFoundError(absl::StrCat(
      "there is no ", what, " '", name_or_file, "': it is neither one that comes with ",
      "systole (", absl::StrJoin(shipped, ", ", append_name), ") nor a file"));
}

}  // namespace

absl::Status ReadChip(const std::string& name_or_file, v1::Chip& chip) {
  return Read(ShippedChips(), "chip", name_or_file, chip);
}

absl::Status ReadModel(const std::string& name_or_file, v1::Model& model) {
  return Read(ShippedModels(), "model", name_or_file, model);
}

}  // namespace systole::emulator
