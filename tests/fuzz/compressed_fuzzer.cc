// Reads any bytes as a gzip, zlib or zstd file. The first byte chooses the format. If a scan
// accepts the file, each restart point is tried: the data from this point to the next one must be
// the same whether the read begins at this point or at the beginning of the file. The first of
// these reads gets no bytes of the file after the next point.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/compression/deflate.h"
#include "core/compression/zstd.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "tests/fuzz/fuzzer.h"

namespace {

constexpr uint64_t kSpacing = 100;
constexpr uint64_t kMaxChunkBytes = 100'000;
constexpr size_t kMaxPoints = 200;

}  // namespace

SYSTOLE_FUZZER(compressed, const uint8_t* data, size_t size) {
  using namespace systole;
  if (size == 0) return 0;
  constexpr Compression kKinds[] = {Compression::kGzip, Compression::kZlib, Compression::kZstd};
  const Compression compression = kKinds[data[0] % 3];
  const absl::string_view compressed(reinterpret_cast<const char*>(data) + 1, size - 1);
  const MemorySource file((std::string(compressed)));
  std::vector<std::string> windows = {""};
  const auto keep = [&](absl::string_view window) -> absl::Status {
    windows.emplace_back(window);
    if (windows.size() <= kMaxPoints) return absl::OkStatus();
    return absl::ResourceExhaustedError("enough");
  };
  RestartScan scan(kSpacing, kMaxChunkBytes, keep);
  const absl::Status scanned = compression == Compression::kZstd
                                   ? ScanZstd(file, scan)
                                   : ScanDeflate(file, compression, scan);
  if (!scanned.ok()) return 0;
  const RestartPoints found = std::move(scan).Take();
  SYSTOLE_CHECK(found.largest_chunk_bytes() <= kMaxChunkBytes);
  SYSTOLE_CHECK(found.chunks() == windows.size());

  // The bytes of the chunks [first, last], read from the first chunk's restart point.
  const auto read = [&](size_t first, size_t last) {
    const RestartPoint& point = found.points[first];
    const bool to_end = last + 1 == found.chunks();
    std::string out((to_end ? found.size_bytes : found.points[last + 1].offset) - point.offset, 0);
    const uint64_t begin = point.compressed_bit / 8;
    const uint64_t end =
        to_end ? compressed.size() : (found.points[last + 1].compressed_bit + 7) / 8;
    const MemorySource front(std::string(compressed.substr(0, end)));
    const absl::StatusOr<size_t> done =
        compression == Compression::kZstd
            ? DecompressZstd(compressed.substr(begin, end - begin), absl::MakeSpan(out))
            : InflateAt(front, compression, point, windows[first], absl::MakeSpan(out));
    SYSTOLE_CHECK(done.ok() && *done == out.size());
    return out;
  };
  const std::string whole = read(0, found.chunks() - 1);
  for (size_t chunk = 0; chunk < found.chunks(); ++chunk) {
    const std::string part = read(chunk, chunk);
    SYSTOLE_CHECK(part == whole.substr(found.points[chunk].offset, part.size()));
  }
  return 0;
}
