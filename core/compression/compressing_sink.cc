#include "core/compression/compressing_sink.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr size_t kDeflatedPieceBytes = 64 << 10;
// zstd's own default.
constexpr int kZstdLevel = 3;

absl::Status NoMemory() { return absl::ResourceExhaustedError("no memory to compress with"); }

class DeflatingSink final : public ByteSink {
 public:
  explicit DeflatingSink(std::unique_ptr<ByteSink> sink)
      : sink_(std::move(sink)), out_(kDeflatedPieceBytes) {}
  ~DeflatingSink() override {
    if (is_open_) deflateEnd(&stream_);
  }

  absl::Status Open(Compression compression) {
    const int window_bits = MAX_WBITS + (compression == Compression::kGzip ? 16 : 0);
    is_open_ = deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits,
                            MAX_MEM_LEVEL - 1, Z_DEFAULT_STRATEGY) == Z_OK;
    return is_open_ ? absl::OkStatus() : NoMemory();
  }
  absl::Status Append(absl::string_view bytes) override {
    // zlib counts bytes in 32 bits, so at most this many bytes are passed to it at a time.
    constexpr size_t kMost = 1 << 30;
    for (; bytes.size() > kMost; bytes.remove_prefix(kMost)) {
      SYSTOLE_RETURN_IF_ERROR(Run(bytes.substr(0, kMost), Z_NO_FLUSH));
    }
    return Run(bytes, Z_NO_FLUSH);
  }
  absl::Status Close() override {
    // Z_FINISH may be given only once.
    if (!std::exchange(is_ended_, true)) SYSTOLE_RETURN_IF_ERROR(Run("", Z_FINISH));
    return sink_->Close();
  }
  absl::string_view name() const override { return sink_->name(); }

 private:
  absl::Status Run(absl::string_view bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      deflate(&stream_, flush);
      SYSTOLE_RETURN_IF_ERROR(
          sink_->Append(absl::string_view(out_.data(), out_.size() - stream_.avail_out)));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<ByteSink> sink_;
  std::vector<char> out_;
  z_stream stream_ = {};
  bool is_open_ = false;
  bool is_ended_ = false;
};

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

class ZstdSink final : public ByteSink {
 public:
  explicit ZstdSink(std::unique_ptr<ByteSink> sink)
      : sink_(std::move(sink)), out_(ZSTD_compressBound(kZstdFrameBytes)) {}

  absl::Status Open() {
    context_.reset(ZSTD_createCCtx());
    if (context_ == nullptr) return NoMemory();
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    return absl::OkStatus();
  }
  absl::Status Append(absl::string_view bytes) override {
    while (frame_.size() + bytes.size() >= kZstdFrameBytes) {
      const size_t taken = kZstdFrameBytes - frame_.size();
      frame_.append(bytes.data(), taken);
      bytes.remove_prefix(taken);
      SYSTOLE_RETURN_IF_ERROR(WriteFrame());
    }
    frame_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  absl::Status Close() override {
    // An empty file has a frame too, so that it is recognised as a zstd file.
    if (!frame_.empty() || frames_ == 0) SYSTOLE_RETURN_IF_ERROR(WriteFrame());
    return sink_->Close();
  }
  absl::string_view name() const override { return sink_->name(); }

 private:
  absl::Status WriteFrame() {
    const size_t size =
        ZSTD_compress2(context_.get(), out_.data(), out_.size(), frame_.data(), frame_.size());
    if (ZSTD_isError(size) != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot compress: ", ZSTD_getErrorName(size)));
    }
    frame_.clear();
    ++frames_;
    return sink_->Append(absl::string_view(out_.data(), size));
  }

  const std::unique_ptr<ByteSink> sink_;
  std::unique_ptr<ZSTD_CCtx, FreeContext> context_;
  std::vector<char> out_;
  std::string frame_;
  int64_t frames_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSink>> CompressingSink(std::unique_ptr<ByteSink> sink,
                                                          Compression compression) {
  if (compression == Compression::kNone) return sink;
  if (compression == Compression::kZstd) {
    auto zstd = std::make_unique<ZstdSink>(std::move(sink));
    SYSTOLE_RETURN_IF_ERROR(zstd->Open());
    return zstd;
  }
  auto deflating = std::make_unique<DeflatingSink>(std::move(sink));
  SYSTOLE_RETURN_IF_ERROR(deflating->Open(compression));
  return deflating;
}

}  // namespace systole
