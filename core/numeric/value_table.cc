#include "core/numeric/value_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/numeric/bf16.h"
#include "core/numeric/canonical_nan.h"
#include "core/numeric/float16.h"

namespace systole {
namespace {

template <typename Entry>
void LookUp(const Entry* entries, absl::Span<const uint8_t> in, uint8_t* out) {
  for (size_t i = 0; i < in.size(); ++i) {
    std::memcpy(out + i * sizeof(Entry), &entries[in[i]], sizeof(Entry));
  }
}

}  // namespace

absl::StatusOr<ValueTable> ValueTable::Create(absl::Span<const float> entries, int64_t inner,
                                              PixelType type) {
  if (entries.empty() || entries.size() % kTableEntries != 0 ||
      entries.size() > size_t{kTableEntries} * kMaxTableChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table of values has ", entries.size(), " entries, want ", kTableEntries,
                     " for each of 1 to ", kMaxTableChannels, " channels"));
  }
  if (inner < 1) {
    return absl::InvalidArgumentError(absl::StrCat("inner is ", inner, ", want at least 1"));
  }
  if (type == PixelType::kUint8) {
    return absl::InvalidArgumentError("a table of values gives floats, not uint8");
  }
  ValueTable table;
  table.channels_ = static_cast<int64_t>(entries.size()) / kTableEntries;
  table.inner_ = inner;
  for (const float entry : entries) {
    const float value = CanonicalNan(entry);
    if (type == PixelType::kFloat32) {
      table.wide_.push_back(std::bit_cast<uint32_t>(value));
    } else {
      table.narrow_.push_back(type == PixelType::kFloat16 ? RoundToFloat16(value)
                                                          : RoundToBf16(value));
    }
  }
  return table;
}

void ValueTable::Apply(int64_t first, absl::Span<const uint8_t> in, uint8_t* out) const {
  if (wide_.empty()) {
    ApplyAs(narrow_, first, in, out);
  } else {
    ApplyAs(wide_, first, in, out);
  }
}

template <typename Entry>
void ValueTable::ApplyAs(const std::vector<Entry>& entries, int64_t first,
                         absl::Span<const uint8_t> in, uint8_t* out) const {
  if (channels_ == 1) return LookUp(entries.data(), in, out);
  size_t done = 0;
  while (done < in.size()) {
    const int64_t at = first + static_cast<int64_t>(done);
    const auto channel = static_cast<size_t>(at / inner_ % channels_);
    if (inner_ == 1 && channel == 0) {
      // Looks up all whole pixels that are left.
      const auto channels = static_cast<size_t>(channels_);
      const size_t end = done + (in.size() - done) / channels * channels;
      for (; done < end; done += channels) {
        for (size_t c = 0; c < channels; ++c) {
          std::memcpy(out + (done + c) * sizeof(Entry), &entries[c * kTableEntries + in[done + c]],
                      sizeof(Entry));
        }
      }
      if (done == in.size()) return;
    }
    const size_t run = std::min(in.size() - done, static_cast<size_t>(inner_ - at % inner_));
    LookUp(&entries[channel * kTableEntries], in.subspan(done, run), out + done * sizeof(Entry));
    done += run;
  }
}

}  // namespace systole
