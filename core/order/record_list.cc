#include "core/order/record_list.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/types/span.h"
#include "core/checksum/xxh3.h"
#include "core/status/check.h"

namespace systole {
namespace {

constexpr int64_t kWordBits = 64;
constexpr int64_t kBlockWords = 8;  // A cache line.
// The search for a position begins at the block of the sample before it.
constexpr int64_t kRanksPerSample = 512;

// In byte i: how many bits are set in bytes 0 to i of `word`. A processor may lack an instruction
// that counts bits, and then these steps are faster than the library's function.
uint64_t BitsUpToEachByte(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  word -= (word >> 1) & (0x55 * kOnes);
  word = (word & (0x33 * kOnes)) + ((word >> 2) & (0x33 * kOnes));
  return ((word + (word >> 4)) & (0x0F * kOnes)) * kOnes;
}

int64_t BitsIn(uint64_t word) { return static_cast<int64_t>(BitsUpToEachByte(word) >> 56); }

// The place of the bit number `rank` that is set in `word`. REQUIRES: there is one.
int BitAt(uint64_t word, int64_t rank) {
  const uint64_t sums = BitsUpToEachByte(word);
  int begin = 0;
  while (static_cast<int64_t>((sums >> begin) & 0xFF) <= rank) begin += 8;
  if (begin > 0) rank -= static_cast<int64_t>((sums >> (begin - 8)) & 0xFF);
  word >>= begin;
  for (; rank > 0; --rank) word &= word - 1;
  return begin + std::countr_zero(word);
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
  for (int64_t begin = 0; begin < num_words; begin += kBlockWords) {
    ranks_.push_back(size_);
    const auto block = absl::MakeConstSpan(words_).subspan(static_cast<size_t>(begin), kBlockWords);
    for (const uint64_t word : block) size_ += BitsIn(word);
    while (static_cast<int64_t>(samples_.size()) * kRanksPerSample < size_) {
      samples_.push_back(static_cast<int64_t>(ranks_.size()) - 1);
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
  const auto first = ranks_.begin() + samples_[sample];
  const auto last =
      sample + 1 < samples_.size() ? ranks_.begin() + samples_[sample + 1] + 1 : ranks_.end();
  const auto block = std::upper_bound(first, last, rank) - 1;
  int64_t left = rank - *block;
  auto word = static_cast<size_t>((block - ranks_.begin()) * kBlockWords);
  for (;; ++word) {
    const int64_t ones = BitsIn(words_[word]);
    if (left < ones) break;
    left -= ones;
  }
  return static_cast<int64_t>(word) * kWordBits + BitAt(words_[word], left);
}

}  // namespace systole
