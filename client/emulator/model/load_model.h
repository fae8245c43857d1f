// Loads a model: a shipped one by its name, or one from a file.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_MODEL_LOAD_MODEL_H_
#define SYSTOLE_CLIENT_EMULATOR_MODEL_LOAD_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/emulator/model/model.h"

namespace systole::emulator {

// `name_or_file`: "resnet50", or the path of a textproto (or .json); see shipped_files.h.
//   NotFound         no shipped model and no file has this name. The message lists the shipped
//                    models.
//   InvalidArgument  the text is not a v1::Model, or CompileModel() refuses it. The message names
//                    the file.
absl::StatusOr<Model> LoadModel(const std::string& name_or_file);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MODEL_LOAD_MODEL_H_
