#include "core/image/huffman_decoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/image/huffman_tables.h"
#include "core/status/check.h"

// No vectors here, but shifts by a register's content are cheap from AVX2 on (BMI2).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/image/huffman_decoder.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"

#ifndef SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_CC_ONCE_
#define SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_CC_ONCE_
namespace systole {
namespace {

// An MCU has at most 10 blocks of 64 coefficients, each of a code and a value of at most 16 bits.
constexpr int64_t kMaxMcuBytes = int64_t{HuffmanScan::kMaxBlocks} * 64 * (16 + 16) / 8;
constexpr int64_t kWindowBytes = sizeof(uint64_t);
// Small enough to stay in the first-level cache beside the tables.
constexpr int64_t kBufferBytes = 8192;

}  // namespace

struct HuffmanDecoder::State {
  template <bool kStore>
  HWY_INLINE bool TakeBlocks(int16_t (*const* blocks)[64]);

  bool BeginMcu();
  void StartInterval();
  bool Restart();
  void Fill();
  int64_t BitsLeft() const { return (buffer_end - bits.next) * 8 + bits.count; }

  HuffmanScan scan;
  std::array<std::unique_ptr<huffman::DcTable>, HuffmanScan::kMaxTables> dc_tables;
  std::array<std::unique_ptr<huffman::AcTable>, HuffmanScan::kMaxTables> ac_tables;
  size_t next_byte = 0;    // Of scan.bytes: not yet in the buffer.
  bool at_marker = false;  // There: a marker,
  bool at_end = false;     // or nothing.
  // Entropy-coded bytes without stuffing, followed by zeros.
  std::vector<uint8_t> buffer = std::vector<uint8_t>(kBufferBytes + kMaxMcuBytes + kWindowBytes);
  const uint8_t* buffer_end = nullptr;  // Of the bytes in it.
  huffman::BitReader bits;
  int dc_predictors[4] = {};
  int64_t mcus_to_restart = 0;
  int next_restart = 0;
};

template <bool kStore>
HWY_INLINE bool HuffmanDecoder::State::TakeBlocks(int16_t (*const* blocks)[64]) {
  huffman::BitReader reader = bits;  // In registers.
  reader.Refill();
  for (int i = 0; i < scan.num_blocks; ++i) {
    const HuffmanScan::Block& block = scan.blocks[i];
    int& dc = dc_predictors[block.component];
    if (!dc_tables[block.dc_table]->Take(reader, &dc)) return false;
    const huffman::AcTable& ac_table = *ac_tables[block.ac_table];
    if (kStore && block.wanted) {
      (*blocks[i])[0] = static_cast<int16_t>(dc);
      if (!ac_table.Take<true>(reader, *blocks[i])) return false;
    } else if (!ac_table.Take<false>(reader, nullptr)) {
      return false;
    }
  }
  bits = reader;
  return BitsLeft() >= 0;
}

}  // namespace systole
#endif  // SYSTOLE_CORE_IMAGE_HUFFMAN_DECODER_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

bool StoreBlocks(HuffmanDecoder::State& state, int16_t (*const* blocks)[64]) {
  return state.TakeBlocks<true>(blocks);
}
bool SkipBlocks(HuffmanDecoder::State& state) { return state.TakeBlocks<false>(nullptr); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(StoreBlocks);
HWY_EXPORT(SkipBlocks);

template <typename Table>
void Build(const HuffmanCodes& codes, std::unique_ptr<Table>& table) {
  if (table != nullptr && std::memcmp(&codes, &table->long_codes.codes, sizeof(codes)) == 0) return;
  table = std::make_unique<Table>(codes);
}

}  // namespace

void HuffmanDecoder::State::StartInterval() {
  at_marker = false;
  at_end = false;
  buffer_end = buffer.data();
  bits = {.next = buffer_end};
  std::fill(std::begin(dc_predictors), std::end(dc_predictors), 0);
  mcus_to_restart = scan.restart_interval;
}

// Moves what is not yet read to the front and appends entropy-coded bytes without the zeros stuffed
// after 255 (T.81, B.1.1.5).
void HuffmanDecoder::State::Fill() {
  const size_t unread = static_cast<size_t>(buffer_end - bits.next);
  std::memmove(buffer.data(), bits.next, unread);
  bits.next = buffer.data();
  uint8_t* out = buffer.data() + unread;
  uint8_t* const full = buffer.data() + kBufferBytes;
  const absl::string_view bytes = scan.bytes;
  while (out < full && !at_marker && !at_end) {
    const absl::string_view rest = bytes.substr(next_byte, static_cast<size_t>(full - out));
    const size_t plain = std::min(rest.find('\xff'), rest.size());
    std::memcpy(out, rest.data(), plain);
    out += plain;
    next_byte += plain;
    if (next_byte + 1 >= bytes.size()) {
      at_end = true;
    } else if (plain < rest.size()) {
      at_marker = bytes[next_byte + 1] != 0;
      if (at_marker) break;
      *out++ = 0xff;
      next_byte += 2;
    }
  }
  buffer_end = out;
  if (at_marker || at_end) std::memset(out, 0, kMaxMcuBytes + kWindowBytes);
}

bool HuffmanDecoder::State::Restart() {
  if (!at_marker || BitsLeft() >= 8) return false;
  if (static_cast<uint8_t>(scan.bytes[next_byte + 1]) != 0xd0 + next_restart) return false;
  next_byte += 2;
  next_restart = (next_restart + 1) % 8;
  StartInterval();
  return true;
}

// Afterwards the buffer holds a whole MCU, or all bytes before a marker and zeros for the rest of
// an MCU. Where the bytes end without a marker libjpeg's word depends on how far it reads ahead.
bool HuffmanDecoder::State::BeginMcu() {
  if (scan.restart_interval != 0) {
    if (mcus_to_restart == 0 && !Restart()) return false;
    --mcus_to_restart;
  }
  if (buffer_end - bits.next >= kMaxMcuBytes || at_marker) return true;
  if (!at_end) Fill();
  return buffer_end - bits.next >= kMaxMcuBytes || at_marker;
}

HuffmanDecoder::HuffmanDecoder() : state_(std::make_unique<State>()) {}
HuffmanDecoder::~HuffmanDecoder() = default;

void HuffmanDecoder::Start(const HuffmanScan& scan) {
  SYSTOLE_CHECK(scan.num_blocks >= 1 && scan.num_blocks <= HuffmanScan::kMaxBlocks);
  State& s = *state_;
  s.scan = scan;
  for (int i = 0; i < scan.num_blocks; ++i) {
    const HuffmanScan::Block& block = scan.blocks[i];
    Build(scan.dc_codes[block.dc_table], s.dc_tables[block.dc_table]);
    Build(scan.ac_codes[block.ac_table], s.ac_tables[block.ac_table]);
  }
  s.next_byte = 0;
  s.next_restart = 0;
  s.StartInterval();
}

bool HuffmanDecoder::Decode(int16_t (*const* blocks)[64]) {
  return state_->BeginMcu() && HWY_DYNAMIC_DISPATCH(StoreBlocks)(*state_, blocks);
}

bool HuffmanDecoder::Skip() {
  return state_->BeginMcu() && HWY_DYNAMIC_DISPATCH(SkipBlocks)(*state_);
}

std::optional<size_t> HuffmanDecoder::End() {
  State& s = *state_;
  if (!s.at_marker && !s.at_end) s.Fill();
  if (!s.at_marker || s.BitsLeft() >= 8) return std::nullopt;
  return s.next_byte;
}

}  // namespace systole
#endif  // HWY_ONCE
