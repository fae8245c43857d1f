#include "core/image/jpeg/huffman_decoder.h"

#include <algorithm>
#include <cstring>

#include "core/image/jpeg/huffman_loops.h"
#include "core/image/jpeg/huffman_tables.h"
#include "core/interrupt/interrupt.h"
#include "core/status/check.h"

namespace systole {
namespace huffman {

void ScanState::StartInterval() {
  at_marker = false;
  at_end = false;
  buffer_end = buffer.data();
  cursor.bits = {.next = buffer_end};
  std::fill(std::begin(dc_predictors), std::end(dc_predictors), 0);
  mcus_to_restart = scan.restart_interval;
}

// Moves the bytes that were not read yet to the front of the buffer. Then appends entropy-coded
// bytes without the zeros that are stuffed after 255 (T.81, B.1.1.5).
void ScanState::Fill() {
  const size_t unread = static_cast<size_t>(buffer_end - cursor.bits.next);
  std::memmove(buffer.data(), cursor.bits.next, unread);
  cursor.bits.next = buffer.data();
  uint8_t* out = buffer.data() + unread;
  uint8_t* const full = buffer.data() + kBufferBytes;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(scan.bytes.data());
  const size_t size = scan.bytes.size();
  while (out < full && !at_marker && !at_end) {
    const size_t most = std::min(size - next_byte, static_cast<size_t>(full - out));
    const size_t plain = CopyPlain(bytes + next_byte, most, out);
    out += plain;
    next_byte += plain;
    if (plain == most && next_byte + 1 < size) continue;  // The buffer is full.
    const size_t first = next_byte;
    // Any number of fill bytes of 255 may precede a marker.
    while (next_byte + 1 < size && bytes[next_byte + 1] == 0xff) ++next_byte;
    if (next_byte + 1 >= size) {
      at_end = true;
    } else if (bytes[next_byte + 1] != 0) {
      at_marker = true;
    } else if (next_byte != first) {
      // A stuffed zero after fill bytes ends the decoding, because libjpeg's result then depends on
      // how far libjpeg reads ahead.
      at_end = true;
    } else {
      *out++ = 0xff;
      next_byte += 2;
    }
  }
  buffer_end = out;
  if (at_marker || at_end) std::memset(out, 0, kMaxMcuBytes + kWindowBytes);
}

bool ScanState::Restart() {
  if (!at_marker || BitsLeft() >= 8) return false;
  if (static_cast<uint8_t>(scan.bytes[next_byte + 1]) != 0xd0 + next_restart) return false;
  next_byte += 2;
  next_restart = (next_restart + 1) % 8;
  StartInterval();
  return true;
}

bool ScanState::NextMcu() {
  if (in_mcu) {
    in_mcu = false;
    if (BitsLeft() < 0) {
      GiveUp();
      return false;
    }
    if (wanted) values_end += mcu_values();
    decoded.Advance(scan.columns);
    // The interrupt is checked once a row. libjpeg, which continues after GiveUp(), checks the
    // interrupt as well.
    if (decoded.column == 0 && InterruptRequested()) {
      GiveUp();
      return false;
    }
  }
  if (taken == decoded) values_begin = values_end = 0;
  wanted = IsWanted(decoded);
  active = decoded.row < end_row && (!wanted || values_end + mcu_values() <= max_values);
  if (!active) return false;
  if (scan.restart_interval != 0) {
    if (mcus_to_restart == 0 && !Restart()) {
      GiveUp();
      return false;
    }
    --mcus_to_restart;
  }
  // After this, the buffer holds a whole MCU, or all bytes before a marker and zeros for the rest
  // of an MCU. If the bytes end without a marker, this decoder gives up. In this case libjpeg's
  // result depends on how far libjpeg reads ahead.
  if (buffer_end - cursor.bits.next < kMaxMcuBytes && !at_marker) {
    if (!at_end) Fill();
    if (buffer_end - cursor.bits.next < kMaxMcuBytes && !at_marker) {
      GiveUp();
      return false;
    }
  }
  for (size_t i = 0; wanted && i < num_zeroed; ++i) {
    std::memset(values.data() + values_end + zeroed[i].first * kBlockValues, 0,
                zeroed[i].count * kBlockValues * sizeof(int16_t));
  }
  in_mcu = true;
  next_block = 0;
  return true;
}

}  // namespace huffman

namespace {

// At most this many coefficients are decoded before Take() returns them. They belong to about
// 350,000 pixels. The coefficients of two decoders fit into a second-level cache of 2 MiB.
constexpr size_t kMaxAheadValues = (size_t{1} << 20) / sizeof(int16_t);

template <typename Table>
void Build(const HuffmanCodes& codes, std::unique_ptr<Table>& table) {
  if (table != nullptr && std::memcmp(&codes, &table->long_codes.codes, sizeof(codes)) == 0) return;
  table = std::make_unique<Table>(codes);
}

}  // namespace

HuffmanDecoder::HuffmanDecoder() : state_(std::make_unique<huffman::ScanState>()) {}
HuffmanDecoder::~HuffmanDecoder() = default;

void HuffmanDecoder::Start(const HuffmanScan& scan) {
  SYSTOLE_CHECK(scan.num_blocks >= 1 && scan.num_blocks <= HuffmanScan::kMaxBlocks);
  SYSTOLE_CHECK(scan.columns >= 1 && scan.rows >= 1);
  huffman::ScanState& s = *state_;
  s.scan = scan;
  for (int i = 0; i < scan.num_blocks; ++i) {
    const HuffmanScan::Block& block = scan.blocks[i];
    Build(scan.dc_codes[block.dc_table], s.dc_tables[block.dc_table]);
    Build(scan.ac_codes[block.ac_table], s.ac_tables[block.ac_table]);
  }
  s.next_byte = 0;
  s.next_restart = 0;
  s.StartInterval();
  s.end_row = std::min(scan.end_row, scan.rows);
  s.active = s.end_row > 0;
  s.failed = s.in_mcu = s.in_block = false;
  s.mode = huffman::Mode::kSkip;
  s.has_dc_only = false;
  s.num_zeroed = 0;
  for (int i = 0; i < scan.num_blocks; ++i) {
    if (scan.blocks[i].dc_only) {
      s.has_dc_only = true;
    } else if (i == 0 || scan.blocks[i - 1].dc_only) {
      s.zeroed[s.num_zeroed++] = {.first = static_cast<size_t>(i), .count = 1};
    } else {
      ++s.zeroed[s.num_zeroed - 1].count;
    }
  }
  s.next_block = scan.num_blocks;
  s.decoded = s.taken = {};
  const int64_t wanted_mcus = int64_t{std::max(0, s.end_row - scan.first_row)} *
                              std::max(0, scan.end_column - scan.first_column);
  // Room for at least one MCU. Take() needs it even if nothing of the scan is decoded ahead.
  const size_t want = std::clamp(static_cast<size_t>(wanted_mcus) * s.mcu_values(), s.mcu_values(),
                                 kMaxAheadValues);
  if (s.values.size() < want) s.values.resize(want);
  s.max_values = s.values.size();
  if (scan.rows_ahead > 0) {
    const int64_t mcus =
        int64_t{scan.rows_ahead} * std::max(1, scan.end_column - scan.first_column);
    s.max_values = std::min(s.max_values, static_cast<size_t>(mcus) * s.mcu_values());
  }
}

void HuffmanDecoder::DecodeAhead(HuffmanDecoder& a, HuffmanDecoder& b) {
  huffman::DecodeTogether(*a.state_, *b.state_);
}

bool HuffmanDecoder::is_ahead() const { return !state_->active; }

int HuffmanDecoder::decoded_rows() const { return state_->decoded.row; }

void HuffmanDecoder::GoFurtherAhead() {
  huffman::ScanState& s = *state_;
  SYSTOLE_CHECK(!s.active);
  if (s.failed) return;
  const size_t waiting = s.values_end - s.values_begin;
  std::memmove(s.values.data(), s.values.data() + s.values_begin, waiting * sizeof(int16_t));
  s.values_begin = 0;
  s.values_end = waiting;
  // Take() may have set another end_row.
  s.end_row = std::min(s.scan.end_row, s.scan.rows);
  s.active = s.decoded.row < s.end_row && waiting + s.mcu_values() <= s.max_values;
}

bool HuffmanDecoder::Take(const Block** blocks) {
  huffman::ScanState& s = *state_;
  if (s.taken == s.decoded) {
    // Decodes one row only, so that its coefficients stay in the first-level cache.
    s.end_row = s.decoded.row + 1;
    s.active = !s.failed && s.end_row <= s.scan.rows;
    huffman::DecodeAlone(s);
    if (s.taken == s.decoded) return false;
  }
  *blocks = nullptr;
  if (s.IsWanted(s.taken)) {
    *blocks = reinterpret_cast<const Block*>(s.values.data() + s.values_begin);
    s.values_begin += s.mcu_values();
  }
  s.taken.Advance(s.scan.columns);
  return true;
}

std::optional<size_t> HuffmanDecoder::End() {
  huffman::ScanState& s = *state_;
  if (!s.at_marker && !s.at_end) s.Fill();
  if (!s.at_marker || s.BitsLeft() >= 8) return std::nullopt;
  return s.next_byte;
}

}  // namespace systole
