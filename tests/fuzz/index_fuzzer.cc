// Reads any bytes as the text of an index. An accepted index covers the shard without gaps.
// Writing the index gives the text that was read.
//
// Input: 8 bytes for the shard size (u64le), then the text.
#include <cstddef>
#include <cstdint>

#include "core/record/source/record_index.h"
#include "core/record/tfrecord/dali_index.h"
#include "core/record/tfrecord/record_format.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(index, const uint8_t* data, size_t size) {
  using namespace systole;
  if (size < 8) return 0;
  const uint64_t shard_bytes = LoadU64Le(reinterpret_cast<const char*>(data));
  const absl::string_view text(reinterpret_cast<const char*>(data) + 8, size - 8);
  const absl::StatusOr<RecordIndex> index = ParseDaliIndex(text, shard_bytes);
  if (!index.ok()) return 0;
  SYSTOLE_CHECK(DaliIndexText(*index) == text);
  uint64_t end = 0;
  for (int64_t i = 0; i < index->num_records(); ++i) {
    SYSTOLE_CHECK(index->span(i).offset == end);
    SYSTOLE_CHECK(index->span(i).size > 0);
    end += index->span(i).size;
  }
  SYSTOLE_CHECK(end == shard_bytes);
  return 0;
}
