#include "client/step/missing_examples.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/order/record_list.h"
#include "core/tensor/tensor.h"

namespace systole {
namespace {

// MaskedText() names at most this many masked records of a step.
constexpr size_t kMaxRecordsNamed = 8;

void Note(const Order& order, int64_t step, int core, int64_t slot, MissingExamples& missing) {
  const Place place = order.PlaceOnCore(step, core, slot);
  if (!place.record.has_value()) {
    ++missing.padded;
    return;
  }
  if (*place.record == kUnknownRecord) {
    ++missing.masked_unknown;
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
    missing.present += static_cast<int64_t>(valid.size());
    while ((at = static_cast<const uint8_t*>(std::memchr(at, 0, static_cast<size_t>(end - at)))) !=
           nullptr) {
      Note(order, step.number(), core, at - valid.data(), missing);
      if (++at == end) break;
    }
  }
  missing.present -= missing.padded + missing.masked();
  return missing;
}

std::string MaskedText(int64_t step, const MissingExamples& missing) {
  const size_t known = missing.masked_records.size();
  const auto named =
      absl::MakeConstSpan(missing.masked_records).first(std::min(known, kMaxRecordsNamed));
  return absl::StrCat("step ", step, ": examples masked for damage: ", missing.masked(),
                      known == 0 ? "" : "; record_id ", absl::StrJoin(named, ", "),
                      named.size() < known ? ", .." : "");
}

void AddMissing(const MissingExamples& missing, FeedClientStats& stats) {
  stats.masked_examples += missing.masked();
  stats.padded_examples += missing.padded;
  std::vector<int64_t>& listed = stats.masked_records;
  for (const int64_t record : missing.masked_records) {
    if (listed.size() >= kMaxMaskedRecords) return;
    if (std::find(listed.begin(), listed.end(), record) == listed.end()) listed.push_back(record);
  }
}

}  // namespace systole
