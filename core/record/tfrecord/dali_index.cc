#include "core/record/tfrecord/dali_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/record/source/consume_number.h"
#include "core/record/tfrecord/record_format.h"

namespace systole {

uint64_t MaxDaliIndexBytes(uint64_t shard_bytes, uint64_t max_records) {
  // Each frame has 16 bytes or more. A scan gives at most one damaged stretch before each frame,
  // and one after the last frame.
  const uint64_t lines = std::min(2 * (shard_bytes / kRecordFramingBytes) + 1, max_records);
  // A line has two numbers, a space and a newline. Each number is at most the shard's size.
  return lines * (2 * absl::StrCat(shard_bytes).size() + 2);
}

absl::StatusOr<RecordIndex> ParseDaliIndex(absl::string_view text, uint64_t shard_bytes) {
  if (text.size() > MaxDaliIndexBytes(shard_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "index has ", text.size(), " bytes, too many for a shard of ", shard_bytes, " bytes"));
  }
  std::vector<uint64_t> ends;
  uint64_t next_offset = 0;
  while (!text.empty()) {
    const uint64_t line = ends.size() + 1;
    uint64_t offset = 0;
    uint64_t size = 0;
    if (!ConsumeNumber(text, ' ', offset) || !ConsumeNumber(text, '\n', size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("index line ", line, " is not of the form \"<offset> <size>\\n\""));
    }
    if (offset != next_offset) {
      return absl::InvalidArgumentError(absl::StrCat("index line ", line, " has offset ", offset,
                                                     ", want ", next_offset,
                                                     ", where the record before ends"));
    }
    if (size == 0 || size > shard_bytes - offset) {
      return absl::InvalidArgumentError(absl::StrCat("index line ", line, " has size ", size,
                                                     ", want 1 to ", shard_bytes - offset,
                                                     ", what is left of the shard"));
    }
    next_offset = offset + size;
    ends.push_back(next_offset);
  }
  if (next_offset != shard_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("index ends at byte ", next_offset, ", the shard at byte ", shard_bytes));
  }
  ends.shrink_to_fit();
  return RecordIndex(std::move(ends));
}

std::string DaliIndexText(const RecordIndex& index) {
  std::string text;
  for (int64_t record = 0; record < index.num_records(); ++record) {
    const RecordSpan span = index.span(record);
    absl::StrAppend(&text, span.offset, " ", span.size, "\n");
  }
  return text;
}

}  // namespace systole
