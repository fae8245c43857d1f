// Makes PNG files of every kind, good ones and damaged ones. Each row has a random filter and
// random bytes, so every filter comes next to every other filter.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_IMAGE_PNG_RANDOM_PNG_H_
#define SYSTOLE_TESTS_CORE_IMAGE_PNG_RANDOM_PNG_H_

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>

#include "core/status/check.h"
#include "tests/core/image/png/png_builder.h"

namespace systole {

using RandomBits = std::mt19937;

inline uint32_t Below(RandomBits& bits, uint32_t end) {
  return static_cast<uint32_t>(bits()) % end;
}

struct PngKind {
  int width = 1;
  int height = 1;
  int bit_depth = 8;
  int colour_type = 2;
  bool interlaced = false;
};

inline PngKind RandomKind(RandomBits& bits, int max_side) {
  constexpr int kKinds[][2] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
                               {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
  const auto& kind = kKinds[Below(bits, std::size(kKinds))];
  return {.width = 1 + static_cast<int>(Below(bits, max_side)),
          .height = 1 + static_cast<int>(Below(bits, max_side)),
          .bit_depth = kind[1],
          .colour_type = kind[0],
          .interlaced = Below(bits, 4) == 0};
}

inline void AppendRows(RandomBits& bits, const PngKind& kind, int width, int height,
                       std::string& rows) {
  constexpr int kSamples[] = {1, 0, 3, 1, 2, 0, 4};
  if (width == 0 || height == 0) return;  // An empty pass has no rows.
  const uint32_t values = Below(bits, 2) == 0 ? 256 : 1 + Below(bits, 4);
  const size_t row_bytes =
      (static_cast<size_t>(width) * kSamples[kind.colour_type] * kind.bit_depth + 7) / 8;
  for (int y = 0; y < height; ++y) {
    rows.push_back(static_cast<char>(Below(bits, 5)));
    for (size_t i = 0; i < row_bytes; ++i) rows.push_back(static_cast<char>(Below(bits, values)));
  }
}

// Filtered rows for a file of this kind.
inline std::string RandomRows(RandomBits& bits, const PngKind& kind) {
  std::string rows;
  if (!kind.interlaced) {
    AppendRows(bits, kind, kind.width, kind.height, rows);
    return rows;
  }
  constexpr int kPasses[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};  // x, y, steps
  for (const auto& [x, y, step_x, step_y] : kPasses) {
    AppendRows(bits, kind, (kind.width - x + step_x - 1) / step_x,
               (kind.height - y + step_y - 1) / step_y, rows);
  }
  return rows;
}

// The rows as a zlib stream, compressed with random settings.
inline std::string Deflated(RandomBits& bits, const std::string& rows) {
  z_stream stream = {};
  SYSTOLE_CHECK(deflateInit2(&stream, static_cast<int>(Below(bits, 10)), Z_DEFLATED,
                             9 + static_cast<int>(Below(bits, 7)),
                             1 + static_cast<int>(Below(bits, 9)),
                             static_cast<int>(Below(bits, 5))) == Z_OK);
  std::string out(deflateBound(&stream, rows.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rows.data()));
  stream.avail_in = static_cast<uInt>(rows.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  SYSTOLE_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// A file of this kind whose IDAT chunks have at most `chunk_bytes` bytes.
inline std::string PngFile(const PngKind& kind, const std::string& deflated, size_t chunk_bytes,
                           const std::string& chunks_before = "") {
  const std::string rest = {static_cast<char>(kind.bit_depth), static_cast<char>(kind.colour_type),
                            0, 0, static_cast<char>(kind.interlaced)};
  std::string png = "\x89PNG\r\n\x1a\n" +
                    PngChunk("IHDR", BigEndian(kind.width) + BigEndian(kind.height) + rest) +
                    chunks_before;
  if (kind.colour_type == 3) {
    std::string palette;  // Some indices have no colour.
    for (int i = 0; i < 3 * std::max(1, (1 << kind.bit_depth) * 2 / 3); ++i) {
      palette.push_back(static_cast<char>(i * 37 + 1));
    }
    png += PngChunk("PLTE", palette);
  }
  for (size_t at = 0; at < deflated.size(); at += chunk_bytes) {
    png += PngChunk("IDAT", deflated.substr(at, chunk_bytes));
    if (at == 0) png += PngChunk("IDAT", "");  // A chunk may be empty.
  }
  return png + PngChunk("IEND", "");
}

inline void FlipBit(RandomBits& bits, std::string& bytes) {
  const uint32_t at = Below(bits, static_cast<uint32_t>(bytes.size()));
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << Below(bits, 8)));
}

// A file of any kind. Fourteen of twenty are damaged in some way.
inline std::string RandomPng(RandomBits& bits, int max_side) {
  const PngKind kind = RandomKind(bits, max_side);
  std::string rows = RandomRows(bits, kind);
  const uint32_t damage = Below(bits, 20);
  if (damage == 0) rows.resize(Below(bits, static_cast<uint32_t>(rows.size())));  // Too few.
  if (damage == 1) rows.append(1 + Below(bits, 5), '\1');                         // Too many.
  if (damage == 2) rows[0] = static_cast<char>(Below(bits, 256));                 // Another filter.
  std::string deflated = Deflated(bits, rows);
  if (damage == 5) deflated.back() ^= 1;  // The stream's checksum.
  if (damage == 6) deflated += "behind the stream";
  if (damage == 7) deflated[0] = static_cast<char>(0x88), deflated[1] = 0x1c;  // The window size.
  std::string before;
  if (Below(bits, 4) == 0) before += PngChunk("tEXt", std::string("Comment\0text", 12));
  if (Below(bits, 8) == 0) before += PngChunk("gAMA", BigEndian(45455));
  if (Below(bits, 8) == 0) before += PngChunk("gAMA", "another length");
  if (damage == 8) before += PngChunk("CRIT", "unknown, and needed");
  std::string png =
      PngFile(kind, deflated, 1 + Below(bits, Below(bits, 2) == 0 ? 40 : 40000), before);
  if (damage == 3 || damage == 4 || damage == 9) FlipBit(bits, png);
  if (damage >= 10 && damage < 13) png.resize(Below(bits, static_cast<uint32_t>(png.size())));
  if (damage == 13) png.resize(png.size() - Below(bits, 24));  // Cut in the end marker or near it.
  return png;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_IMAGE_PNG_RANDOM_PNG_H_
