#include "core/compression/deflate.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/compression/compressed_input.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr size_t kScanPieceBytes = 256 << 10;
// How many bytes are read at a time to decompress a chunk.
constexpr size_t kChunkPieceBytes = 64 << 10;
// The CRC-32 and the size that follow the blocks of a gzip member.
constexpr size_t kGzipTrailerBytes = 8;
constexpr Bytef kGzipMagic = 0x1f;

// zlib's "window bits". This number says how large the window is (as a power of two), and which
// header and trailer surround the deflate data: none, gzip's or zlib's.
constexpr int kRaw = -MAX_WBITS;
constexpr int kWrappedGzip = MAX_WBITS + 16;
constexpr int kWrappedZlib = MAX_WBITS;

int WrappedAs(Compression compression) {
  return compression == Compression::kGzip ? kWrappedGzip : kWrappedZlib;
}

// A z_stream with its memory, whose input comes from a file.
class Inflater {
 public:
  Inflater(const ByteSource& file, uint64_t offset, size_t piece_bytes, bool scans = false)
      : input_(file, offset, piece_bytes, scans) {}
  ~Inflater() {
    if (is_open_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  absl::Status Open(int window_bits) {
    is_open_ = inflateInit2(&stream_, window_bits) == Z_OK;
    if (is_open_) return absl::OkStatus();
    return absl::ResourceExhaustedError("no memory to decompress with");
  }

  // Reads more input if none is left; false at the file's end.
  absl::StatusOr<bool> Fill() {
    if (stream_.avail_in > 0) return true;
    SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view piece, input_.Next());
    // zlib does not write to its input, although the type of next_in lacks const.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    return !piece.empty();
  }

  // Skips the next `bytes` bytes; false if the file ends earlier.
  absl::StatusOr<bool> Skip(size_t bytes) {
    while (bytes > 0) {
      SYSTOLE_ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) return false;
      const size_t now = std::min<size_t>(bytes, stream_.avail_in);
      stream_.next_in += now;
      stream_.avail_in -= static_cast<uInt>(now);
      bytes -= now;
    }
    return true;
  }

  // Skips the zeros with which some programs pad a file or a member; false at the file's end.
  absl::StatusOr<bool> SkipZeros() {
    while (true) {
      SYSTOLE_ASSIGN_OR_RETURN(const bool more, Fill());
      if (!more) return false;
      if (*stream_.next_in != 0) return true;
      SYSTOLE_RETURN_IF_ERROR(Skip(1).status());
    }
  }

  // The position of the next input byte in the file.
  uint64_t position() const { return input_.end() - stream_.avail_in; }
  z_stream& stream() { return stream_; }

 private:
  CompressedInput input_;
  z_stream stream_ = {};
  bool is_open_ = false;
};

absl::Status Damaged(Compression compression, uint64_t position, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("its ", CompressionName(compression),
                                          " stream is damaged near byte ", position, ": ", why,
                                          "; copy or write the shard again"));
}

absl::Status NoStream(Compression compression, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("it does not begin as ", CompressionName(compression),
                                          " does (", why, "); use compression 'detect'"));
}

}  // namespace

absl::Status ScanDeflate(const ByteSource& file, Compression compression, RestartScan& scan) {
  Inflater inflater(file, 0, kScanPieceBytes, /*scans=*/true);
  SYSTOLE_RETURN_IF_ERROR(inflater.Open(WrappedAs(compression)));
  z_stream& stream = inflater.stream();
  std::vector<char> out(kScanPieceBytes);
  std::array<Bytef, kWindowBytes> window;
  uint64_t done = 0;
  bool has_begun = false;
  while (true) {
    SYSTOLE_ASSIGN_OR_RETURN(const bool more, inflater.Fill());
    if (!more) return Damaged(compression, inflater.position(), "the stream ends in the middle");
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&stream, Z_BLOCK);
    done += out.size() - stream.avail_out;
    SYSTOLE_RETURN_IF_ERROR(scan.Reach(done));
    if (result == Z_STREAM_END) {
      SYSTOLE_ASSIGN_OR_RETURN(const bool another, inflater.SkipZeros());
      if (!another) return absl::OkStatus();
      if (compression != Compression::kGzip || *stream.next_in != kGzipMagic) {
        return Damaged(compression, inflater.position(), "bytes follow the end of the stream");
      }
      inflateReset2(&stream, kWrappedGzip);
      continue;
    }
    if (result == Z_NEED_DICT) {
      return Damaged(compression, inflater.position(), "it needs a dictionary");
    }
    if (result != Z_OK && result != Z_BUF_ERROR) {
      const absl::string_view why = stream.msg != nullptr ? stream.msg : "no such stream";
      if (!has_begun) return NoStream(compression, why);
      return Damaged(compression, inflater.position(), why);
    }
    has_begun = has_begun || (stream.data_type & 128) != 0;  // zlib sets 128 after a header, too.
    // In data_type, zlib sets 128 at the end of a block, and 64 in the last block of a stream. The
    // lowest three bits are the number of bits in the last input byte that are not used yet.
    const bool at_end_of_block = (stream.data_type & 128) != 0 && (stream.data_type & 64) == 0;
    if (!at_end_of_block || !scan.Wants(done)) continue;
    uInt known = 0;
    window.fill(0);
    inflateGetDictionary(&stream, window.data(), &known);
    // If this member has fewer than kWindowBytes decompressed bytes so far, the window begins with
    // zeros.
    std::rotate(window.begin(), window.begin() + known, window.end());
    scan.Offer({.compressed_bit = inflater.position() * 8 - (stream.data_type & 7), .offset = done},
               absl::string_view(reinterpret_cast<const char*>(window.data()), window.size()));
  }
}

absl::StatusOr<size_t> InflateAt(const ByteSource& file, Compression compression,
                                 const RestartPoint& point, absl::string_view window,
                                 absl::Span<char> out) {
  Inflater inflater(file, point.compressed_bit / 8, kChunkPieceBytes);
  bool is_raw = !window.empty();
  SYSTOLE_RETURN_IF_ERROR(inflater.Open(is_raw ? kRaw : WrappedAs(compression)));
  z_stream& stream = inflater.stream();
  if (is_raw) {
    if (const int used = static_cast<int>(point.compressed_bit % 8); used > 0) {
      SYSTOLE_ASSIGN_OR_RETURN(const bool more, inflater.Fill());
      if (!more) return 0;
      inflatePrime(&stream, 8 - used, *stream.next_in >> used);
      SYSTOLE_RETURN_IF_ERROR(inflater.Skip(1).status());
    }
    inflateSetDictionary(&stream, reinterpret_cast<const Bytef*>(window.data()),
                         static_cast<uInt>(window.size()));
  }
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  while (stream.avail_out > 0) {
    SYSTOLE_ASSIGN_OR_RETURN(bool more, inflater.Fill());
    if (!more) break;
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END && compression == Compression::kGzip) {
      if (is_raw) {
        SYSTOLE_ASSIGN_OR_RETURN(more, inflater.Skip(kGzipTrailerBytes));
        if (!more) break;
      }
      SYSTOLE_ASSIGN_OR_RETURN(more, inflater.SkipZeros());
      if (!more) break;
      is_raw = false;
      inflateReset2(&stream, kWrappedGzip);
    } else if (result != Z_OK) {
      break;
    }
  }
  return out.size() - stream.avail_out;
}

}  // namespace systole
