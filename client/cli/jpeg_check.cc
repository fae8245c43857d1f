#include "client/cli/jpeg_check.h"

#include "absl/strings/match.h"
#include "core/status/status_macros.h"

namespace systole {

bool LooksLikeJpeg(absl::string_view bytes) { return absl::StartsWith(bytes, "\xff\xd8"); }

absl::StatusOr<JpegCheck> JpegCheck::Create() {
  SYSTOLE_ASSIGN_OR_RETURN(JpegDecoder decoder, JpegDecoder::Create());
  return JpegCheck(std::move(decoder));
}

absl::Status JpegCheck::DecodeAll(absl::string_view jpeg) {
  SYSTOLE_ASSIGN_OR_RETURN(const ImageInfo info, decoder_.ReadHeader(jpeg));
  SYSTOLE_RETURN_IF_ERROR(decoder_.StartCrop(WholeImage(info.height, info.width)));
  for (int y = 0; y < info.height; ++y) SYSTOLE_RETURN_IF_ERROR(decoder_.NextRow().status());
  return absl::OkStatus();
}

}  // namespace systole
