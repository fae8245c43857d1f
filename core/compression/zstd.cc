#include "core/compression/zstd.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/compression/compressed_input.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr size_t kPieceBytes = 128 << 10;
constexpr uint64_t kMaxHeaderBytes = 18;  // The header of a frame, with its magic number.

struct FreeDecoder {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using Context = std::unique_ptr<ZSTD_DCtx, FreeDecoder>;

absl::StatusOr<Context> MakeContext() {
  Context context(ZSTD_createDCtx());
  if (context == nullptr) return absl::ResourceExhaustedError("no memory to decompress with");
  return context;
}

absl::Status Damaged(uint64_t position, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("its zstd frames are damaged near byte ", position, ": ",
                                          why, "; copy or write the shard again"));
}

absl::Status NoFrame(absl::string_view why) {
  return absl::DataLossError(
      absl::StrCat("it does not begin as zstd does (", why, "); use compression 'detect'"));
}

}  // namespace

absl::Status ScanZstd(const ByteSource& file, RestartScan& scan) {
  SYSTOLE_ASSIGN_OR_RETURN(const Context context, MakeContext());
  CompressedInput input(file, 0, kPieceBytes, /*scans=*/true);
  std::vector<char> out(ZSTD_DStreamOutSize());
  uint64_t done = 0;
  size_t left_of_frame = 0;  // 0: between frames.
  while (true) {
    SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view piece, input.Next());
    if (piece.empty()) {
      if (left_of_frame == 0) return absl::OkStatus();
      return Damaged(input.end(), "the last frame is cut short");
    }
    ZSTD_inBuffer in = {.src = piece.data(), .size = piece.size(), .pos = 0};
    bool is_flushed = true;
    while (in.pos < in.size || !is_flushed) {
      ZSTD_outBuffer to = {.dst = out.data(), .size = out.size(), .pos = 0};
      left_of_frame = ZSTD_decompressStream(context.get(), &to, &in);
      const uint64_t position = input.end() - (in.size - in.pos);
      if (ZSTD_isError(left_of_frame) != 0) {
        const char* const why = ZSTD_getErrorName(left_of_frame);
        if (ZSTD_getErrorCode(left_of_frame) == ZSTD_error_frameParameter_windowTooLarge) {
          return absl::ResourceExhaustedError(absl::StrCat(
              "its zstd frame at byte ", position,
              " looks back over more than 128 MiB; write the "
              "shard again in small frames, as `systole pack --compression zstd` does"));
        }
        return done == 0 && position < kMaxHeaderBytes ? NoFrame(why) : Damaged(position, why);
      }
      is_flushed = to.pos < to.size;
      done += to.pos;
      SYSTOLE_RETURN_IF_ERROR(scan.Reach(done));
      if (left_of_frame > 0) continue;
      is_flushed = true;  // At a frame's end, all of its output has been written.
      if (scan.Wants(done)) scan.Offer({.compressed_bit = position * 8, .offset = done}, "");
    }
  }
}

absl::StatusOr<size_t> DecompressZstd(absl::string_view compressed, absl::Span<char> out) {
  SYSTOLE_ASSIGN_OR_RETURN(const Context context, MakeContext());
  size_t done = 0;
  while (!compressed.empty() && done < out.size()) {
    // Decompresses frame by frame, so that the frames before a damaged frame are not lost.
    const size_t frame = ZSTD_findFrameCompressedSize(compressed.data(), compressed.size());
    if (ZSTD_isError(frame) != 0) break;
    const size_t written = ZSTD_decompressDCtx(context.get(), out.data() + done, out.size() - done,
                                               compressed.data(), frame);
    if (ZSTD_isError(written) != 0) break;
    done += written;
    compressed.remove_prefix(frame);
  }
  return done;
}

}  // namespace systole
