#include "core/plan/content_version.h"

#include "absl/strings/str_cat.h"
#include "core/image/jpeg/jpeg_library.h"

namespace systole {
namespace {

// Systole's own part of the version. Raise it in any release that changes a byte of any feed.
constexpr int kContentVersion = 4;

}  // namespace

std::string ContentVersion() {
  return absl::StrCat("systole-", kContentVersion, "+", JpegLibraryVersion());
}

}  // namespace systole
