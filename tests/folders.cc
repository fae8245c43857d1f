#include "tests/folders.h"

#include <string>

namespace systole {

std::string SourceFolder() { return SYSTOLE_SOURCE_DIR; }

std::string BuildFolder() { return SYSTOLE_BUILD_DIR; }

}  // namespace systole
