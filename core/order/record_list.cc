#include "core/order/record_list.h"

#include <array>
#include <cstddef>
#include <utility>

#include "absl/types/span.h"
#include "core/checksum/xxh3.h"
#include "core/status/check.h"

namespace systole {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kBlockWords = 8;  // A cache line.
// samples_ has the block of every 512th position of the list. A search begins at such a block.
constexpr int64_t kRanksPerSample = 512;

// A word may hold several numbers side by side, so that one operation computes with all of them.
constexpr uint64_t kBytes = 0x0101010101010101;  // 1 in each of 8 bytes.
constexpr uint64_t kSums = 0x0040201008040201;   // 1 in each of 7 sums of 9 bits.
constexpr int kSumBits = 9;

// In byte i: how many bits are set in bytes 0 to i of `word`. A processor may lack an instruction
// that counts bits, and then these steps are faster than the library's function.
uint64_t BitsUpToEachByte(uint64_t word) {
  word -= (word >> 1) & (0x55 * kBytes);
  word = (word & (0x33 * kBytes)) + ((word >> 2) & (0x33 * kBytes));
  return ((word + (word >> 4)) & (0x0F * kBytes)) * kBytes;
}

int64_t BitsIn(uint64_t word) { return static_cast<int64_t>(BitsUpToEachByte(word) >> 56); }

// Entry 256 * r + b: the place of set bit number r, counted from 0, in a byte of value b.
constexpr std::array<uint8_t, 2048> PlacesInBytes() {
  std::array<uint8_t, 2048> places{};
  for (size_t byte = 0; byte < 256; ++byte) {
    size_t rank = 0;
    for (uint8_t bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1) != 0) places[256 * rank++ + byte] = bit;
    }
  }
  return places;
}
constexpr std::array<uint8_t, 2048> kPlaceInByte = PlacesInBytes();

// The place of set bit number `rank`, counted from 0, in `word`. REQUIRES: `word` has more than
// `rank` set bits.
int64_t BitAt(uint64_t word, uint64_t rank) {
  const uint64_t sums = BitsUpToEachByte(word);
  // The high bit of each byte whose sum is at most `rank`. Sums are at most 64.
  const uint64_t before = ((rank * kBytes | 0x80 * kBytes) - sums) & (0x80 * kBytes);
  const uint64_t begin = ((before >> 7) * kBytes >> 56) * 8;
  rank -= (sums << 8 >> begin) & 0xFF;
  return static_cast<int64_t>(begin + kPlaceInByte[256 * rank + (word >> begin & 0xFF)]);
}

// Returns the word that holds set bit number `rank` of a block, and makes `rank` the bit's number
// within that word. `sums` has 9 bits for each word but the last: how many bits of the block are
// set up to that word's end.
size_t WordAt(uint64_t sums, uint64_t& rank) {
  constexpr uint64_t kHigh = kSums << (kSumBits - 1);
  const uint64_t ranks = rank * kSums;
  // Below, `before` has the high bit of each sum that is at most `rank`. If the high bits of a sum
  // and of `rank` differ, they decide. If they are equal, the difference of the other bits decides.
  const uint64_t difference = (ranks | kHigh) - (sums & ~kHigh);
  const uint64_t before = ((ranks & ~sums) | (~(ranks ^ sums) & difference)) & kHigh;
  const auto word = static_cast<size_t>((before >> (kSumBits - 1)) * kSums >> 54 & 7);
  if (word > 0) rank -= sums >> (kSumBits * (word - 1)) & 0x1FF;
  return word;
}

}  // namespace

RecordList::RecordList(std::vector<uint64_t> words, int64_t num_positions)
    : num_positions_(num_positions), words_(std::move(words)) {
  const int64_t num_words = (num_positions + kWordBits - 1) / kWordBits;
  SYSTOLE_CHECK(num_positions >= 0 && static_cast<int64_t>(words_.size()) >= num_words);
  words_.resize(static_cast<size_t>(num_words));
  if (num_positions % kWordBits != 0) {
    words_.back() &= (uint64_t{1} << (num_positions % kWordBits)) - 1;
  }
  // A vector that has grown may hold up to twice the memory that the header promises.
  words_.shrink_to_fit();
  int64_t bits = 0;
  for (const uint64_t word : words_) bits += BitsIn(word);
  ranks_.reserve(static_cast<size_t>((num_words + kBlockWords - 1) / kBlockWords * 2));
  samples_.reserve(static_cast<size_t>((bits + kRanksPerSample - 1) / kRanksPerSample));
  for (int64_t begin = 0; begin < num_words; begin += kBlockWords) {
    ranks_.push_back(size_);
    const auto block = absl::MakeConstSpan(words_).subspan(static_cast<size_t>(begin), kBlockWords);
    uint64_t sums = 0;
    int64_t sum = 0;
    for (int64_t i = 0; i < kBlockWords; ++i) {
      if (i < static_cast<int64_t>(block.size())) sum += BitsIn(block[static_cast<size_t>(i)]);
      if (i + 1 < kBlockWords) sums |= static_cast<uint64_t>(sum) << (kSumBits * i);
    }
    ranks_.push_back(static_cast<int64_t>(sums));
    size_ += sum;
    while (static_cast<int64_t>(samples_.size()) * kRanksPerSample < size_) {
      samples_.push_back(begin / kBlockWords);
    }
  }
  Xxh3Hasher hasher;
  hasher.UpdateU64(static_cast<uint64_t>(num_positions));
  hasher.Update({reinterpret_cast<const char*>(words_.data()), words_.size() * sizeof(uint64_t)});
  hash_ = hasher.Digest64();
}

RecordList RecordList::OfUnknown(int64_t size, int64_t num_positions, uint64_t hash) {
  SYSTOLE_CHECK(size >= 0 && size <= num_positions);
  RecordList list;
  list.is_known_ = false;
  list.num_positions_ = num_positions;
  list.size_ = size;
  list.hash_ = hash;
  return list;
}

int64_t RecordList::At(int64_t rank) const {
  SYSTOLE_CHECK(rank >= 0 && rank < size_);
  if (!is_known_) return kUnknownRecord;
  const auto sample = static_cast<size_t>(rank / kRanksPerSample);
  auto block = static_cast<size_t>(samples_[sample]);
  size_t end = sample + 1 < samples_.size() ? static_cast<size_t>(samples_[sample + 1]) + 1
                                            : ranks_.size() / 2;
  while (end - block > 1) {
    const size_t middle = (block + end) / 2;
    (ranks_[2 * middle] <= rank ? block : end) = middle;
  }
  auto left = static_cast<uint64_t>(rank - ranks_[2 * block]);
  const size_t word =
      block * kBlockWords + WordAt(static_cast<uint64_t>(ranks_[2 * block + 1]), left);
  return static_cast<int64_t>(word) * kWordBits + BitAt(words_[word], left);
}

}  // namespace systole
