#include "core/compression/restart_points.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/memory/little_endian.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr size_t kPointBytes = 24;
constexpr uint64_t kMagic = 0x3374'7372'7473'7973;  // "systrst3"

// The numbers of the trailer, in their order.
enum Field {
  kFileBytes,
  kIdentity,
  kCompression,
  kSizeBytes,
  kPoints,
  kHash,
  kMagicField,
  kNumFields
};
static_assert(kNumFields * sizeof(uint64_t) == kRestartTrailerBytes);

uint64_t FieldOf(absl::string_view trailer, Field field) {
  return LoadU64Le(trailer.data() + field * sizeof(uint64_t));
}

void Append(std::string& bytes, uint64_t value) {
  std::array<char, sizeof(value)> raw;
  StoreU64Le(value, raw.data());
  bytes.append(raw.data(), raw.size());
}

}  // namespace

uint64_t RestartPoints::largest_chunk_bytes() const {
  uint64_t largest = 0;
  for (size_t i = 0; i < chunks(); ++i) largest = std::max(largest, chunk_bytes(i));
  return largest;
}

size_t RestartPoints::ChunkAt(uint64_t offset) const {
  const auto behind =
      std::upper_bound(points.begin(), points.end(), offset,
                       [](uint64_t at, const RestartPoint& point) { return at < point.offset; });
  return static_cast<size_t>(behind - points.begin()) - 1;
}

void RestartScan::Offer(const RestartPoint& point, absl::string_view window) {
  offered_ = point;
  if (!window.empty()) offered_->window_hash = Xxh3(window);
  window_.assign(window.data(), window.size());
}

absl::Status RestartScan::Reach(uint64_t size_bytes) {
  found_.size_bytes = size_bytes;
  if (offered_.has_value() && offered_->offset < size_bytes) {
    if (found_.points.size() == kMaxRestartPoints) {
      return absl::ResourceExhaustedError(
          absl::StrCat("it holds more than ", size_bytes >> 30,
                       " GiB decompressed, too much for restart points; make smaller shards"));
    }
    found_.points.push_back(*offered_);
    offered_.reset();
    SYSTOLE_RETURN_IF_ERROR(windows_(window_));
  }
  if (size_bytes - last().offset <= max_chunk_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the frame or block near byte ", last().compressed_bit / 8,
                   " decompresses to more than ", max_chunk_bytes_,
                   " bytes, and must be decompressed as a whole; give a cache of "
                   "twice its size (systole-server --decompression-cache), or write the shard anew "
                   "in small frames, as `systole pack --compression zstd` does"));
}

std::string RestartTableBytes(const StoredState& file, Compression compression,
                              const RestartPoints& points) {
  std::string bytes;
  bytes.reserve(points.points.size() * kPointBytes + kRestartTrailerBytes);
  for (const RestartPoint& point : points.points) {
    Append(bytes, point.compressed_bit);
    Append(bytes, point.offset);
    Append(bytes, point.window_hash);
  }
  Append(bytes, file.size_bytes);
  Append(bytes, Xxh3(file.identity));
  Append(bytes, static_cast<uint64_t>(compression));
  Append(bytes, points.size_bytes);
  Append(bytes, points.points.size());
  Append(bytes, Xxh3(bytes));
  Append(bytes, kMagic);
  return bytes;
}

absl::StatusOr<uint64_t> RestartTableSize(absl::string_view trailer) {
  if (trailer.size() != kRestartTrailerBytes || FieldOf(trailer, kMagicField) != kMagic) {
    return absl::InvalidArgumentError("it does not end like a file of restart points");
  }
  const uint64_t points = FieldOf(trailer, kPoints);
  if (points == 0 || points > kMaxRestartPoints) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", points, " restart points"));
  }
  return points * kPointBytes + kRestartTrailerBytes;
}

absl::StatusOr<RestartPoints> ParseRestartTable(absl::string_view bytes, const StoredState& file,
                                                Compression compression, uint64_t max_chunk_bytes) {
  if (bytes.size() < kRestartTrailerBytes) {
    return absl::InvalidArgumentError("it is too short to hold restart points");
  }
  const absl::string_view trailer = bytes.substr(bytes.size() - kRestartTrailerBytes);
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, RestartTableSize(trailer));
  if (size != bytes.size() ||
      Xxh3(bytes.substr(0, bytes.size() - 2 * sizeof(uint64_t))) != FieldOf(trailer, kHash)) {
    return absl::InvalidArgumentError("its checksum does not match");
  }
  if (FieldOf(trailer, kFileBytes) != file.size_bytes ||
      FieldOf(trailer, kIdentity) != Xxh3(file.identity) || file.identity.empty() ||
      FieldOf(trailer, kCompression) != static_cast<uint64_t>(compression)) {
    return absl::FailedPreconditionError("it was made for another state of the shard");
  }
  RestartPoints found;
  found.size_bytes = FieldOf(trailer, kSizeBytes);
  for (size_t at = 0; at + kRestartTrailerBytes < bytes.size(); at += kPointBytes) {
    found.points.push_back({.compressed_bit = LoadU64Le(bytes.data() + at),
                            .offset = LoadU64Le(bytes.data() + at + 8),
                            .window_hash = LoadU64Le(bytes.data() + at + 16)});
    const RestartPoint& point = found.points.back();
    const bool good = found.points.size() == 1
                          ? point == RestartPoint()
                          : point.offset > found.points.end()[-2].offset &&
                                point.compressed_bit > found.points.end()[-2].compressed_bit &&
                                point.offset < found.size_bytes;
    if (!good || point.compressed_bit / 8 > file.size_bytes) {
      return absl::InvalidArgumentError("its restart points are out of order");
    }
  }
  if (found.largest_chunk_bytes() > max_chunk_bytes) {
    return absl::InvalidArgumentError("its restart points lie too far apart");
  }
  return found;
}

}  // namespace systole
