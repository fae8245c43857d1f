// Reads any bytes as the text of a hash file. An accepted text lists a bounded number of damaged
// records in ascending order, and is written back equal.
#include <cstddef>
#include <cstdint>

#include "core/record/tfrecord/index_file.h"
#include "core/status/check.h"
#include "tests/fuzz/fuzzer.h"

SYSTOLE_FUZZER(hash_file, const uint8_t* data, size_t size) {
  using namespace systole;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr uint64_t kShardBytes = 500;
  constexpr absl::string_view kIdentity = "500 7";
  std::vector<uint64_t> ends;
  for (uint64_t end = 2; end <= kShardBytes; end += 2) ends.push_back(end);
  const absl::StatusOr<ScannedShard> parsed = ParseHashFile(text, kIdentity, RecordIndex(ends));
  if (!parsed.ok()) return 0;
  const RecordIndex& index = parsed->index;
  SYSTOLE_CHECK(index.num_damaged() <= index.num_records());
  SYSTOLE_CHECK(index.damaged().size() <= kMaxDamagedListed);
  int64_t before = -1;
  for (const DamagedRecord& damaged : index.damaged()) {
    SYSTOLE_CHECK(damaged.record > before && damaged.record < index.num_records());
    SYSTOLE_CHECK(damaged.span == index.span(damaged.record));
    before = damaged.record;
  }
  SYSTOLE_CHECK(HashFileText(kIdentity, index, parsed->content_hash) == text);
  return 0;
}
