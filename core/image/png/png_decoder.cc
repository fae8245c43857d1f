#include "core/image/png/png_decoder.h"

#include <spng.h>

#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/image/png/plain_png.h"
#include "core/image/png/png_grey.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The largest width and height. The format allows 2^31 - 1. The caller of DecodePng() makes the
// memory for the pixels, and so bounds their number.
constexpr uint32_t kMaxEdge = 1 << 20;
// Limits of one chunk such as a text or a colour profile, and of all such chunks that are kept.
// They are libpng's defaults.
constexpr size_t kMaxChunkBytes = 8 << 20;
constexpr size_t kMaxKeptBytes = 8 << 20;

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, FreeContext>;

struct OpenPng {
  Context context;
  spng_ihdr header;

  bool is_coloured() const { return (header.color_type & SPNG_COLOR_TYPE_TRUECOLOR) != 0; }
};

absl::Status Failure(int error) {
  if (error == SPNG_EMEM) {
    return absl::UnavailableError(
        "no memory to decode the PNG; give the process more memory and try again");
  }
  return absl::DataLossError(absl::StrCat("PNG: ", spng_strerror(error)));
}

absl::StatusOr<OpenPng> Open(absl::string_view png) {
  OpenPng opened = {.context = Context(spng_ctx_new(0)), .header = {}};
  spng_ctx* const context = opened.context.get();
  if (context == nullptr) return Failure(SPNG_EMEM);
  spng_set_image_limits(context, kMaxEdge, kMaxEdge);
  spng_set_chunk_limits(context, kMaxChunkBytes, kMaxKeptBytes);
  // Ignores damaged chunks that no pixel needs, such as comments. libpng does the same.
  spng_set_crc_action(context, SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
  int error = spng_set_png_buffer(context, png.data(), png.size());
  if (error == 0) error = spng_get_ihdr(context, &opened.header);
  if (error != 0) return Failure(error);
  return opened;
}

// Decodes by libspng. REQUIRES: the chunks before the pixels are read.
absl::Status DecodeAs(spng_ctx* context, spng_format format, void* out, size_t bytes) {
  spng_ihdr header;
  int error = spng_get_ihdr(context, &header);
  if (error == 0) error = spng_decode_image(context, nullptr, 0, format, SPNG_DECODE_PROGRESSIVE);
  const size_t row_bytes = error == 0 ? bytes / header.height : 0;
  while (error == 0) {
    if (InterruptRequested()) return InterruptedError();
    // Rows of an interlaced image come several times, each time with more of their pixels.
    spng_row_info row;
    error = spng_get_row_info(context, &row);
    if (error != 0) break;
    error =
        spng_decode_row(context, static_cast<uint8_t*>(out) + row.row_num * row_bytes, row_bytes);
  }
  return error == SPNG_EOI ? absl::OkStatus() : Failure(error);
}

// REQUIRES: the chunks before the pixels are read.
PngLayout LayoutOf(const OpenPng& opened) {
  PngLayout layout = {.width = opened.header.width,
                      .height = opened.header.height,
                      .bit_depth = opened.header.bit_depth,
                      .colour_type = static_cast<PngColourType>(opened.header.color_type),
                      .is_interlaced = opened.header.interlace_method != SPNG_INTERLACE_NONE};
  spng_plte palette;
  if (layout.colour_type == PngColourType::kPalette &&
      spng_get_plte(opened.context.get(), &palette) == 0) {
    // libspng gives black for indices beyond the file's palette.
    for (size_t i = 0; i < layout.palette.size(); ++i) {
      const spng_plte_entry& entry = palette.entries[i];
      layout.palette[i] = {entry.red, entry.green, entry.blue, 0};
    }
  }
  return layout;
}

// Decodes to 8 bits. `channels` is 3, or 1 if the file is grey. A file that DecodePlainPng() does
// not decode, because it is damaged or of a rare kind, is left to libspng. REQUIRES: the chunks
// before the pixels are read.
absl::Status DecodeSamples(const OpenPng& opened, absl::string_view png, int channels,
                           absl::Span<uint8_t> out) {
  if (DecodePlainPng(png, LayoutOf(opened), channels, out.data())) return absl::OkStatus();
  spng_ctx* const context = opened.context.get();
  if (channels == 3) return DecodeAs(context, SPNG_FMT_RGB8, out.data(), out.size());
  std::vector<uint8_t> rgb(out.size() * 3);
  SYSTOLE_RETURN_IF_ERROR(DecodeAs(context, SPNG_FMT_RGB8, rgb.data(), rgb.size()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = rgb[i * 3];
  return absl::OkStatus();
}

// How the pixels of a coloured file become grey. REQUIRES: the pixels are decoded.
PngGrey GreyOf(const OpenPng& opened, absl::string_view png) {
  spng_iccp profile;
  std::optional<absl::string_view> bytes;
  if (spng_get_iccp(opened.context.get(), &profile) == 0) {
    bytes.emplace(profile.profile, profile.profile_len);
  }
  return PngGrey(ReadPngColours(png, bytes), opened.header.bit_depth);
}

}  // namespace

bool LooksLikePng(absl::string_view bytes) { return absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n"); }

absl::StatusOr<PngInfo> ReadPngHeader(absl::string_view png, int channels) {
  SYSTOLE_ASSIGN_OR_RETURN(const OpenPng opened, Open(png));
  PngInfo info = {.width = static_cast<int>(opened.header.width),
                  .height = static_cast<int>(opened.header.height),
                  .is_grey = !opened.is_coloured()};
  if (channels == 1) {
    info.scratch_bytes_per_pixel = opened.is_coloured() && opened.header.bit_depth == 16 ? 8 : 3;
  }
  return info;
}

absl::Status DecodePng(absl::string_view png, int channels, absl::Span<uint8_t> out) {
  SYSTOLE_ASSIGN_OR_RETURN(const OpenPng opened, Open(png));
  const size_t pixels = size_t{opened.header.width} * opened.header.height;
  if (out.size() != pixels * static_cast<size_t>(channels)) {
    return absl::InvalidArgumentError(absl::StrCat("output has ", out.size(), " bytes, want ",
                                                   pixels * static_cast<size_t>(channels)));
  }
  spng_ctx* const context = opened.context.get();
  const int error = spng_decode_chunks(context);  // The chunks before the pixels.
  if (error != 0) return Failure(error);
  if (channels == 3 || !opened.is_coloured()) return DecodeSamples(opened, png, channels, out);
  if (opened.header.bit_depth == 16) {
    constexpr size_t kChannels = 4;
    std::vector<uint16_t> rgba(pixels * kChannels);
    SYSTOLE_RETURN_IF_ERROR(
        DecodeAs(context, SPNG_FMT_RGBA16, rgba.data(), rgba.size() * sizeof(uint16_t)));
    const PngGrey grey = GreyOf(opened, png);
    for (size_t i = 0; i < pixels; ++i) {
      const uint16_t* const pixel = &rgba[i * kChannels];
      out[i] = grey.Of16(pixel[0], pixel[1], pixel[2]);
    }
    return absl::OkStatus();
  }
  std::vector<uint8_t> rgb(pixels * 3);
  spng_iccp profile;
  // After libspng has decoded the pixels, spng_get_iccp() gives a profile only if the chunks after
  // the pixels are good, too. If DecodePlainPng() decoded the pixels, libspng would not have read
  // these chunks. So libspng decodes every file that has a profile.
  const bool has_profile = spng_get_iccp(context, &profile) == 0;
  SYSTOLE_RETURN_IF_ERROR(has_profile ? DecodeAs(context, SPNG_FMT_RGB8, rgb.data(), rgb.size())
                                      : DecodeSamples(opened, png, 3, absl::MakeSpan(rgb)));
  const PngGrey grey = GreyOf(opened, png);
  for (size_t i = 0; i < pixels; ++i) {
    out[i] = grey.Of8(rgb[i * 3], rgb[i * 3 + 1], rgb[i * 3 + 2]);
  }
  return absl::OkStatus();
}

}  // namespace systole
