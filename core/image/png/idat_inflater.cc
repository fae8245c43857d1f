#include "core/image/png/idat_inflater.h"

#include <isa-l/igzip_lib.h>

#include <limits>
#include <optional>

#include "core/checksum/upper_parts.h"
#include "core/image/png/png_chunk.h"

namespace systole {
namespace {

// Many writers make chunks of 8 KiB. ISA-L copies the last 32 KiB of its output after each piece of
// input, so small chunks are joined up to this size.
constexpr size_t kJoinedBytes = 128 << 10;
// The most bytes that the format allows in a chunk.
constexpr size_t kMaxIdatBytes = (size_t{1} << 31) - 1;

}  // namespace

IdatInflater::IdatInflater(absl::string_view png)
    : rest_(png.substr(kPngSignatureBytes)),
      state_(std::make_unique_for_overwrite<inflate_state>()) {
  isal_inflate_init(state_.get());  // Sets all but the tables, which need not be set.
  state_->crc_flag = ISAL_ZLIB;
  std::optional<PngChunkView> chunk = FirstPngChunk(rest_);
  for (; chunk.has_value() && chunk->type != "IDAT"; chunk = FirstPngChunk(rest_)) {
    rest_ = chunk->rest;
  }
}

IdatInflater::~IdatInflater() = default;

bool IdatInflater::Read(uint8_t* to, size_t bytes) {
  if (bytes > std::numeric_limits<uint32_t>::max()) is_good_ = false;
  state_->next_out = to;
  state_->avail_out = static_cast<uint32_t>(bytes);
  is_good_ = is_good_ && Advance() && state_->avail_out == 0;
  return is_good_;
}

bool IdatInflater::AtEnd() {
  // Asks for one byte more than the rows have. ISA-L compares the checksum only after all output is
  // taken, and the code that ends the stream may come after the last row.
  uint8_t too_much;
  state_->next_out = &too_much;
  state_->avail_out = 1;
  return is_good_ && Advance() && state_->avail_out == 1;
}

bool IdatInflater::Advance() {
  while (state_->block_state != ISAL_BLOCK_FINISH) {
    const int result = isal_inflate(state_.get());
    ClearUpperParts();
    if (result != ISAL_DECOMP_OK) return false;
    if (state_->avail_out == 0) return true;
    if (state_->block_state != ISAL_BLOCK_FINISH && !NextInput()) return false;
  }
  return true;
}

bool IdatInflater::NextInput() {
  if (state_->avail_in > 0) return false;  // ISA-L stopped without a reason.
  // The data of the next chunk.
  const auto next_chunk = [this](size_t most_bytes) -> std::optional<absl::string_view> {
    const std::optional<PngChunkView> chunk = FirstPngChunk(rest_);
    if (!chunk.has_value() || chunk->type != "IDAT" || chunk->data.size() > most_bytes ||
        !chunk->IsIntact()) {
      return std::nullopt;
    }
    rest_ = chunk->rest;
    return chunk->data;
  };
  std::optional<absl::string_view> data = next_chunk(kMaxIdatBytes);
  if (!data.has_value()) return false;
  absl::string_view input = *data;
  if (input.size() < kJoinedBytes) {
    joined_.assign(input.data(), input.size());
    while ((data = next_chunk(kJoinedBytes - joined_.size())).has_value()) {
      joined_.append(data->data(), data->size());
    }
    input = joined_;
  }
  if (!has_begun_ && !input.empty()) {
    // ISA-L does not look at the window's size. A window is at most 2^(8 + 7) bytes large.
    if (static_cast<uint8_t>(input[0]) >> 4 > 7) return false;
    has_begun_ = true;
  }
  // ISA-L takes a pointer that is not const, but only reads from it.
  state_->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(input.data()));
  state_->avail_in = static_cast<uint32_t>(input.size());
  return true;
}

}  // namespace systole
