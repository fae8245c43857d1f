#include "client/emulator/model/load_model.h"

#include "absl/strings/str_cat.h"
#include "client/emulator/shipped/shipped_files.h"
#include "core/status/status_macros.h"

namespace systole::emulator {

absl::StatusOr<Model> LoadModel(const std::string& name_or_file) {
  v1::Model message;
  SYSTOLE_RETURN_IF_ERROR(ReadModel(name_or_file, message));
  absl::StatusOr<Model> model = CompileModel(message);
  if (model.ok()) return model;
  return absl::Status(model.status().code(),
                      absl::StrCat(name_or_file, ": ", model.status().message()));
}

}  // namespace systole::emulator
