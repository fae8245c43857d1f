#include "client/cli/shards/jpeg_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "core/status/status_macros.h"

namespace systole {

bool LooksLikeJpeg(absl::string_view bytes) { return absl::StartsWith(bytes, "\xff\xd8"); }

absl::string_view KindOfBytes(absl::string_view bytes) {
  // A beginning that contains a zero byte is written with its size, because a C string would end at
  // the zero.
  const std::pair<absl::string_view, absl::string_view> kBeginnings[] = {
      {"\x89PNG\r\n\x1a\n", "PNG"},
      {"GIF8", "GIF"},
      {"BM", "BMP"},
      {absl::string_view("II*\0", 4), "TIFF"},
      {absl::string_view("MM\0*", 4), "TIFF"},
      {"\x1f\x8b", "gzip"}};
  if (std::all_of(bytes.begin(), bytes.end(), [](char c) {
        return absl::ascii_isprint(static_cast<unsigned char>(c)) ||
               absl::ascii_isspace(static_cast<unsigned char>(c));
      })) {
    return "text";
  }
  for (const auto& [beginning, kind] : kBeginnings) {
    if (absl::StartsWith(bytes, beginning)) return kind;
  }
  if (absl::StartsWith(bytes, "RIFF") && bytes.substr(0, 12).substr(8) == "WEBP") return "WebP";
  return "other bytes";
}

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
