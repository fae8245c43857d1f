#include "client/step/missing_examples.h"

#include <algorithm>
#include <cstring>

#include "core/tensor/tensor.h"

namespace systole {
namespace {

void Note(const Order& order, int64_t step, int core, int64_t slot, MissingExamples& missing) {
  const Place place = order.PlaceOnCore(step, core, slot);
  if (!place.record.has_value()) {
    ++missing.padded;
    return;
  }
  missing.masked_records.push_back(*place.record);
}

}  // namespace

MissingExamples FindMissing(const Step& step, const Order& order) {
  MissingExamples missing;
  for (int core = step.core_begin(); core < step.core_end(); ++core) {
    const absl::Span<const uint8_t> valid = step.Tensor(core, step.layout().valid_index()).bytes();
    const uint8_t* const end = valid.data() + valid.size();
    const uint8_t* at = valid.data();
    while ((at = static_cast<const uint8_t*>(std::memchr(at, 0, static_cast<size_t>(end - at)))) !=
           nullptr) {
      Note(order, step.number(), core, at - valid.data(), missing);
      if (++at == end) break;
    }
  }
  return missing;
}

void AddMissing(const MissingExamples& missing, FeedClientStats& stats) {
  stats.masked_examples += static_cast<int64_t>(missing.masked_records.size());
  stats.padded_examples += missing.padded;
  std::vector<int64_t>& listed = stats.masked_records;
  for (const int64_t record : missing.masked_records) {
    if (listed.size() >= kMaxMaskedRecords) return;
    if (std::find(listed.begin(), listed.end(), record) == listed.end()) listed.push_back(record);
  }
}

}  // namespace systole
